package session

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/harness"
)

var _ = Describe("the choice of a session", func() {
	var (
		now     = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		binary  string
		engine  *Engine
		session *api.StandingSession
		subject *Subject
	)
	BeforeEach(func() {
		binary = filepath.Join(GinkgoT().TempDir(), "claude")
		Expect(os.WriteFile(binary, []byte("one"), 0o700)).To(Succeed())
		engine = &Engine{HostName: "host", Dir: "/agent", Clock: clocktesting.NewFakePassiveClock(now),
			LookPath: func(string) (string, error) { return binary, nil }}
		session = &api.StandingSession{Spec: api.StandingSessionSpec{Cwd: "/"}}
		subject = &Subject{Object: session, Class: &api.SessionClass{
			ObjectMeta: metav1.ObjectMeta{Name: "class"},
			Spec: api.SessionClassSpec{
				Harness: api.HarnessSpec{Name: "claude", Args: []string{"--permission-mode", "plan"}, Env: []api.EnvVar{{Name: "A", Value: "1"}}},
				Models:  []string{"m-one", "m-two"}, Efforts: []string{"high", "ultra"},
			},
		}}
	})
	// resolved are model and effort that a start would get, with the condition.
	resolved := func() (model, effort, reason, message string) {
		GinkgoHelper()
		l, o := engine.resolve(subject)
		Expect(o).To(BeNil(), "a choice is no obstacle")
		Expect(l.args).To(Equal(subject.Class.Spec.Harness.Args), "the operator's arguments stay as they are")
		status, reason, message := applied(l.choices)
		want := metav1.ConditionFalse
		if reason == api.ReasonApplied {
			want = metav1.ConditionTrue
		}
		Expect(status).To(Equal(want))
		return l.model, l.effort, reason, message
	}
	// said is a verdict about what the class is now, changed by f.
	said := func(kind api.ChoiceKind, name string, verdict api.Verdict, f func(*api.ModelVerdict)) api.ModelVerdict {
		h := subject.Class.Spec.Harness
		v := api.ModelVerdict{
			Class: "class", Kind: kind, Name: name, Harness: "claude", ArgsDigest: argsDigest(h.Args), RuntimeDigest: runtimeDigest(binary, []string{"A=1"}),
			Verdict: verdict, CheckedAt: metav1.NewTime(now.Add(-time.Hour)), Message: "in its own words",
		}
		if f != nil {
			f(&v)
		}
		return v
	}

	DescribeTable("is decided on anew each time, model and effort each alone",
		func(model, effort, wantModel, wantEffort, reason, words string) {
			session.Spec.Model, session.Spec.Effort = model, effort
			m, e, r, message := resolved()
			Expect([]string{m, e, r}).To(Equal([]string{wantModel, wantEffort, reason}))
			Expect(message).To(ContainSubstring(words))
		},
		Entry("both", "m-one", "high", "m-one", "high", "Applied", `spec.model "m-one" is applied. spec.effort "high" is applied`),
		Entry("C035: an effort alone", "", "high", "", "high", "Applied", `spec.effort "high" is applied`),
		Entry("C036: a model that is not declared", "m-old", "high", "", "high", "ModelNotDeclared", `spec.model "m-old" is left out: spec.models of SessionClass class does not declare it, but m-one, m-two: add it there, or choose another. spec.effort "high" is applied`),
		Entry("an effort that is not declared", "m-one", "low", "m-one", "", "EffortNotDeclared", `spec.effort "low" is left out`),
		Entry("neither is declared", "m-old", "low", "", "", "ModelNotDeclared", `spec.effort "low" is left out`),
		Entry("H20: an effort that the harness does not take", "m-one", "ultra", "m-one", "", "NotSupported", "claude has no effort"),
	)

	DescribeTable("is withheld by a verdict that counts, and by no other",
		func(verdict func() api.ModelVerdict, want string) {
			session.Spec.Model, session.Spec.Effort = "m-one", "high"
			subject.Verdicts = []api.ModelVerdict{said(api.ChoiceModel, "m-two", api.VerdictRefused, nil), verdict()}
			_, _, reason, message := resolved()
			Expect(reason).To(Equal(want))
			if want != api.ReasonApplied {
				Expect(message).To(And(ContainSubstring("refused it at 2026-01-02T02:04:05Z (in its own words)"), ContainSubstring("sessionhost host "+api.ModelsCheckRequestedAnnotation)))
			}
		},
		Entry("refused", func() api.ModelVerdict { return said(api.ChoiceModel, "m-one", api.VerdictRefused, nil) }, "ModelRefused"),
		Entry("the effort refused", func() api.ModelVerdict { return said(api.ChoiceEffort, "high", api.VerdictRefused, nil) }, "EffortRefused"),
		Entry("accepted", func() api.ModelVerdict { return said(api.ChoiceModel, "m-one", api.VerdictAccepted, nil) }, "Applied"),
		Entry("unknown", func() api.ModelVerdict { return said(api.ChoiceModel, "m-one", api.VerdictUnknown, nil) }, "Applied"),
		Entry("a word that is none", func() api.ModelVerdict { return said(api.ChoiceModel, "m-one", "Rejected", nil) }, "Applied"),
		Entry("of another kind", func() api.ModelVerdict { return said(api.ChoiceEffort, "m-one", api.VerdictRefused, nil) }, "Applied"),
		Entry("a day old", func() api.ModelVerdict {
			return said(api.ChoiceModel, "m-one", api.VerdictRefused, func(v *api.ModelVerdict) { v.CheckedAt = metav1.NewTime(now.Add(-25 * time.Hour)) })
		}, "Applied"),
		Entry("from the future", func() api.ModelVerdict {
			return said(api.ChoiceModel, "m-one", api.VerdictRefused, func(v *api.ModelVerdict) { v.CheckedAt = metav1.NewTime(now.Add(time.Hour)) })
		}, "Applied"),
		Entry("of another class", func() api.ModelVerdict {
			return said(api.ChoiceModel, "m-one", api.VerdictRefused, func(v *api.ModelVerdict) { v.Class = "other" })
		}, "Applied"),
		Entry("of other arguments", func() api.ModelVerdict {
			return said(api.ChoiceModel, "m-one", api.VerdictRefused, func(v *api.ModelVerdict) { v.ArgsDigest = argsDigest([]string{"--permission-mode plan"}) })
		}, "Applied"),
		Entry("of another environment", func() api.ModelVerdict {
			return said(api.ChoiceModel, "m-one", api.VerdictRefused, func(v *api.ModelVerdict) { v.RuntimeDigest = runtimeDigest(binary, []string{"A=2"}) })
		}, "Applied"),
		Entry("of an older executable", func() api.ModelVerdict {
			v := said(api.ChoiceModel, "m-one", api.VerdictRefused, nil)
			Expect(os.WriteFile(binary, []byte("another"), 0o700)).To(Succeed())
			return v
		}, "Applied"),
		Entry("of another harness", func() api.ModelVerdict {
			return said(api.ChoiceModel, "m-one", api.VerdictRefused, func(v *api.ModelVerdict) { v.Harness = "codex" })
		}, "Applied"),
	)

	It("is never introduced by a forged verdict", func() {
		session.Spec.Model = "m-evil"
		subject.Verdicts = []api.ModelVerdict{said(api.ChoiceModel, "m-evil", api.VerdictAccepted, nil)}
		model, _, reason, _ := resolved()
		Expect([]string{model, reason}).To(Equal([]string{"", "ModelNotDeclared"}))
		session.Spec.Model = ""
		model, _, _, _ = resolved()
		Expect(model).To(BeEmpty())
	})

	DescribeTable("is warned of when the operator's arguments say it too", func(harnessName, model, effort, flag string, args ...string) {
		subject.Class.Spec.Harness = api.HarnessSpec{Name: harnessName, Args: args}
		subject.Class.Spec.Models = append(subject.Class.Spec.Models, model)
		session.Spec.Model, session.Spec.Effort = model, effort
		_, _, reason, message := resolved()
		Expect(reason).To(Equal("Applied"))
		if flag == "" {
			Expect(message).NotTo(ContainSubstring("warning"))
		} else {
			Expect(message).To(ContainSubstring("warning: the harness arguments have " + flag + " too"))
		}
	},
		Entry("in two words", "claude", "m-one", "", "--model", "--model", "x"),
		Entry("in one word", "claude", "m-one", "", "--model", "--verbose", "--model=x"),
		Entry("an effort", "claude", "m-one", "high", "--effort", "--effort", "low"),
		Entry("another flag", "claude", "m-one", "high", "", "--fallback-model", "x"),
		Entry("by the other name of the flag", "codex", "m-one", "", "--model", "--model", "x"),
		Entry("by a setting", "codex", "m-one", "high", "model_reasoning_effort", "-c", "model_reasoning_effort=low"),
		Entry("by another setting", "codex", "m-one", "high", "", "-c", "model_verbosity=low"),
	)

	DescribeTable("is left out where a template has no place for it", func(start, resume []string, reason string) {
		subject.Class.Spec.Harness = api.HarnessSpec{Name: "custom", Binary: binary, Custom: &api.CustomHarness{StartArgs: start, ResumeArgs: resume}}
		session.Spec.Model = "m-one"
		_, _, got, _ := resolved()
		Expect(got).To(Equal(reason))
	},
		Entry("a place", []string{"{{conversationID}}", "{{model}}"}, nil, "Applied"),
		Entry("none", []string{"{{conversationID}}"}, nil, "NotSupported"),
		Entry("none in a resume, which would lose the conversation", []string{"{{model}}"}, []string{"{{conversationID}}"}, "NotSupported"),
		Entry("in both", []string{"{{model}}"}, []string{"{{conversationID}}", "{{model}}"}, "Applied"),
	)

	It("C038: leaves a live session alone of whose launch nothing is on record", func() {
		session.Spec.Model = "m-one"
		l, _ := engine.resolve(subject)
		Expect(l.differs(&api.HostedSessionStatus{})).To(BeFalse())
		Expect(l.differs(&api.HostedSessionStatus{Harness: "claude"})).To(BeTrue())
		Expect(l.differs(&api.HostedSessionStatus{Harness: "claude", HarnessArgs: l.args, Model: "m-one"})).To(BeFalse())
	})

	It("waits for no executable: what is declared is known without one", func() {
		engine.LookPath = func(string) (string, error) { return "", os.ErrNotExist }
		session.Spec.Model = "m-old"
		l, o := engine.resolve(subject)
		Expect(o.Reason).To(Equal(api.ReasonBinaryMissing))
		Expect(l.choices).To(HaveLen(1))
		Expect(l.choices[0].reason).To(Equal(api.ReasonModelNotDeclared))
	})

	Describe("is asked about", func() {
		probe := func(i int) Probe { return engine.Probes(subject.Class)[i] }

		It("each alone, and not when it could not be given", func() {
			var got []VerdictKey
			for _, p := range engine.Probes(subject.Class) {
				got = append(got, KeyOf(p.Unasked))
				Expect(p.opts.Model == "" || p.opts.Effort == "").To(BeTrue())
			}
			Expect(got).To(Equal([]VerdictKey{{"class", "Model", "m-one"}, {"class", "Model", "m-two"}, {"class", "Effort", "high"}}))
			subject.Class.Spec.Harness.Name = "custom"
			Expect(engine.Probes(subject.Class)).To(BeEmpty(), "it cannot be asked")
			subject.Class.Spec.Harness.Name = "levitating"
			Expect(engine.Probes(subject.Class)).To(BeEmpty())
		})

		DescribeTable("when there is no answer that counts", func(known func() *api.ModelVerdict, tried, anew time.Duration, due bool, wait time.Duration) {
			v := Verdicts{Wanted: []Probe{probe(0)}, Tried: map[VerdictKey]time.Time{}}
			if k := known(); k != nil {
				v.Known = []api.ModelVerdict{*k}
			}
			if tried != 0 {
				v.Tried[KeyOf(v.Wanted[0].Unasked)] = now.Add(-tried)
			}
			if anew != 0 {
				v.Anew = now.Add(-anew)
			}
			p, w := v.Next(now)
			Expect(p != nil).To(Equal(due))
			Expect(w).To(Equal(wait))
		},
			Entry("none", func() *api.ModelVerdict { return nil }, time.Duration(0), time.Duration(0), true, time.Duration(0)),
			Entry("none, though it was asked: it could not be kept", func() *api.ModelVerdict { return nil }, time.Minute, time.Duration(0), false, 59*time.Minute),
			Entry("a fresh one", func() *api.ModelVerdict { return new(said(api.ChoiceModel, "m-one", api.VerdictAccepted, nil)) }, time.Duration(0), time.Duration(0), false, 22*time.Hour),
			Entry("one that will soon not count any more", func() *api.ModelVerdict {
				return new(said(api.ChoiceModel, "m-one", api.VerdictRefused, func(v *api.ModelVerdict) { v.CheckedAt = metav1.NewTime(now.Add(-23*time.Hour - time.Minute)) }))
			}, time.Duration(0), time.Duration(0), true, time.Duration(0)),
			Entry("the same, asked a moment ago without an answer", func() *api.ModelVerdict {
				return new(said(api.ChoiceModel, "m-one", api.VerdictRefused, func(v *api.ModelVerdict) { v.CheckedAt = metav1.NewTime(now.Add(-23*time.Hour - time.Minute)) }))
			}, time.Minute, time.Duration(0), false, 59*time.Minute),
			Entry("one of other arguments", func() *api.ModelVerdict {
				return new(said(api.ChoiceModel, "m-one", api.VerdictAccepted, func(v *api.ModelVerdict) { v.ArgsDigest = "0" }))
			}, time.Duration(0), time.Duration(0), true, time.Duration(0)),
			Entry("one of another executable", func() *api.ModelVerdict {
				return new(said(api.ChoiceModel, "m-one", api.VerdictAccepted, func(v *api.ModelVerdict) { v.RuntimeDigest = "0" }))
			}, time.Duration(0), time.Duration(0), true, time.Duration(0)),
			Entry("one that says nothing", func() *api.ModelVerdict {
				return new(said(api.ChoiceModel, "m-one", api.VerdictUnknown, func(v *api.ModelVerdict) { v.CheckedAt = metav1.NewTime(now.Add(-30 * time.Minute)) }))
			}, time.Duration(0), time.Duration(0), false, 30*time.Minute),
			Entry("one from the future", func() *api.ModelVerdict {
				return new(said(api.ChoiceModel, "m-one", api.VerdictRefused, func(v *api.ModelVerdict) { v.CheckedAt = metav1.NewTime(now.Add(time.Hour)) }))
			}, time.Duration(0), time.Duration(0), true, time.Duration(0)),
			Entry("a fresh one, on request", func() *api.ModelVerdict { return new(said(api.ChoiceModel, "m-one", api.VerdictAccepted, nil)) }, time.Hour, time.Minute, true, time.Duration(0)),
			Entry("a fresh one, when the request was met", func() *api.ModelVerdict { return new(said(api.ChoiceModel, "m-one", api.VerdictAccepted, nil)) }, time.Second, time.Minute, false, 22*time.Hour),
		)

		It("and the answer is kept: sorted, bounded, and not for nothing", func() {
			refused := said(api.ChoiceModel, "m-one", api.VerdictRefused, nil)
			forgotten := said(api.ChoiceModel, "a-old", api.VerdictAccepted, func(v *api.ModelVerdict) { v.CheckedAt = metav1.NewTime(now.Add(-25 * time.Hour)) })
			unused := said(api.ChoiceModel, "b-unused", api.VerdictAccepted, nil)
			v := Verdicts{Known: []api.ModelVerdict{refused, forgotten, unused}, Wanted: engine.Probes(subject.Class)}
			Expect(v.Learn(nil, now)).To(Equal([]api.ModelVerdict{unused, refused}))

			nothing := said(api.ChoiceModel, "m-one", api.VerdictUnknown, func(v *api.ModelVerdict) { v.CheckedAt = metav1.NewTime(now) })
			Expect(v.Learn(&nothing, now)).To(Equal([]api.ModelVerdict{unused, refused}), "an outage brings no refused model back")
			nothing.ArgsDigest = "0"
			Expect(v.Learn(&nothing, now)).To(Equal([]api.ModelVerdict{unused, nothing}), "the old one was about other arguments")
			accepted := said(api.ChoiceModel, "m-one", api.VerdictAccepted, nil)
			Expect(v.Learn(&accepted, now)).To(Equal([]api.ModelVerdict{unused, accepted}))
		})

		It("without an executable, to no avail", func(ctx SpecContext) {
			engine.LookPath = func(string) (string, error) { return "", os.ErrNotExist }
			got, err := engine.Ask(ctx, probe(0))
			Expect(err).NotTo(HaveOccurred())
			Expect(got.Verdict).To(Equal(api.VerdictUnknown))
			Expect(got.Message).To(ContainSubstring("is not an executable on the agent's host"))
			Expect(got.CheckedAt.Time).To(Equal(now))
		})

		It("and what it says is one line of at most 256 bytes", func() {
			Expect(oneLine(" a\x1b[31m\nb\xff ")).To(Equal("a [31m b?"))
			long := oneLine(strings.Repeat("é", 200))
			Expect(len(long)).To(BeNumerically("<=", 256))
			Expect(long).To(HaveSuffix("é..."))
		})
	})

	Describe("of a harness that ended", func() {
		ended := now.Add(-time.Minute)
		var mine *turn
		// held is what a decision depends on.
		held := func() Input {
			mine.launch, mine.obst = engine.resolve(subject)
			in := Input{Desired: DesiredRunning, Started: true, Now: engine.Clock.Now()}
			mine.verdictInto(&in)
			return in
		}
		BeforeEach(func() {
			session.Spec.Model, session.Spec.Effort = "m-one", "high"
			mine = &turn{Engine: engine, Subject: subject, mem: &memory{endedSince: ended}, sight: Sighting{Holder: HolderAbsent}}
		})
		since := func(kind api.ChoiceKind, name string, at time.Time) {
			subject.Verdicts = append(subject.Verdicts, said(kind, name, api.VerdictAccepted, func(v *api.ModelVerdict) { v.CheckedAt = metav1.NewTime(at) }))
		}

		It("is asked about once more, and waited for: a minute at most", func() {
			since(api.ChoiceModel, "m-one", ended.Add(-time.Second))
			since(api.ChoiceEffort, "high", ended.Add(time.Second))
			Expect(held().VerdictOutdated).To(BeTrue())
			woken := 0
			engine.AskAgain = func() { woken++ }
			mine.ask()
			key := VerdictKey{"class", api.ChoiceModel, "m-one"}
			Expect(engine.AskedAgain()).To(Equal(map[VerdictKey]time.Time{key: ended}), "what was said since is not asked again")
			Expect(woken).To(Equal(1))
			in := held()
			Expect(in.VerdictOutdated).To(BeFalse(), "once")
			Expect(in.VerdictUntil).To(Equal(now.Add(time.Minute)))
			plan, waits := in.askFirst()
			Expect(waits).To(BeTrue())
			Expect(plan.Requeue).To(Equal(time.Minute))

			By("going on without an answer")
			engine.Clock = clocktesting.NewFakePassiveClock(now.Add(time.Minute))
			_, waits = held().askFirst()
			Expect(waits).To(BeFalse())
			By("not waiting longer where the clock jumps back")
			engine.Clock = clocktesting.NewFakePassiveClock(now.Add(-time.Hour))
			_, waits = held().askFirst()
			Expect(waits).To(BeFalse())
		})

		It("is not waited for when it was answered, also by nothing", func() {
			Expect(held().VerdictOutdated).To(BeTrue())
			mine.ask()
			Expect(engine.AskedAgain()).To(HaveLen(2))
			for _, p := range engine.Probes(subject.Class) {
				Expect(engine.Answered(KeyOf(p.Unasked), now)).To(Equal(p.opts.Model != "m-two"), "m-two is nobody's")
			}
			Expect(engine.AskedAgain()).To(BeEmpty())
			subject.AnsweredAt = engine.Answers()
			Expect(held()).To(And(HaveField("VerdictOutdated", false), HaveField("VerdictUntil", time.Time{})))

			By("asking for the next end")
			mine.mem.endedSince = now.Add(time.Second)
			Expect(held().VerdictOutdated).To(BeTrue())
			mine.ask()
			Expect(engine.Answered(VerdictKey{"class", api.ChoiceModel, "m-one"}, now)).To(BeTrue(), "who waits for an older one is to look")
			Expect(engine.AskedAgain()).To(HaveKey(VerdictKey{"class", api.ChoiceModel, "m-one"}), "an answer from before it")
		})

		It("is not started by a look that began before the answer came", func() {
			session.Spec.Effort = ""
			since(api.ChoiceModel, "m-one", ended.Add(-time.Second))
			Expect(held().VerdictOutdated).To(BeTrue())
			Expect(mine.ask()).To(BeFalse())
			Expect(engine.Answered(VerdictKey{"class", api.ChoiceModel, "m-one"}, now)).To(BeTrue())
			Expect(held().VerdictUntil).NotTo(BeZero(), "it knows the model as accepted")
			Expect(mine.launch.model).To(Equal("m-one"))

			By("being started by the next one, as the answer says")
			subject.AnsweredAt = engine.Answers()
			subject.Verdicts = []api.ModelVerdict{said(api.ChoiceModel, "m-one", api.VerdictRefused, func(v *api.ModelVerdict) { v.CheckedAt = metav1.NewTime(ended.Truncate(time.Minute)) })}
			Expect(held()).To(And(HaveField("VerdictOutdated", false), HaveField("VerdictUntil", time.Time{})))
			Expect(mine.launch.model).To(BeEmpty())
		})

		It("is looked at again where it was answered between the look and the question", func() {
			session.Spec.Effort = ""
			since(api.ChoiceModel, "m-one", ended.Add(-time.Second))
			Expect(held().VerdictOutdated).To(BeTrue())
			Expect(engine.Answered(VerdictKey{"class", api.ChoiceModel, "m-one"}, now)).To(BeFalse())
			Expect(mine.ask()).To(BeTrue())
			Expect(engine.AskedAgain()).To(BeEmpty(), "nothing would answer it")
		})

		It("is asked about a choice that is made while it is waited for", func() {
			session.Spec.Effort = ""
			Expect(held().VerdictOutdated).To(BeTrue())
			Expect(mine.ask()).To(BeFalse())
			Expect(held().VerdictOutdated).To(BeFalse())
			session.Spec.Model = "m-two"
			Expect(held().VerdictOutdated).To(BeTrue())
			Expect(mine.ask()).To(BeFalse())
			Expect(engine.AskedAgain()).To(HaveKey(VerdictKey{"class", api.ChoiceModel, "m-two"}))
			Expect(held().VerdictUntil).NotTo(BeZero())
		})

		DescribeTable("is asked nothing", func(change func()) {
			change()
			Expect(held()).To(And(HaveField("VerdictOutdated", false), HaveField("VerdictUntil", time.Time{})))
		},
			Entry("without a choice", func() { session.Spec.Model, session.Spec.Effort = "", "" }),
			Entry("about what is not declared", func() { session.Spec.Model, session.Spec.Effort = "m-old", "low" }),
			Entry("that cannot be asked", func() {
				subject.Class.Spec.Harness = api.HarnessSpec{Name: "custom", Binary: binary, Custom: &api.CustomHarness{StartArgs: []string{"{{model}}"}}}
			}),
			Entry("that has arguments of its own", func() { session.Spec.HarnessArgs = []string{"--verbose"} }),
			Entry("that is not there", func() { engine.LookPath = func(string) (string, error) { return "", os.ErrNotExist } }),
			Entry("while it lives", func() { mine.sight.Holder = HolderLiveOurs }),
			Entry("while that is not known", func() { mine.sight.Holder = HolderUnknown }),
		)

		It("goes first among the questions, and is asked again however fresh its answer is", func() {
			v := Verdicts{Wanted: engine.Probes(subject.Class), Tried: map[VerdictKey]time.Time{}}
			key := KeyOf(v.Wanted[2].Unasked)
			v.Again = map[VerdictKey]time.Time{key: ended}
			v.Known = []api.ModelVerdict{said(api.ChoiceEffort, "high", api.VerdictAccepted, func(v *api.ModelVerdict) { v.CheckedAt = metav1.NewTime(ended.Add(-time.Second)) })}
			due, _ := v.Next(now)
			Expect(KeyOf(due.Unasked)).To(Equal(key))
			v.Tried[key] = now
			due, _ = v.Next(now)
			Expect(KeyOf(due.Unasked)).To(Equal(KeyOf(v.Wanted[0].Unasked)))
		})
	})

	It("keeps the words of the API and of the adapters the same", func() {
		Expect([]string{string(api.VerdictAccepted), string(api.VerdictRefused), string(api.VerdictUnknown)}).To(
			Equal([]string{string(harness.VerdictAccepted), string(harness.VerdictRefused), string(harness.VerdictUnknown)}))
	})
})

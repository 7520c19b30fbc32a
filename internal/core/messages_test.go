package core_test

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/core"
)

// became writes what became of a message.
func became(m *api.SessionMessage, outcome api.MessageOutcome, reason string, more ...func(*api.SessionMessageStatus)) {
	GinkgoHelper()
	Expect(there(m)).To(BeTrue())
	m.Status.Outcome, m.Status.Reason = outcome, reason
	for _, f := range more {
		f(&m.Status)
	}
	Expect(k8s.Status().Update(context.Background(), m)).To(Succeed())
}

var _ = Describe("what is said", func() {
	var r *room
	BeforeEach(func() { r = newRoom() })

	running := func(name string, changes ...func(*api.StandingSession)) *api.StandingSession {
		s := r.standing(name, changes...)
		says(s, live())
		return s
	}

	It("is stored as a person's message, for this very session", func(ctx SpecContext) {
		s := running("listener")
		m, err := r.Say(ctx, s, core.Saying{Text: "How are you?"})
		Expect(err).NotTo(HaveOccurred())
		Expect(m.Spec.SessionRef).To(Equal(api.SessionReference{Kind: "StandingSession", Name: "listener", UID: s.UID}))
		Expect(m.Spec.Source).To(And(HaveField("Type", api.SourcePerson), HaveField("Actor", "ada")))
		again, err := r.Say(ctx, s, core.Saying{Text: "How are you?"})
		Expect(err).NotTo(HaveOccurred())
		Expect(again.Name).NotTo(Equal(m.Name))
	})

	It("is said once under one key", func(ctx SpecContext) {
		s := running("listener")
		m, err := r.Say(ctx, s, core.Saying{Text: "once", Key: "k1"})
		Expect(err).NotTo(HaveOccurred())
		again, err := r.Say(ctx, s, core.Saying{Text: "once", Key: "k1"})
		Expect(err).NotTo(HaveOccurred())
		Expect(again.UID).To(Equal(m.UID))
		_, err = r.Say(ctx, s, core.Saying{Text: "something else", Key: "k1"})
		Expect(err).To(beAbout(core.ErrExists))
	})

	DescribeTable("C179: is refused for what does not run, with the command that helps, and stores nothing",
		func(make func() core.Session, fix string) {
			s := make()
			_, err := r.Say(context.Background(), s, core.Saying{Text: "hello?"})
			Expect(err).To(And(beAbout(core.ErrNotRunning), MatchError(ContainSubstring(fix))))
			var list api.SessionMessageList
			Expect(k8s.List(context.Background(), &list, client.InNamespace(r.name))).To(Succeed())
			Expect(list.Items).To(BeEmpty())
		},
		Entry("stopped", func() core.Session {
			s := r.standing("quiet", func(s *api.StandingSession) { s.Spec.State = api.SessionStateStopped })
			says(s, down(api.ReasonStopped, "stopped"))
			return s
		}, "the-loop standing start quiet"),
		Entry("stopped, and not yet seen by its host", func() core.Session {
			s := running("quiet")
			s.Spec.State = api.SessionStateStopped
			Expect(k8s.Update(context.Background(), s)).To(Succeed())
			return s
		}, "the-loop standing start quiet"),
		Entry("dead", func() core.Session {
			s := r.standing("quiet")
			says(s, down(api.ReasonExited, "the harness ended"))
			return s
		}, "the-loop standing start quiet"),
		Entry("never bound", func() core.Session {
			return r.standing("quiet", func(s *api.StandingSession) { s.Spec.HostName = "" })
		}, "the-loop standing start quiet"),
		Entry("a work item's, which a message would otherwise start", func() core.Session {
			s := r.item(15)
			says(s, down(api.ReasonExited, "the next message starts it again"))
			return s
		}, "the-loop sessions start github-octo-repo-15"),
		Entry("paused", func() core.Session {
			return running("quiet", func(s *api.StandingSession) { s.Spec.DeliveryPolicy = api.DeliveryPolicyDrop })
		}, "the-loop standing resume quiet"),
	)

	It("C179: an unknown session is not found, and a name that none can have is refused", func(ctx SpecContext) {
		_, err := r.Standing(ctx, "nobody")
		Expect(err).To(And(beAbout(core.ErrNotFound), MatchError(ContainSubstring("the-loop standing create nobody"))))
		_, err = r.Standing(ctx, "No Body")
		Expect(err).To(beAbout(core.ErrInvalid))
		_, err = r.WorkItem(ctx, "github:octo/repo#99")
		Expect(err).To(And(beAbout(core.ErrNotFound), MatchError(ContainSubstring("the-loop sessions start 'github:octo/repo#99'"))))
		_, err = r.WorkItem(ctx, "github:octo#99")
		Expect(err).To(beAbout(core.ErrInvalid))
	})

	It("is stored for a session of which nobody knows whether it runs", func(ctx SpecContext) {
		s := r.standing("silent")
		says(s, []metav1.Condition{
			condition(api.ConditionHostAvailable, metav1.ConditionUnknown, api.ReasonHeartbeatStopped, "silent"),
			condition(api.ConditionSessionRunning, metav1.ConditionTrue, api.ReasonRunning, "runs"),
		})
		_, err := r.Say(ctx, s, core.Saying{Text: "are you there?"})
		Expect(err).NotTo(HaveOccurred())
	})

	DescribeTable("is refused when it cannot be a message",
		func(text string) {
			_, err := r.Say(context.Background(), running("listener"), core.Saying{Text: text})
			Expect(err).To(beAbout(core.ErrInvalid))
		},
		Entry("empty", ""), Entry("blank", " \n\t"), Entry("too long", strings.Repeat("x", 262145)),
	)

	Describe("with files", func() {
		var dir, from string
		var s *api.StandingSession
		BeforeEach(func() {
			dir, from = GinkgoT().TempDir(), GinkgoT().TempDir()
			host := &api.SessionHost{ObjectMeta: metav1.ObjectMeta{Name: "host-" + r.name}}
			Expect(k8s.Create(context.Background(), host)).To(Succeed())
			DeferCleanup(func() { Expect(k8s.Delete(context.Background(), host)).To(Succeed()) })
			host.Status.BootID = core.ThisMachine().BootID
			Expect(k8s.Status().Update(context.Background(), host)).To(Succeed())
			s = r.standing("listener", func(s *api.StandingSession) { s.Spec.HostName = host.Name })
			says(s, live(), func(st *api.HostedSessionStatus) { st.WorkingDirectory = dir })
		})
		file := func(name, content string) string {
			GinkgoHelper()
			path := filepath.Join(from, name)
			Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
			return path
		}
		stored := func() (names []string) {
			GinkgoHelper()
			Expect(filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					path, err = filepath.Rel(dir, path)
					names = append(names, path)
				}
				return err
			})).To(Succeed())
			return names
		}

		DescribeTable("P52: stores them under names of its own in the session's directory, and quotes theirs",
			func(name, content, extension, quoted string) {
				m, err := r.Say(context.Background(), s, core.Saying{Text: "Look at this.", Files: []string{file(name, content)}})
				Expect(err).NotTo(HaveOccurred())
				text, line, _ := strings.Cut(m.Spec.Text, "\n\n")
				Expect(text).To(Equal("Look at this."))
				Expect(line).To(MatchRegexp(`^Attached: the file %s of %d bytes, as \.the-loop/files/[0-9a-f]{16}%s$`, regexp.QuoteMeta(quoted), len(content), extension))
				_, name, _ = strings.Cut(line, ", as ")
				Expect(stored()).To(ConsistOf(".the-loop/files/.gitignore", name))
				Expect(os.ReadFile(filepath.Join(dir, name))).To(BeEquivalentTo(content))
			},
			Entry("quotes, blanks and a command", "a b'$(id).png", "x", `\.png`, `"a b'$(id).png"`),
			Entry("nothing in it", "empty.txt", "", `\.txt`, `"empty.txt"`),
			Entry("a long name", strings.Repeat("n", 250), "x", "", `"`+strings.Repeat("n", 250)+`"`),
			Entry("lines and keys", "a\n\x1b[201~\r!clear", "x", "", "\"a \uFFFD[201~ !clear\""),
			Entry("a mention", "@b.md", "x", `\.md`, `"\@b.md"`),
			Entry("an end that is no plain one", "x.p;g", "x", "", `"x.p;g"`),
		)

		It("P52: takes a name from another directory for what it is, and the same file once", func(ctx SpecContext) {
			rc := file(".bashrc", "mine")
			for range 2 {
				m, err := r.Say(ctx, s, core.Saying{Files: []string{filepath.Join(from, "x", "..", "..", filepath.Base(from), ".bashrc"), rc}})
				Expect(err).NotTo(HaveOccurred())
				Expect(strings.Count(m.Spec.Text, `Attached: the file ".bashrc" of 4 bytes, as .the-loop/files/`)).To(Equal(2))
			}
			Expect(stored()).To(HaveLen(2))
		})

		It("takes a text of more than 256 KiB", func(ctx SpecContext) {
			long := strings.Repeat("x", 262145)
			_, err := r.Say(ctx, s, core.Saying{Text: long})
			Expect(err).To(And(beAbout(core.ErrInvalid), MatchError(ContainSubstring("--attach FILE"))))
			m, err := r.Say(ctx, s, core.Saying{Files: []string{file("log", long)}})
			Expect(err).NotTo(HaveOccurred())
			Expect(m.Spec.Text).To(HavePrefix(`Attached: the file "log" of 262145 bytes`))
		})

		It("copies nothing out of the directory, and leaves nothing behind what is refused", func(ctx SpecContext) {
			good := file("good", "x")
			refused := func(files []string, is error, why string) {
				GinkgoHelper()
				_, err := r.Say(ctx, s, core.Saying{Files: files})
				Expect(err).To(And(beAbout(is), MatchError(ContainSubstring(why))))
			}
			refused([]string{good, filepath.Join(from, "missing")}, core.ErrInvalid, "no such file")
			refused([]string{good, from}, core.ErrInvalid, "no plain file")
			pipe := filepath.Join(from, "pipe")
			Expect(syscall.Mkfifo(pipe, 0o600)).To(Succeed())
			refused([]string{pipe}, core.ErrInvalid, "no plain file")
			refused(slices.Repeat([]string{good}, 21), core.ErrInvalid, "21 files are too many")
			Expect(stored()).To(ConsistOf(".the-loop/files/.gitignore"))
			_, err := r.Say(ctx, s, core.Saying{Text: strings.Repeat("x", 262144), Files: []string{good}})
			Expect(err).To(HaveOccurred())
			Expect(stored()).To(ConsistOf(".the-loop/files/.gitignore"))

			Expect(os.RemoveAll(filepath.Join(dir, ".the-loop"))).To(Succeed())
			elsewhere := GinkgoT().TempDir()
			Expect(os.Symlink(elsewhere, filepath.Join(dir, ".the-loop"))).To(Succeed())
			refused([]string{good}, core.ErrInvalid, "escapes")
			Expect(os.ReadDir(elsewhere)).To(BeEmpty())
		})

		It("is refused for a session of another machine, with where to copy them", func(ctx SpecContext) {
			far := &api.SessionHost{ObjectMeta: metav1.ObjectMeta{Name: "far-" + r.name}}
			Expect(k8s.Create(ctx, far)).To(Succeed())
			DeferCleanup(func() { Expect(k8s.Delete(context.Background(), far)).To(Succeed()) })
			o := r.standing("distant", func(s *api.StandingSession) { s.Spec.HostName = far.Name })
			says(o, live(), func(st *api.HostedSessionStatus) { st.WorkingDirectory = "/srv/work" })
			_, err := r.Say(ctx, o, core.Saying{Files: []string{file("a", "x")}})
			Expect(err).To(And(beAbout(core.ErrElsewhere), MatchError(ContainSubstring("copy the file to far-"+r.name+":/srv/work"))))
		})
	})

	It("C181: racing with a stop does not make the session running again", func(ctx SpecContext) {
		s := running("racing")
		stale := s.DeepCopy()
		s.Spec.State = api.SessionStateStopped
		Expect(k8s.Update(ctx, s)).To(Succeed())
		version := s.ResourceVersion
		_, err := r.Say(ctx, stale, core.Saying{Text: "one more thing"})
		Expect(err).NotTo(HaveOccurred())
		Expect(there(s)).To(BeTrue())
		Expect(s.ResourceVersion).To(Equal(version))
		Expect(s.Spec.State).To(Equal(api.SessionStateStopped))
	})

	DescribeTable("counts as taken only on the harness's own word",
		func(outcome api.MessageOutcome, is error) {
			s := running("listener")
			m, err := r.Say(context.Background(), s, core.Saying{Text: "hello"})
			Expect(err).NotTo(HaveOccurred())
			if is == core.ErrUnconfirmed {
				r.Timeout = 1e8
			}
			r.Progress = func(string) {}
			became(m.DeepCopy(), outcome, "Because")
			err = r.AwaitMessage(context.Background(), m)
			if is == nil {
				Expect(err).NotTo(HaveOccurred())
				return
			}
			Expect(err).To(beAbout(is))
		},
		Entry("Submitted", api.OutcomeSubmitted, nil),
		Entry("Typed", api.OutcomeTyped, core.ErrFailed),
		Entry("Unknown", api.OutcomeUnknown, core.ErrFailed),
		Entry("Refused", api.OutcomeRefused, core.ErrFailed),
		Entry("Dropped", api.OutcomeDropped, core.ErrFailed),
		Entry("Held", api.OutcomeHeld, core.ErrUnconfirmed),
		Entry("Queued", api.OutcomeQueued, core.ErrUnconfirmed),
	)

	It("is awaited until its outcome is final", func(ctx SpecContext) {
		s := running("listener")
		m, err := r.Say(ctx, s, core.Saying{Text: "hello"})
		Expect(err).NotTo(HaveOccurred())
		told := make(chan string, 16)
		r.Progress = func(what string) { told <- what }
		ended, stored := make(chan error, 1), m.DeepCopy()
		go func() { ended <- r.AwaitMessage(ctx, m) }()
		Eventually(told).Should(Receive(ContainSubstring("not seen it yet")))
		became(stored, api.OutcomeHeld, "Held")
		Eventually(told).Should(Receive(ContainSubstring("Held")))
		Expect(ended).NotTo(Receive())
		became(stored, api.OutcomeSubmitted, "PromptTaken")
		Eventually(ended).Should(Receive(BeNil()))
	})
})

var _ = Describe("recalling a message", func() {
	var (
		r *room
		s *api.StandingSession
	)
	BeforeEach(func() {
		r = newRoom()
		s = r.standing("listener")
		says(s, live())
	})

	said := func(ctx context.Context) *api.SessionMessage {
		m, err := r.Say(ctx, s, core.Saying{Text: "never mind"})
		Expect(err).NotTo(HaveOccurred())
		return m
	}

	It("deletes what no host has", func(ctx SpecContext) {
		m := said(ctx)
		_, err := r.Recall(ctx, m.Name)
		Expect(err).NotTo(HaveOccurred())
		Expect(there(m)).To(BeFalse())
		_, err = r.Recall(ctx, m.Name)
		Expect(err).To(beAbout(core.ErrNotFound))
	})

	// had is a message that a host has, whose agent answers a recall with an outcome, "" for
	// not at all.
	had := func(ctx context.Context, outcome api.MessageOutcome, reason string) *api.SessionMessage {
		m := said(ctx)
		before := m.DeepCopy()
		metav1.SetMetaDataLabel(&m.ObjectMeta, api.HostLabel, "build-1")
		Expect(k8s.Patch(ctx, m, client.MergeFrom(before))).To(Succeed())
		r.Client = interceptor.NewClient(k8s, interceptor.Funcs{Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			err := c.Patch(ctx, o, p, opts...)
			if _, asked := o.GetAnnotations()[api.RecallAnnotation]; asked && err == nil && outcome != "" {
				became(m.DeepCopy(), outcome, reason)
			}
			return err
		}})
		return m
	}

	It("takes the word of the agent that has it", func(ctx SpecContext) {
		m := had(ctx, api.OutcomeDropped, api.ReasonRecalled)
		got, err := r.Recall(ctx, m.Name)
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Status.Reason).To(Equal(api.ReasonRecalled))
	})

	It("says that it was too late when the agent had typed it", func(ctx SpecContext) {
		m := had(ctx, api.OutcomeSubmitted, api.ReasonPromptTaken)
		_, err := r.Recall(ctx, m.Name)
		Expect(err).To(beAbout(core.ErrTooLate))
		Expect(there(m)).To(BeTrue())
	})

	It("does not guess when the agent is silent", func(ctx SpecContext) {
		m := had(ctx, "", "")
		r.Timeout = time.Millisecond
		_, err := r.Recall(ctx, m.Name)
		Expect(err).To(beAbout(core.ErrUnconfirmed))
		Expect(there(m)).To(BeTrue())
	})

	DescribeTable("says that it is too late",
		func(outcome api.MessageOutcome, more func(*api.SessionMessageStatus)) {
			m := said(context.Background())
			became(m, outcome, "Because", more)
			_, err := r.Recall(context.Background(), m.Name)
			Expect(err).To(beAbout(core.ErrTooLate))
			Expect(there(m)).To(BeTrue())
		},
		Entry("Submitted", api.OutcomeSubmitted, func(*api.SessionMessageStatus) {}),
		Entry("Typed", api.OutcomeTyped, func(*api.SessionMessageStatus) {}),
		Entry("Refused", api.OutcomeRefused, func(*api.SessionMessageStatus) {}),
		Entry("pasted", api.OutcomeQueued, func(st *api.SessionMessageStatus) { st.DeliveredTime = new(metav1.NowMicro()) }),
	)

	It("looks again when something became of it at that very moment", func(ctx SpecContext) {
		m := said(ctx)
		typed := false
		r.Client = interceptor.NewClient(k8s, interceptor.Funcs{Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			if !typed {
				typed = true
				became(m.DeepCopy(), api.OutcomeTyped, "Typed")
			}
			return c.Delete(ctx, o, opts...)
		}})
		_, err := r.Recall(ctx, m.Name)
		Expect(err).To(beAbout(core.ErrTooLate))
		Expect(there(m)).To(BeTrue())
	})
})

package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/cliconfig"
)

// machine is one host on which `up` is run again and again.
type machine struct {
	name string
	// live are the names of the sessions that run on it; silent is a terminal server
	// that does not answer.
	live   map[string]bool
	silent bool
	// meanwhile is done once, after `up` has read a session and before it writes it.
	meanwhile func()
	// log is what `up` logged.
	log *gbytes.Buffer
}

func newMachine(ctx context.Context) *machine {
	GinkgoHelper()
	mustCreate(ctx, &api.SessionClass{
		ObjectMeta: metav1.ObjectMeta{Name: "standard", Labels: map[string]string{api.DefaultClassLabel: "true"}},
		Spec:       api.SessionClassSpec{Harness: api.HarnessSpec{Name: "claude", Args: []string{"--of-class"}}},
	})
	DeferCleanup(func(ctx context.Context) {
		Expect(k8s.DeleteAllOf(ctx, &api.StandingSession{}, client.InNamespace(declaredNamespace))).To(Succeed())
		Expect(k8s.DeleteAllOf(ctx, &api.SessionClass{})).To(Succeed())
	})
	return &machine{name: "here", live: map[string]bool{}, log: gbytes.NewBuffer()}
}

// up carries out what a file declares, and returns what it tells a person of each
// session.
func (m *machine) up(ctx context.Context, text string) map[string]string {
	GinkgoHelper()
	file, err := cliconfig.Parse("/etc/f.yaml", []byte(text))
	Expect(err).NotTo(HaveOccurred())
	d := &declaration{client: m.client(), host: m.name, file: file, log: funcr.New(func(_, args string) {
		_, _ = fmt.Fprintln(m.log, args)
	}, funcr.Options{})}
	if !m.silent {
		d.runs = func(s *api.StandingSession) bool { return m.live[s.Name] }
	}
	outcomes, err := d.carryOut(ctx)
	Expect(err).NotTo(HaveOccurred())
	said := map[string]string{}
	for _, o := range outcomes {
		said[o.name] = o.text
	}
	return said
}

func (m *machine) client() client.Client {
	once := func() {
		if f := m.meanwhile; f != nil {
			m.meanwhile = nil
			f()
		}
	}
	return interceptor.NewClient(k8s, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			once()
			return c.Apply(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			once()
			return c.Patch(ctx, obj, p, opts...)
		},
	})
}

// seen does what the agent does: it looks at every session of the machine, and starts
// those that should run.
func (m *machine) seen(ctx context.Context) {
	GinkgoHelper()
	var list api.StandingSessionList
	Expect(k8s.List(ctx, &list)).To(Succeed())
	for i := range list.Items {
		s := &list.Items[i]
		if s.Spec.HostName != m.name {
			continue
		}
		m.live[s.Name] = s.Spec.State == api.SessionStateRunning
		s.Status.Conditions = []metav1.Condition{{
			Type: api.ConditionSessionRunning, Status: metav1.ConditionTrue, Reason: "Seen",
			ObservedGeneration: s.Generation, LastTransitionTime: metav1.Now(),
		}}
		Expect(k8s.Status().Update(ctx, s)).To(Succeed())
	}
}

// down ends everything that runs.
func (m *machine) down() { m.live = map[string]bool{} }

func mustCreate(ctx context.Context, obj client.Object) {
	GinkgoHelper()
	Expect(k8s.Create(ctx, obj)).To(Succeed())
}

// created is a session that a person created on the machine.
func (m *machine) created(ctx context.Context, name string, auto bool, state api.SessionState) {
	GinkgoHelper()
	mustCreate(ctx, &api.StandingSession{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: declaredNamespace},
		Spec:       api.StandingSessionSpec{HostPlacement: api.HostPlacement{HostName: m.name}, AutoStart: &auto, State: state},
	})
}

func get(ctx context.Context, name string) *api.StandingSession {
	GinkgoHelper()
	s := &api.StandingSession{}
	Expect(k8s.Get(ctx, client.ObjectKey{Namespace: declaredNamespace, Name: name}, s)).To(Succeed())
	return s
}

func stateOf(ctx context.Context, name string) api.SessionState {
	GinkgoHelper()
	return get(ctx, name).Spec.State
}

// patch is a person's kubectl patch.
func patch(ctx context.Context, name, spec string) {
	GinkgoHelper()
	Expect(k8s.Patch(ctx, get(ctx, name), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{`+spec+`}}`)), client.FieldOwner("kubectl-patch"))).To(Succeed())
}

const (
	running = api.SessionStateRunning
	stopped = api.SessionStateStopped
)

// block is a file with these entries.
func block(enabled bool, entries ...string) string {
	return fmt.Sprintf("standingSessions: {enabled: %v, sessions: [%s]}\n", enabled, strings.Join(entries, ", "))
}

var _ = Describe("Declared sessions", func() {
	It("are objects on this host that name the file and the entry", func(ctx context.Context) {
		m := newMachine(ctx)
		said := m.up(ctx, `
routing: {spawnWorkdir: ~/work}
standingSessions:
  enabled: true
  sessions:
    - {name: z, autoStart: false}
    - {name: a, description: Watches., cwd: ~/a, promptFile: /brief.md, slack: {enabled: true, channel: C1}}
`)
		Expect(said).To(Equal(map[string]string{"a": "is started", "z": "is not started: autoStart is false"}))
		a := get(ctx, "a")
		Expect(a.Labels).To(Equal(map[string]string{"theloop.dev/origin": "declared"}))
		Expect(a.Annotations).To(Equal(map[string]string{"theloop.dev/declared-by": "/etc/f.yaml#standingSessions.sessions[1]"}))
		want := api.StandingSessionSpec{
			HostPlacement: api.HostPlacement{HostName: "here"}, State: running, AutoStart: new(true),
			Description: "Watches.", Cwd: "~/a", PromptFile: "/brief.md", Slack: &api.StandingSessionSlack{Enabled: true, Channel: "C1"},
			DeliveryPolicy: api.DeliveryPolicyDeliver, RestartPolicy: api.RestartPolicyAlways,
		}
		Expect(a.Spec).To(Equal(want))
		Expect(get(ctx, "z").Spec.Cwd).To(Equal("~/work"))
		Expect(stateOf(ctx, "z")).To(Equal(stopped))
	}, NodeTimeout(time.Minute))

	It("C160 are not started while the block is not enabled, whatever was before", func(ctx context.Context) {
		m := newMachine(ctx)
		for range 3 {
			Expect(m.up(ctx, block(false, "{name: a}"))).To(HaveKeyWithValue("a", "is not started: standingSessions.enabled is not true"))
			m.seen(ctx)
			Expect(m.live).To(Equal(map[string]bool{"a": false}))
		}
		By("having been enabled once, and ended since")
		m.up(ctx, block(true, "{name: a}"))
		m.seen(ctx)
		Expect(m.live).To(Equal(map[string]bool{"a": true}))
		m.up(ctx, block(false, "{name: a}"))
		m.seen(ctx)
		Expect(m.live).To(Equal(map[string]bool{"a": true}), "what runs is not ended")
		m.down()
		m.up(ctx, block(false, "{name: a}"))
		m.seen(ctx)
		Expect(m.live).To(Equal(map[string]bool{"a": false}))
		Expect(*get(ctx, "a").Spec.AutoStart).To(BeFalse())
	}, NodeTimeout(time.Minute))

	DescribeTable("that a person started by hand go on", func(ctx context.Context, file string) {
		m := newMachine(ctx)
		m.up(ctx, file)
		m.seen(ctx)
		patch(ctx, "a", `"state":"Running"`)
		m.seen(ctx)
		for range 2 {
			Expect(m.up(ctx, file)).To(HaveKeyWithValue("a", HavePrefix("should run, and is left as it is")))
			Expect(stateOf(ctx, "a")).To(Equal(running))
			m.seen(ctx)
		}

		By("the terminal server being silent")
		m.down()
		m.silent = true
		m.up(ctx, file)
		Expect(stateOf(ctx, "a")).To(Equal(running))
		m.silent = false

		By("having been started while the-loop was away")
		patch(ctx, "a", `"state":"Stopped"`)
		m.seen(ctx)
		patch(ctx, "a", `"state":"Running"`)
		m.up(ctx, file)
		Expect(stateOf(ctx, "a")).To(Equal(running))

		By("and stay down once they were ended")
		m.seen(ctx)
		m.down()
		m.up(ctx, file)
		Expect(stateOf(ctx, "a")).To(Equal(stopped))
	},
		Entry("the block not being enabled", NodeTimeout(time.Minute), block(false, "{name: a}")),
		Entry("the entry being without autoStart", NodeTimeout(time.Minute), block(true, "{name: a, autoStart: false}")),
	)

	It("are not stopped when a person starts them at the very moment", func(ctx context.Context) {
		m := newMachine(ctx)
		m.up(ctx, block(false, "{name: a}"))
		m.created(ctx, "b", false, running)
		m.seen(ctx)
		m.down()
		m.meanwhile = func() { patch(ctx, "a", `"state":"Running"`) }
		m.up(ctx, block(false, "{name: a, description: changed}"))
		Expect(stateOf(ctx, "a")).To(Equal(running))
		Expect(get(ctx, "a").Spec.Description).To(Equal("changed"))
		Expect(stateOf(ctx, "b")).To(Equal(stopped))

		patch(ctx, "b", `"state":"Running"`)
		m.seen(ctx)
		m.down()
		m.meanwhile = func() { patch(ctx, "b", `"description":"mine"`) }
		m.up(ctx, "")
		Expect(stateOf(ctx, "b")).To(Equal(running))
	}, NodeTimeout(time.Minute))

	It("are all started again by a start of everything", func(ctx context.Context) {
		m := newMachine(ctx)
		file := block(true, "{name: a}", "{name: b}")
		m.up(ctx, file)
		m.seen(ctx)
		Expect(m.up(ctx, file)).To(Equal(map[string]string{"a": "runs", "b": "runs"}))
		patch(ctx, "a", `"state":"Stopped"`)
		m.seen(ctx)
		m.down()
		Expect(m.up(ctx, file)).To(Equal(map[string]string{"a": "is started", "b": "is started"}))
		m.seen(ctx)
		Expect(m.live).To(Equal(map[string]bool{"a": true, "b": true}))
	}, NodeTimeout(time.Minute))

	It("are not written again when nothing changed", func(ctx context.Context) {
		m := newMachine(ctx)
		file := block(true, "{name: a, prompt: x, harnessArgs: []}", "{name: b, autoStart: false}")
		m.up(ctx, file)
		m.seen(ctx)
		a, b := get(ctx, "a").ResourceVersion, get(ctx, "b").ResourceVersion
		m.up(ctx, file)
		m.down()
		m.up(ctx, file)
		Expect(get(ctx, "a").ResourceVersion).To(Equal(a))
		Expect(get(ctx, "b").ResourceVersion).To(Equal(b))
	}, NodeTimeout(time.Minute))

	It("C164 have no arguments for [], and inherit those of the file, then of the class, when there are none given", func(ctx context.Context) {
		m := newMachine(ctx)
		routing := "routing: {harnessArgs: {claude: [--of-file]}}\n"
		m.up(ctx, routing+block(true, "{name: none, harnessArgs: []}", "{name: own, harnessArgs: [-x]}", "{name: inherits}"))
		Expect(get(ctx, "none").Spec.HarnessArgs).To(And(Not(BeNil()), BeEmpty()))
		Expect(get(ctx, "own").Spec.HarnessArgs).To(Equal([]string{"-x"}))
		Expect(get(ctx, "inherits").Spec.HarnessArgs).To(Equal([]string{"--of-file"}))
		m.up(ctx, block(true, "{name: none}", "{name: inherits}"))
		Expect(get(ctx, "none").Spec.HarnessArgs).To(BeNil(), "the API leaves those of the class to the agent")
		Expect(get(ctx, "inherits").Spec.HarnessArgs).To(BeNil())
	}, NodeTimeout(time.Minute))

	It("lose what the file no longer sets", func(ctx context.Context) {
		m := newMachine(ctx)
		m.up(ctx, block(true, "{name: a, description: x, prompt: x, cwd: /x, slack: {channel: C}}"))
		m.up(ctx, block(true, "{name: a, promptFile: /brief}"))
		a := get(ctx, "a")
		Expect(a.Spec.Description + a.Spec.Prompt + a.Spec.Cwd).To(BeEmpty())
		Expect(a.Spec.PromptFile).To(Equal("/brief"))
		Expect(a.Spec.Slack).To(BeNil())
	}, NodeTimeout(time.Minute))

	It("are what the file says where a person changed that, which the log tells; what the file does not say is the person's", func(ctx context.Context) {
		m := newMachine(ctx)
		file := block(true, "{name: a, prompt: file}")
		m.up(ctx, file)
		patch(ctx, "a", `"prompt":"person","description":"person","restartPolicy":"Never"`)
		m.up(ctx, file)
		a := get(ctx, "a")
		Expect(a.Spec.Prompt).To(Equal("file"))
		Expect(a.Spec.Description).To(Equal("person"))
		Expect(a.Spec.RestartPolicy).To(Equal(api.RestartPolicyNever))
		Expect(m.log).To(gbytes.Say(`a declared session had been changed; the file wins.*"session"="a" "field"="spec.prompt" "why"="conflict with ."kubectl-patch`))
		version := a.ResourceVersion
		m.up(ctx, file)
		Expect(get(ctx, "a").ResourceVersion).To(Equal(version))
	}, NodeTimeout(time.Minute))

	It("are kept when the file no longer declares them, are never started by themselves again, and can be declared again", func(ctx context.Context) {
		m := newMachine(ctx)
		file := block(true, "{name: a, description: x}", "{name: b}")
		m.up(ctx, file)
		m.seen(ctx)
		m.live["b"] = false
		said := m.up(ctx, "")
		Expect(said).To(HaveKeyWithValue("a", ContainSubstring("no longer declared")))
		Expect(said).To(HaveKeyWithValue("b", ContainSubstring("no longer declared")))
		Expect(stateOf(ctx, "a")).To(Equal(running), "what runs is left running")
		Expect(stateOf(ctx, "b")).To(Equal(stopped))
		a := get(ctx, "a")
		Expect(a.Labels).To(HaveKeyWithValue(api.OriginLabel, api.OriginCreated))
		Expect(a.Annotations).To(HaveKeyWithValue(api.DeclaredByAnnotation, "/etc/f.yaml#standingSessions.sessions[0]"))
		Expect(a.Spec.Description).To(Equal("x"))

		m.seen(ctx)
		m.down()
		Expect(m.up(ctx, "")).To(BeEmpty())
		Expect(stateOf(ctx, "a")).To(Equal(stopped))

		Expect(m.up(ctx, block(true, "{name: a}"))).To(Equal(map[string]string{"a": "is started"}))
		a = get(ctx, "a")
		Expect(a.Labels).To(HaveKeyWithValue(api.OriginLabel, api.OriginDeclared))
		Expect(a.Spec.State).To(Equal(running))
		Expect(*a.Spec.AutoStart).To(BeTrue())
		Expect(a.Spec.Description).To(BeEmpty())
		Expect(string(m.log.Contents())).NotTo(ContainSubstring("the file wins"), "nobody else had changed anything")
	}, NodeTimeout(time.Minute))

	It("C174 are refused where the name is one that a person created, and the others are not", func(ctx context.Context) {
		m := newMachine(ctx)
		m.created(ctx, "a", true, running)
		mustCreate(ctx, &api.StandingSession{ObjectMeta: metav1.ObjectMeta{Name: "l", Namespace: declaredNamespace, Labels: map[string]string{api.OriginLabel: api.OriginCreated}}})
		before := get(ctx, "a")
		said := m.up(ctx, block(true, "{name: a}", "{name: b}", "{name: l}"))
		Expect(said).To(HaveKeyWithValue("a", "refused: StandingSession default/a exists and was created by hand, not declared: give the entry another name, or delete the object (kubectl delete standing a -n default) and start the-loop again"))
		Expect(said).To(HaveKeyWithValue("l", HavePrefix("refused: StandingSession default/l exists")))
		Expect(said).To(HaveKeyWithValue("b", "is started"))
		Expect(get(ctx, "a")).To(Equal(before))
		for _, taken := range []string{"a", "b"} {
			err := k8s.Create(ctx, &api.StandingSession{ObjectMeta: metav1.ObjectMeta{Name: taken, Namespace: declaredNamespace}})
			Expect(apierrors.IsAlreadyExists(err)).To(BeTrue(), "%v", err)
		}
	}, NodeTimeout(time.Minute))

	It("are refused where the name runs on another host, or is being deleted", func(ctx context.Context) {
		m := newMachine(ctx)
		m.up(ctx, block(true, "{name: a}", "{name: b}"))
		other := &machine{name: "there", live: map[string]bool{}, log: m.log}
		Expect(other.up(ctx, block(true, "{name: a}"))).To(Equal(map[string]string{
			"a": "refused: StandingSession default/a runs on host here, declared by /etc/f.yaml#standingSessions.sessions[0], and this is host there: give the entry another name, or delete the object there",
		}), "and what another host declared is not this one's to release")

		b := get(ctx, "b")
		b.Finalizers = []string{"theloop.dev/test"}
		Expect(k8s.Update(ctx, b)).To(Succeed())
		Expect(k8s.Delete(ctx, b)).To(Succeed())
		Expect(m.up(ctx, block(true, "{name: a}", "{name: b}"))).To(HaveKeyWithValue("b", ContainSubstring("is being deleted: start the-loop again")))
		b = get(ctx, "b")
		b.Finalizers = nil
		Expect(k8s.Update(ctx, b)).To(Succeed())
	}, NodeTimeout(time.Minute))

	It("C178 leave created sessions to themselves: after an end of everything those with autoStart are back, the others and those stopped before are not", func(ctx context.Context) {
		m := newMachine(ctx)
		m.created(ctx, "auto", true, running)
		m.created(ctx, "manual", false, running)
		m.created(ctx, "ended", true, stopped)
		other := &machine{name: "there", live: map[string]bool{}}
		other.created(ctx, "elsewhere", false, running)
		other.seen(ctx)
		m.seen(ctx)
		all := map[string]bool{"auto": true, "manual": true, "ended": false}
		Expect(m.live).To(Equal(all))
		for _, file := range []string{"", block(false), block(true)} {
			Expect(m.up(ctx, file)).To(BeEmpty())
			m.seen(ctx)
			Expect(m.live).To(Equal(all), "nothing ended: nothing changes")
		}
		m.down()
		m.silent = true
		m.up(ctx, "")
		Expect(stateOf(ctx, "manual")).To(Equal(running), "silence is not absence")
		m.silent = false
		m.up(ctx, block(false))
		m.seen(ctx)
		Expect(m.live).To(Equal(map[string]bool{"auto": true, "manual": false, "ended": false}))
		Expect(stateOf(ctx, "elsewhere")).To(Equal(running))
	}, NodeTimeout(time.Minute))

	DescribeTable("run with the class of their harness", func(ctx context.Context, entry, class, refused string) {
		m := newMachine(ctx)
		for name, of := range map[string]string{"one": "solo", "left": "twice", "right": "twice", "named": "named", "extra": "named"} {
			mustCreate(ctx, &api.SessionClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: api.SessionClassSpec{Harness: api.HarnessSpec{Name: of}}})
		}
		said := m.up(ctx, block(true, "{name: a"+entry+"}"))
		if refused != "" {
			Expect(said["a"]).To(Equal("refused: " + refused))
			return
		}
		Expect(said["a"]).To(Equal("is started"))
		Expect(get(ctx, "a").Spec.ClassName).To(Equal(class))
	},
		Entry("none named: the default class", NodeTimeout(time.Minute), "", "", ""),
		Entry("that of the default class", NodeTimeout(time.Minute), ", harness: claude", "standard", ""),
		Entry("run by one class", NodeTimeout(time.Minute), ", harness: solo", "one", ""),
		Entry("run by several, one of its name", NodeTimeout(time.Minute), ", harness: named", "named", ""),
		Entry("run by several", NodeTimeout(time.Minute), ", harness: twice", "",
			"harness: more than one SessionClass runs twice: name one by the key class: left (runs twice), right (runs twice)"),
		Entry("C011: known, and cannot be hosted", NodeTimeout(time.Minute), ", harness: cursor", "",
			"harness: cursor-agent cannot be hosted as a session: the id of its conversation can neither be chosen nor found out, so it could not be continued; use claude, codex, gemini or opencode"),
		Entry("unknown", NodeTimeout(time.Minute), ", harness: aider", "",
			`harness: no SessionClass runs "aider", and none can be made of the name alone: create one, or use one of: extra (runs named), left (runs twice), named (runs named), one (runs solo), right (runs twice), standard (runs claude)`),
		Entry("custom, without a class", NodeTimeout(time.Minute), ", harness: custom", "",
			`harness: no SessionClass runs "custom", and none can be made of the name alone: create one, or use one of: extra (runs named), left (runs twice), named (runs named), one (runs solo), right (runs twice), standard (runs claude)`),
		Entry("a class by its name", NodeTimeout(time.Minute), ", class: right", "right", ""),
		Entry("a class that is not there", NodeTimeout(time.Minute), ", class: gone", "",
			"class: there is no SessionClass gone: create it, or name one of: extra (runs named), left (runs twice), named (runs named), one (runs solo), right (runs twice), standard (runs claude)"),
	)

	It("inherit the harness of the file, with the arguments of that harness", func(ctx context.Context) {
		m := newMachine(ctx)
		mustCreate(ctx, &api.SessionClass{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: api.SessionClassSpec{Harness: api.HarnessSpec{Name: "solo"}}})
		m.up(ctx, "routing: {defaultHarness: solo, harnessArgs: {solo: [--solo], claude: [--claude]}}\n"+
			block(true, "{name: a}", "{name: b, harness: claude}", "{name: c, class: standard}"))
		Expect(get(ctx, "a").Spec.ClassName).To(Equal("one"))
		Expect(get(ctx, "a").Spec.HarnessArgs).To(Equal([]string{"--solo"}))
		Expect(get(ctx, "b").Spec.HarnessArgs).To(Equal([]string{"--claude"}))
		Expect(get(ctx, "c").Spec.ClassName).To(Equal("standard"))
		Expect(get(ctx, "c").Spec.HarnessArgs).To(Equal([]string{"--claude"}))
	}, NodeTimeout(time.Minute))

	It("get a class made for a known harness that none runs", func(ctx context.Context) {
		m := newMachine(ctx)
		Expect(k8s.DeleteAllOf(ctx, &api.SessionClass{})).To(Succeed())
		Expect(m.up(ctx, block(true, "{name: a, harness: claude}"))).To(HaveKeyWithValue("a", "is started"))
		Expect(get(ctx, "a").Spec.ClassName).To(Equal("claude"))
		class := &api.SessionClass{}
		Expect(k8s.Get(ctx, client.ObjectKey{Name: "claude"}, class)).To(Succeed())
		Expect(class.Spec.Harness.Name).To(Equal("claude"))
		Expect(class.Labels).To(BeEmpty(), "it is not the default")
	}, NodeTimeout(time.Minute))

	It("of the sample are started", func(ctx context.Context) {
		m := newMachine(ctx)
		sample, err := os.ReadFile("../../config/samples/up/cli-config.yaml")
		Expect(err).NotTo(HaveOccurred())
		Expect(m.up(ctx, string(sample))).To(Equal(map[string]string{"watcher": "is started", "scratch": "is not started: autoStart is false"}))
		Expect(get(ctx, "watcher").Spec.HarnessArgs).To(Equal([]string{"--verbose"}))
		Expect(get(ctx, "scratch").Spec.HarnessArgs).To(And(Not(BeNil()), BeEmpty()))
	}, NodeTimeout(time.Minute))

	DescribeTable("of a file that is accepted are accepted by the API server, at the edge of what is allowed too", func(ctx context.Context, entry string) {
		m := newMachine(ctx)
		said := m.up(ctx, block(true, entry))
		Expect(said).To(HaveLen(1))
		for _, text := range said {
			Expect(text).To(Equal("is started"))
		}
	},
		Entry("name", NodeTimeout(time.Minute), "{name: "+strings.Repeat("a", 40)+"}"),
		Entry("one letter", NodeTimeout(time.Minute), "{name: '0'}"),
		Entry("empty values", NodeTimeout(time.Minute), "{name: a, description: '', harness: '', class: '', cwd: '', prompt: '', promptFile: '', slack: {channel: ''}}"),
		Entry("description", NodeTimeout(time.Minute), "{name: a, description: "+strings.Repeat("é", 1024)+"}"),
		Entry("prompt", NodeTimeout(time.Minute), "{name: a, prompt: \"\\0\\x07"+strings.Repeat("a", 65534)+"\"}"),
		Entry("arguments", NodeTimeout(time.Minute), "{name: a, harnessArgs: ["+strings.Repeat("é", 4096)+strings.Repeat(", ''", 63)+"]}"),
		Entry("cwd", NodeTimeout(time.Minute), "{name: a, cwd: /"+strings.Repeat("é", 4095)+"}"),
		Entry("home", NodeTimeout(time.Minute), "{name: a, cwd: '~'}"),
		Entry("promptFile", NodeTimeout(time.Minute), "{name: a, promptFile: ~/"+strings.Repeat("a", 4094)+"}"),
		Entry("channel", NodeTimeout(time.Minute), "{name: a, slack: {enabled: true, channel: "+strings.Repeat("C", 128)+"}}"),
	)
})

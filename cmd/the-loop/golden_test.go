package main

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files anew")

// stage has made-up objects in the suite's API server, and nobody who acts on them.
type stage struct {
	client client.WithWatch
	// server is where the kubeconfig leads.
	server     string
	kubeconfig string
	// now is when the verbs believe to run.
	now time.Time
}

// newStage makes a kubeconfig. Everything of ours is gone when what asked for it ends.
func newStage() *stage {
	GinkgoHelper()
	s := &stage{client: k8s, server: apiServer.Host, kubeconfig: filepath.Join(GinkgoT().TempDir(), "kubeconfig")}
	s.writeKubeconfig()
	DeferCleanup(func(ctx SpecContext) {
		var namespaces corev1.NamespaceList
		Expect(k8s.List(ctx, &namespaces)).To(Succeed())
		for i := range namespaces.Items {
			for _, o := range []client.Object{&api.StandingSession{}, &api.WorkItemSession{}, &api.SessionMessage{}, &eventsv1.Event{}} {
				Expect(k8s.DeleteAllOf(ctx, o, client.InNamespace(namespaces.Items[i].Name))).To(Succeed())
			}
		}
		Expect(k8s.DeleteAllOf(ctx, &api.SessionHost{})).To(Succeed())
		Expect(k8s.DeleteAllOf(ctx, &api.SessionClass{})).To(Succeed())
	})
	return s
}

func (s *stage) writeKubeconfig() {
	GinkgoHelper()
	k := clientcmdapi.NewConfig()
	k.Clusters["c"] = &clientcmdapi.Cluster{Server: s.server, CertificateAuthorityData: apiServer.CAData}
	k.AuthInfos["ada"] = &clientcmdapi.AuthInfo{ClientCertificateData: apiServer.CertData, ClientKeyData: apiServer.KeyData}
	k.Contexts["here"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "ada"}
	k.CurrentContext = "here"
	Expect(clientcmd.WriteToFile(*k, s.kubeconfig)).To(Succeed())
}

// answered is what a verb printed, and its exit code.
type answered struct {
	Out, Err string
	Code     int
}

// run runs a command line in this process.
func (s *stage) run(in string, args ...string) answered {
	GinkgoHelper()
	GinkgoT().Setenv("KUBECONFIG", s.kubeconfig)
	var out, errOut bytes.Buffer
	c := &cli{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(in), Out: &out, ErrOut: &errOut},
		clock:     clocktesting.NewFakePassiveClock(s.now), name: "the-loop",
	}
	root := c.root()
	root.SetArgs(args)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	code := execute(ctx, root, &errOut)
	return answered{Out: out.String(), Err: errOut.String(), Code: code}
}

// varying are what differs from one run to the next, and what stands for it.
var varying = []struct {
	is  *regexp.Regexp
	put string
}{
	{regexp.MustCompile(`"?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"?`), "<uuid>"},
	{regexp.MustCompile(`(resourceVersion"?: )"?\d+"?`), "${1}<version>"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "<time>"},
	{regexp.MustCompile(`-[0-9a-f]{16}\b`), "-<hash>"},
	{regexp.MustCompile(`https://127\.0\.0\.1:\d+/?`), "<server>"},
	{regexp.MustCompile(`/tmp/\S*tmux-\d+/`), "<tmp>/"},
}

// matches compares what was printed with the golden file of this name.
func (a answered) matches(name string, args []string) {
	GinkgoHelper()
	var b strings.Builder
	b.WriteString("$ the-loop " + strings.Join(args, " ") + "\n" + a.Out)
	if a.Err != "" {
		b.WriteString("--- stderr\n" + a.Err)
	}
	b.WriteString("--- exit " + strconv.Itoa(a.Code) + "\n")
	got := b.String()
	for _, v := range varying {
		got = v.is.ReplaceAllString(got, v.put)
	}
	file := filepath.Join("testdata", "golden", name+".txt")
	if *update {
		Expect(os.MkdirAll(filepath.Dir(file), 0o755)).To(Succeed())
		Expect(os.WriteFile(file, []byte(got), 0o644)).To(Succeed())
		return
	}
	want, err := os.ReadFile(file)
	Expect(err).NotTo(HaveOccurred(), "go test ./cmd/the-loop -update writes it; look at it then")
	Expect(got).To(Equal(string(want)), "%s differs: go test ./cmd/the-loop -update writes it anew", file)
}

func cond(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message, ObservedGeneration: 1, LastTransitionTime: metav1.Now()}
}

func bound() []metav1.Condition {
	return []metav1.Condition{
		cond(api.ConditionScheduled, metav1.ConditionTrue, api.ReasonBound, "bound to host build-1"),
		cond(api.ConditionHostAvailable, metav1.ConditionTrue, api.ReasonLeaseRenewed, "the agent renews its lease"),
		cond(api.ConditionWorkspaceReady, metav1.ConditionTrue, api.ReasonDirectoryPresent, "the working directory is there"),
	}
}

func alive(input, why string) []metav1.Condition {
	ready := metav1.ConditionTrue
	if input == api.ReasonAwaitingInput {
		ready = metav1.ConditionFalse
	}
	return append(bound(), cond(api.ConditionSessionRunning, metav1.ConditionTrue, api.ReasonRunning, "the session runs"),
		cond(api.ConditionAcceptingInput, ready, input, why), cond(api.ConditionReady, metav1.ConditionTrue, api.ReasonRunning, "the session runs"))
}

func dead(reason, message string) []metav1.Condition {
	ready := metav1.ConditionFalse
	if reason == api.ReasonStopped {
		ready = metav1.ConditionTrue
	}
	return append(bound(), cond(api.ConditionSessionRunning, metav1.ConditionFalse, reason, message),
		cond(api.ConditionAcceptingInput, metav1.ConditionFalse, api.ReasonNotRunning, "no harness runs"), cond(api.ConditionReady, ready, reason, message))
}

// create creates an object with a status.
func (s *stage) create(o client.Object) {
	GinkgoHelper()
	status := o.DeepCopyObject().(client.Object)
	Expect(s.client.Create(context.Background(), o)).To(Succeed())
	status.SetResourceVersion(o.GetResourceVersion())
	status.SetUID(o.GetUID())
	switch o.(type) {
	case *api.SessionClass, *corev1.Namespace, *eventsv1.Event:
	default:
		Expect(s.client.Status().Update(context.Background(), status)).To(Succeed())
		Expect(s.client.Get(context.Background(), client.ObjectKeyFromObject(o), o)).To(Succeed())
	}
	// Half an hour more than is shown: other times of the object are of a moment later.
	if at := o.GetCreationTimestamp().Add(9*time.Hour + 30*time.Minute); at.After(s.now) {
		s.now = at
	}
}

func (s *stage) standing(name string, conditions []metav1.Condition, changes ...func(*api.StandingSession)) *api.StandingSession {
	GinkgoHelper()
	o := &api.StandingSession{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	o.Spec.HostName = "build-1"
	o.Status.Conditions, o.Status.Harness, o.Status.TmuxTarget = conditions, "claude", "loop-standing-"+name
	o.Status.HostName, o.Status.WorkingDirectory = "build-1", "/srv/work"
	o.Status.Launch = &api.Launch{ID: "l1", Mode: api.LaunchFresh, Confirmed: true}
	o.Status.AttachCommand = "tmux -L the-loop attach -t '=loop-standing-" + name + "'"
	for _, c := range changes {
		c(o)
	}
	s.create(o)
	return o
}

func (s *stage) item(number int64, conditions []metav1.Condition, changes ...func(*api.WorkItemSession)) *api.WorkItemSession {
	GinkgoHelper()
	o := &api.WorkItemSession{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "github-octo-repo-" + strconv.FormatInt(number, 10)}}
	o.Spec.HostName, o.Spec.WorkItem = "build-1", api.WorkItem{Provider: "github", Owner: "octo", Repo: "repo", Number: number}
	o.Status.Conditions, o.Status.Harness, o.Status.TmuxTarget = conditions, "claude", "loop-"+o.Name
	o.Status.Launch = &api.Launch{ID: "l1", Mode: api.LaunchFresh, Confirmed: true}
	o.Status.AttachCommand = "tmux -L the-loop attach -t '=loop-" + o.Name + "'"
	for _, c := range changes {
		c(o)
	}
	s.create(o)
	return o
}

func (s *stage) message(name, session, text string, st api.SessionMessageStatus) {
	GinkgoHelper()
	m := &api.SessionMessage{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	m.Spec.SessionRef, m.Spec.Text = api.SessionReference{Kind: api.KindStandingSession, Name: session}, text
	m.Spec.Source.Actor, m.Status = "ada", st
	s.create(m)
}

// set makes the objects that most verbs are shown with.
func (s *stage) set() {
	GinkgoHelper()
	for _, class := range []*api.SessionClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{api.DefaultClassLabel: "true"}}, Spec: api.SessionClassSpec{Harness: api.HarnessSpec{Name: "claude"}, Models: []string{"opus", "sonnet"}, Efforts: []string{"high"}}},
		{ObjectMeta: metav1.ObjectMeta{Name: "shell"}, Spec: api.SessionClassSpec{Harness: api.HarnessSpec{Name: "custom", Binary: "/bin/sh", Custom: &api.CustomHarness{}}, Permissions: "Deny"}},
	} {
		s.create(class)
	}
	host := &api.SessionHost{ObjectMeta: metav1.ObjectMeta{Name: "build-1"}, Status: api.SessionHostStatus{
		Tmux: api.HostTmux{Version: "3.4", Socket: "/tmp/tmux-1000/the-loop"}, AgentVersion: "v0.1.0", BootID: "another-machine",
		Harnesses: []api.HostHarness{{Name: "claude", Path: "/usr/bin/claude"}, {Name: "codex"}},
		Models: []api.ModelVerdict{
			{Class: "default", Kind: api.ChoiceModel, Name: "opus", Verdict: api.VerdictAccepted, CheckedAt: metav1.Now()},
			{Class: "default", Kind: api.ChoiceModel, Name: "sonnet", Verdict: api.VerdictRefused, CheckedAt: metav1.Now(), Message: "model sonnet may not be used with this account, as the harness says at some length"},
		},
		Conditions: []metav1.Condition{cond(api.ConditionHostReady, metav1.ConditionTrue, api.ReasonLeaseRenewed, "the agent renews its lease")},
	}}
	s.create(host)
	s.create(&api.SessionHost{ObjectMeta: metav1.ObjectMeta{Name: "build-2"}, Spec: api.SessionHostSpec{Scheduling: api.HostSchedulingCordoned}, Status: api.SessionHostStatus{
		Conditions: []metav1.Condition{cond(api.ConditionHostReady, metav1.ConditionUnknown, api.ReasonHeartbeatStopped, "the agent of host build-2 has been silent for more than 50s; its sessions may well run")},
	}})

	s.standing("supervisor", alive(api.ReasonIdle, "the harness is at its prompt"), func(o *api.StandingSession) {
		o.Labels = map[string]string{api.OriginLabel: api.OriginCreated}
		o.Spec.Description, o.Status.ConversationID = "Watches the work in flight.", "c0ffee"
	})
	s.standing("watcher", dead(api.ReasonStopped, "the terminal session is retained to be read"), func(o *api.StandingSession) {
		o.Spec.State = api.SessionStateStopped
		o.Labels = map[string]string{api.OriginLabel: api.OriginDeclared}
		o.Annotations = map[string]string{api.DeclaredByAnnotation: "/home/ada/.the-loop/cli-config.yaml#standingSessions.sessions[0]"}
	})
	s.standing("asking", alive(api.ReasonAwaitingInput, "a dialog of the harness waits for a person: permission"))
	s.standing("crashing", dead(api.ReasonCrashLoop, "the harness keeps ending; it is started again at noon"))
	s.standing("a-name-of-forty-characters-is-the-most-4", append(bound()[:1:1],
		cond(api.ConditionHostAvailable, metav1.ConditionUnknown, api.ReasonHeartbeatStopped, "the agent of host build-2 has been silent for more than 50s; its sessions may well run"),
		cond(api.ConditionReady, metav1.ConditionUnknown, api.ReasonHeartbeatStopped, "the agent of host build-2 has been silent for more than 50s; its sessions may well run"),
	), func(o *api.StandingSession) { o.Spec.HostName = "build-2" })

	s.item(15, alive(api.ReasonBusy, "the harness is in a turn"), func(o *api.WorkItemSession) {
		o.Status.Model, o.Status.Effort = "opus", "high"
		o.Status.Checkout = &api.SessionCheckout{Path: "/srv/work/octo-repo-15", Root: "/srv/work"}
	})
	s.item(16, dead(api.ReasonExited, "the harness ended; the next message starts it again"))
	s.item(17, nil, func(o *api.WorkItemSession) {
		o.Spec.HostName, o.Status = "", api.WorkItemSessionStatus{}
		o.Spec.StartGates = []api.StartGate{{Name: "phase-selection"}}
		o.Status.Conditions = []metav1.Condition{
			cond(api.ConditionScheduled, metav1.ConditionFalse, api.ReasonNoHost, "none of the 2 registered hosts takes the session"),
			cond(api.ConditionReady, metav1.ConditionFalse, api.ReasonNoHost, "none of the 2 registered hosts takes the session"),
		}
	})

	typed := []metav1.Condition{cond(api.ConditionSubmitted, metav1.ConditionTrue, api.ReasonPromptTaken, "the harness took it")}
	held := []metav1.Condition{cond(api.ConditionDelivered, metav1.ConditionFalse, api.ReasonHeld, "a dialog of the harness waits for a person: permission")}
	s.message("taken-1", "supervisor", "How are you getting on?", api.SessionMessageStatus{Sequence: 1, Outcome: api.OutcomeSubmitted, Reason: api.ReasonPromptTaken, Conditions: typed})
	s.message("held-1", "asking", "Not into the dialog.\nSecond line.", api.SessionMessageStatus{Sequence: 1, Outcome: api.OutcomeHeld, Reason: api.ReasonHeld, Conditions: held})
	s.message("behind-1", "asking", "After that.", api.SessionMessageStatus{Sequence: 2, Outcome: api.OutcomeQueued, Reason: api.ReasonQueued})
	s.message("new-1", "supervisor", "Never mind.", api.SessionMessageStatus{})

	for i, e := range []struct{ reason, kind, note string }{{"StandingStarted", "Normal", "attach with: tmux -L the-loop attach -t '=loop-standing-supervisor'"}, {"DispatchDropped", "Warning", "spec.deliveryPolicy of the session is Drop"}} {
		var of api.StandingSession
		Expect(s.client.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: "supervisor"}, &of)).To(Succeed())
		s.create(&eventsv1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "supervisor." + strconv.Itoa(i)}, EventTime: metav1.NewMicroTime(of.CreationTimestamp.Add(time.Duration(i) * time.Millisecond)),
			ReportingController: "theloop-agent", ReportingInstance: "build-1", Action: "Do", Reason: e.reason, Type: e.kind, Note: e.note,
			Regarding: corev1.ObjectReference{APIVersion: api.GroupVersion.String(), Kind: api.KindStandingSession, Namespace: "default", Name: "supervisor", UID: of.UID},
		})
	}
	// An event of somebody else is none of ours.
	s.create(&eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other.1"}, EventTime: metav1.NowMicro(), ReportingController: "x", ReportingInstance: "y", Action: "Do", Reason: "Other", Type: "Normal",
		Regarding: corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: "default", Name: "other"},
	})
}

// shown are the verbs that are shown, by the name of their golden file.
var shown = []struct {
	name, in string
	args     []string
}{
	{"sessions-list", "", []string{"sessions", "list"}},
	{"sessions-list-wide", "", []string{"sessions", "list", "-o", "wide"}},
	{"sessions-list-name", "", []string{"sessions", "list", "-o", "name"}},
	{"sessions-list-empty", "", []string{"sessions", "list", "-n", "kube-public"}},
	{"sessions-list-all", "", []string{"sessions", "list", "-A"}},
	{"sessions-get", "", []string{"sessions", "get", "github:octo/repo#15"}},
	{"sessions-get-json", "", []string{"sessions", "get", "github-octo-repo-17", "-o", "json"}},
	{"sessions-get-unknown", "", []string{"sessions", "get", "github:octo/repo#99"}},
	{"sessions-get-standing", "", []string{"sessions", "get", "supervisor"}},
	{"sessions-start-running", "", []string{"sessions", "start", "github:octo/repo#15"}},
	{"sessions-start-dry", "", []string{"sessions", "start", "github:octo/repo#16", "--dry-run"}},
	{"sessions-start-new", "", []string{"sessions", "start", "github:octo/repo#21", "--prompt", "Look into it.", "--dry-run=server"}},
	{"sessions-start-bad", "", []string{"sessions", "start", "github:octo#21"}},
	{"sessions-start-two-prompts", "", []string{"sessions", "start", "github:octo/repo#21", "--prompt", "a", "--prompt-file", "b"}},
	{"sessions-stop-dry", "", []string{"sessions", "stop", "github:octo/repo#15", "github:octo/repo#16", "--dry-run"}},
	{"sessions-close-dry", "", []string{"sessions", "close", "github:octo/repo#15", "--dry-run"}},
	{"sessions-restart-dry", "", []string{"sessions", "restart", "github:octo/repo#15", "--dry-run"}},
	{"sessions-pause-dry", "", []string{"sessions", "pause", "github:octo/repo#15", "--dry-run"}},
	{"sessions-hold-dry", "", []string{"sessions", "hold", "github:octo/repo#15", "--dry-run"}},
	{"sessions-resume-unchanged", "", []string{"sessions", "resume", "github:octo/repo#15"}},
	{"sessions-reset-none", "", []string{"sessions", "reset"}},
	{"sessions-reset-dry", "", []string{"sessions", "reset", "github:octo/repo#15", "--dry-run"}},
	{"sessions-reset-one-wrong", "", []string{"sessions", "reset", "github:octo/repo#15", "github:octo/repo#99"}},
	{"sessions-reset-all-dry", "", []string{"sessions", "reset", "--all", "--dry-run"}},
	{"sessions-cleanup-dry", "", []string{"sessions", "cleanup", "github:octo/repo#15", "--dry-run"}},
	{"sessions-cleanup-unrecorded-dry", "", []string{"sessions", "cleanup", "github:octo/repo#77", "--dry-run"}},
	{"sessions-undo-cleanup-refused", "", []string{"sessions", "undo-cleanup", "github:octo/repo#15"}},
	{"sessions-undo-cleanup-dry", "", []string{"sessions", "undo-cleanup", "github:octo/repo#16", "--dry-run"}},
	{"sessions-register-dry", "", []string{"sessions", "register", "github:octo/repo#30", "--conversation", "abc", "--cwd", "/srv/work", "--host", "build-1", "--dry-run"}},
	{"sessions-register-no-host", "", []string{"sessions", "register", "github:octo/repo#30", "--conversation", "abc", "--cwd", "/srv/work"}},
	{"sessions-link-pr-dry", "", []string{"sessions", "link-pr", "github:octo/repo#15", "--pull-request", "#31", "--dry-run"}},
	{"sessions-link-pr-itself", "", []string{"sessions", "link-pr", "github:octo/repo#15", "--pull-request", "15"}},
	{"sessions-say-dry", "", []string{"sessions", "say", "github:octo/repo#15", "Go", "on.", "--dry-run"}},
	{"sessions-say-ended", "", []string{"sessions", "say", "github:octo/repo#16", "Go on."}},
	{"sessions-attach-elsewhere", "", []string{"sessions", "attach", "github:octo/repo#15"}},
	{"sessions-attach-never-started", "", []string{"sessions", "attach", "github:octo/repo#17"}},
	{"sessions-logs-elsewhere", "", []string{"sessions", "logs", "github:octo/repo#15"}},
	{"sessions-no-verb", "", []string{"sessions"}},
	{"sessions-unknown-verb", "", []string{"sessions", "frobnicate"}},
	{"sessions-bad-flag", "", []string{"sessions", "list", "--frob"}},
	{"sessions-bad-output", "", []string{"sessions", "list", "-o", "xml"}},

	{"standing-list", "", []string{"standing", "list"}},
	{"standing-list-wide", "", []string{"standing", "list", "-o", "wide"}},
	{"standing-list-yaml", "", []string{"standing", "list", "-o", "yaml", "--host", "build-2"}},
	{"standing-get", "", []string{"standing", "get", "watcher"}},
	{"standing-create-dry", "", []string{"standing", "create", "helper", "--prompt", "Help.", "--dry-run"}},
	{"standing-create-taken", "", []string{"standing", "create", "supervisor"}},
	{"standing-create-declared", "", []string{"standing", "create", "watcher"}},
	{"standing-create-bad-name", "", []string{"standing", "create", "No_Name"}},
	{"standing-delete-declared", "", []string{"standing", "delete", "watcher"}},
	{"standing-delete-dry", "", []string{"standing", "delete", "supervisor", "--dry-run"}},
	{"standing-delete-unknown", "", []string{"standing", "delete", "nobody"}},
	{"standing-start-running", "", []string{"standing", "start", "supervisor"}},
	{"standing-stop-nobody", "", []string{"standing", "stop"}},
	{"standing-stop-all-dry", "", []string{"standing", "stop", "--all", "--dry-run"}},
	{"standing-restart-nobody", "", []string{"standing", "restart"}},
	{"standing-restart-dry", "", []string{"standing", "restart", "supervisor", "--dry-run"}},
	{"standing-pause-dry", "", []string{"standing", "pause", "supervisor", "--dry-run"}},
	{"standing-hold-dry", "", []string{"standing", "hold", "supervisor", "--dry-run"}},
	{"standing-resume-dry", "", []string{"standing", "resume", "supervisor", "--dry-run"}},
	{"standing-say-dry", "From the standard input.", []string{"standing", "say", "supervisor", "--file", "-", "--dry-run"}},
	{"standing-say-stopped", "", []string{"standing", "say", "watcher", "hello"}},
	{"standing-say-unknown", "", []string{"standing", "say", "nobody", "hello"}},
	{"standing-say-attach-elsewhere", "", []string{"standing", "say", "supervisor", "--attach", "README.md"}},
	{"standing-say-nothing", "", []string{"standing", "say", "supervisor"}},
	{"standing-say-blank", " \n", []string{"standing", "say", "supervisor", "--file", "-"}},
	{"standing-attach-elsewhere", "", []string{"standing", "attach", "watcher"}},
	{"standing-logs-elsewhere", "", []string{"standing", "logs", "supervisor"}},

	{"messages-list", "", []string{"messages", "list"}},
	{"messages-list-wide", "", []string{"messages", "list", "-o", "wide"}},
	{"messages-list-pending", "", []string{"messages", "list", "--pending", "--session", "asking"}},
	{"messages-get", "", []string{"messages", "get", "held-1"}},
	{"messages-recall-dry", "", []string{"messages", "recall", "new-1", "--dry-run"}},
	{"messages-recall-too-late", "", []string{"messages", "recall", "taken-1"}},

	{"hosts-list", "", []string{"hosts", "list"}},
	{"hosts-cordon-dry", "", []string{"hosts", "cordon", "build-1", "--dry-run"}},
	{"hosts-uncordon-dry", "", []string{"hosts", "uncordon", "build-2", "--dry-run"}},
	{"hosts-drain-dry", "", []string{"hosts", "drain", "build-2", "--dry-run"}},
	{"hosts-drain-unknown", "", []string{"hosts", "drain", "build-9"}},
	{"classes-list", "", []string{"classes", "list"}},
	{"models-check-cached", "", []string{"models", "check", "--cached"}},

	{"status", "", []string{"status"}},
	{"status-json", "", []string{"status", "-o", "json"}},
	{"explain-running", "", []string{"explain", "supervisor"}},
	{"explain-stopped", "", []string{"explain", "watcher"}},
	{"explain-asking", "", []string{"explain", "asking"}},
	{"explain-ended", "", []string{"explain", "github:octo/repo#16"}},
	{"explain-unscheduled", "", []string{"explain", "github:octo/repo#17"}},
	{"explain-silent-host", "", []string{"explain", "a-name-of-forty-characters-is-the-most-4"}},
	{"explain-held", "", []string{"explain", "held-1"}},
	{"explain-behind", "", []string{"explain", "behind-1"}},
	{"explain-taken", "", []string{"explain", "message/taken-1", "-o", "json"}},
	{"explain-unknown", "", []string{"explain", "nothing"}},
	{"events", "", []string{"events"}},
	{"events-of-one", "", []string{"events", "supervisor", "-o", "wide"}},
}

var _ = Describe("what the verbs print", Ordered, func() {
	var s *stage
	BeforeAll(func() {
		s = newStage()
		s.set()
	})
	It("C040 C106 C107 C174 C176 C179 C183 C189: is what the golden files say, and changes nothing that is only looked at", func() {
		for _, v := range shown {
			By(v.name)
			s.run(v.in, v.args...).matches(v.name, v.args)
		}
		var standing api.StandingSessionList
		Expect(s.client.List(context.Background(), &standing)).To(Succeed())
		for i := range standing.Items {
			Expect(standing.Items[i].Generation).To(BeEquivalentTo(1), standing.Items[i].Name)
		}
	})

	It("fits into 80 columns, but for -o wide, objects and commands to copy", func() {
		for _, v := range shown {
			if slices.Contains(v.args, "-o") || !slices.ContainsFunc(v.args, func(a string) bool {
				return slices.Contains([]string{"list", "check", "status", "explain", "events"}, a)
			}) {
				continue
			}
			for line := range strings.Lines(s.run(v.in, v.args...).Out) {
				if strings.HasPrefix(line, "fix: ") {
					continue
				}
				Expect(len([]rune(strings.TrimSuffix(line, "\n")))).To(BeNumerically("<=", 80), "%s: %s", v.name, line)
			}
		}
	})

	It("has a golden file for every verb", func() {
		var verbs []string
		var walk func(*cobra.Command)
		walk = func(cmd *cobra.Command) {
			if !cmd.HasSubCommands() && cmd.Name() != "up" && cmd.Name() != "down" && cmd.Name() != "doctor" {
				verbs = append(verbs, strings.TrimPrefix(cmd.CommandPath(), "the-loop "))
			}
			for _, sub := range cmd.Commands() {
				walk(sub)
			}
		}
		walk((&cli{name: "the-loop"}).root())
		Expect(len(verbs)).To(BeNumerically(">", 40))
		for _, verb := range verbs {
			Expect(slices.ContainsFunc(shown, func(v struct {
				name, in string
				args     []string
			}) bool {
				return strings.HasPrefix(strings.Join(v.args, " ")+" ", verb+" ")
			})).To(BeTrue(), verb)
		}
	})

	It("completes with the names that there are", func() {
		for line, want := range map[string][]string{
			"standing stop ":                  {"asking", "crashing", "supervisor", "watcher"},
			"standing stop supervisor w":      {"watcher"},
			"sessions get github-octo-repo-1": {"github-octo-repo-15", "github-octo-repo-16", "github-octo-repo-17"},
			"messages recall ":                {"behind-1", "held-1", "new-1"},
			"hosts cordon ":                   {"build-1", "build-2"},
			"standing create x --class ":      {"default", "shell"},
			"standing create x --host build-": {"build-1", "build-2"},
			"standing list --namespace kube-": {"kube-node-lease", "kube-public", "kube-system"},
			"standing list --context ":        {"here"},
		} {
			args := strings.Split(line, " ")
			out := s.run("", append([]string{"__complete"}, args...)...).Out
			for _, name := range want {
				Expect(out).To(ContainSubstring(name+"\n"), line)
			}
			if strings.Contains(line, "supervisor w") {
				Expect(out).NotTo(ContainSubstring("supervisor\n"))
			}
		}
	})

	It("colours nothing that is not a terminal's", func() {
		for _, v := range shown {
			a := s.run(v.in, v.args...)
			Expect(a.Out+a.Err).NotTo(ContainSubstring("\x1b"), v.name)
		}
	})

	It("goes on with what changes until it is ended", func(ctx SpecContext) {
		GinkgoT().Setenv("KUBECONFIG", s.kubeconfig)
		out := &syncBuffer{}
		c := &cli{IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: out}, clock: clocktesting.NewFakePassiveClock(s.now), name: "the-loop"}
		root := c.root()
		root.SetArgs([]string{"standing", "list", "--watch", "-n", "watched"})
		s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "watched"}})
		watching, stop := context.WithCancel(ctx)
		ended := make(chan int, 1)
		go func() { ended <- execute(watching, root, out) }()
		Eventually(out.String).Should(ContainSubstring("No standing session"))
		o := s.standing("late", alive(api.ReasonIdle, "x"), func(o *api.StandingSession) { o.Namespace = "watched" })
		Eventually(out.String).Should(MatchRegexp(`(?m)^late +claude +Running +yes +Idle`))
		Expect(s.client.Get(ctx, client.ObjectKeyFromObject(o), o)).To(Succeed())
		meta.SetStatusCondition(&o.Status.Conditions, cond(api.ConditionReady, metav1.ConditionFalse, api.ReasonExited, "x"))
		Expect(s.client.Status().Update(ctx, o)).To(Succeed())
		Eventually(out.String).Should(MatchRegexp(`(?m)^late +claude +Exited`))
		Expect(s.client.Delete(ctx, o)).To(Succeed())
		Eventually(out.String).Should(ContainSubstring("late was deleted"))
		stop()
		Eventually(ended).Should(Receive(Equal(0)))
	})
})

package v1alpha1_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// table is what kubectl get printed: the header and the rows by their name.
func table(out string) (header []string, rows map[string]string) {
	GinkgoHelper()
	lines := strings.Split(strings.TrimRight(out, "\n"), "\n")
	rows = map[string]string{}
	for _, line := range lines[1:] {
		if cells := strings.Fields(line); len(cells) > 0 {
			rows[cells[0]] = line
		}
	}
	return strings.Fields(lines[0]), rows
}

// cells are the cells of a row, in the order of the header, without the age.
func cells(row string) []string {
	all := strings.Fields(row)
	return all[1:]
}

var _ = Describe("kubectl", func() {
	var ns string
	BeforeEach(func(ctx context.Context) { ns = newNamespace(ctx) }, NodeTimeout(time.Minute))

	// running is a session of the kind with a status as an agent writes it.
	running := func(ctx context.Context, kind, name, status string) *unstructured.Unstructured {
		GinkgoHelper()
		obj := object(kind, `{metadata: {name: `+name+`}, spec: {hostName: build1}}`)
		mustCreate(ctx, ns, obj)
		setStatus(ctx, obj, `status: {`+status+`, conversationID: 0b6b1f0e, attachCommand: "tmux attach -t =x", conditions: [`+
			cond("Ready", "True", "Running")+`, `+cond("AcceptingInput", "True", "Idle")+`]}`)
		return obj
	}

	It("get worksessions prints Item, Host, State, Model, Input, Tmux and Age, by each of its names", func(ctx context.Context) {
		running(ctx, "WorkItemSession", "github-octo-repo-15", `item: "github:octo/repo#15", model: opus, tmuxTarget: loop-github-octo-repo-15`)
		mustCreate(ctx, ns, object("WorkItemSession", `metadata: {name: bare}`))
		for _, name := range []string{"worksessions", "worksession", "wis", "workitemsession", "workitemsessions", "WorkItemSession", "workitemsessions.theloop.dev"} {
			header, rows := table(kubectlOK(ctx, "get", name, "-n", ns))
			Expect(header).To(Equal([]string{"NAME", "ITEM", "HOST", "STATE", "MODEL", "INPUT", "TMUX", "AGE"}), name)
			Expect(cells(rows["github-octo-repo-15"])).To(HaveExactElements(
				"github:octo/repo#15", "build1", "Running", "opus", "Idle", "loop-github-octo-repo-15", MatchRegexp(`^\d+s$`)))
			Expect(cells(rows["bare"])).To(HaveExactElements(MatchRegexp(`^\d+s$`)), "nothing is known yet but the age")
		}
		Expect(kubectlOK(ctx, "get", "worksessions", "-n", ns, "-o", "name")).To(Equal(
			"workitemsession.theloop.dev/bare\nworkitemsession.theloop.dev/github-octo-repo-15\n"))
	}, NodeTimeout(2*time.Minute))

	It("get worksessions -o wide adds Ready, Conversation and Attach", func(ctx context.Context) {
		running(ctx, "WorkItemSession", "one", `item: "github:octo/repo#15", model: opus, tmuxTarget: loop-one`)
		header, rows := table(kubectlOK(ctx, "get", "wis", "-n", ns, "-o", "wide"))
		Expect(header[8:]).To(Equal([]string{"READY", "CONVERSATION", "ATTACH"}))
		Expect(rows["one"]).To(MatchRegexp(`\d+s +True +0b6b1f0e +tmux attach -t =x *$`))
	}, NodeTimeout(time.Minute))

	It("get standing -o wide prints Host, Ready, State, Input, Restarts, Tmux, Age, Conversation and Attach", func(ctx context.Context) {
		running(ctx, "StandingSession", "hello", `tmuxTarget: loop-standing-hello, restarts: 2`)
		header, rows := table(kubectlOK(ctx, "get", "standing", "-n", ns, "-o", "wide"))
		Expect(header).To(Equal([]string{"NAME", "HOST", "READY", "STATE", "INPUT", "RESTARTS", "TMUX", "AGE", "CONVERSATION", "ATTACH"}))
		Expect(rows["hello"]).To(MatchRegexp(`^hello +build1 +True +Running +Idle +2 +loop-standing-hello +\d+s +0b6b1f0e +tmux attach -t =x *$`))
		header, _ = table(kubectlOK(ctx, "get", "standing", "-n", ns))
		Expect(header).To(Equal([]string{"NAME", "HOST", "READY", "STATE", "INPUT", "RESTARTS", "TMUX", "AGE"}))
	}, NodeTimeout(time.Minute))

	It("get sclass prints Harness, Default, Permissions and Age", func(ctx context.Context) {
		class := object("SessionClass", `{metadata: {labels: {theloop.dev/default-class: "true"}}, spec: {harness: {binary: /opt/claude}}}`)
		mustCreate(ctx, ns, class)
		header, rows := table(kubectlOK(ctx, "get", "sclass", class.GetName(), "-o", "wide"))
		Expect(header).To(Equal([]string{"NAME", "HARNESS", "DEFAULT", "PERMISSIONS", "AGE", "BINARY"}))
		Expect(cells(rows[class.GetName()])).To(HaveExactElements("claude", "true", "Ask", MatchRegexp(`^\d+s$`), "/opt/claude"))
	}, NodeTimeout(time.Minute))

	It("get shost prints Ready, Scheduling, Tmux and Age", func(ctx context.Context) {
		host := object("SessionHost", `spec: {scheduling: Cordoned}`)
		mustCreate(ctx, ns, host)
		setStatus(ctx, host, `status: {tmux: {version: "3.5a", socket: /run/x.sock}, agentInstance: a-1, conditions: [`+cond("Ready", "True", "LeaseRenewed")+`]}`)
		header, rows := table(kubectlOK(ctx, "get", "shost", host.GetName(), "-o", "wide"))
		Expect(header).To(Equal([]string{"NAME", "READY", "SCHEDULING", "TMUX", "AGE", "SOCKET", "AGENT"}))
		Expect(cells(rows[host.GetName()])).To(HaveExactElements("True", "Cordoned", "3.5a", MatchRegexp(`^\d+s$`), "/run/x.sock", "a-1"))
	}, NodeTimeout(time.Minute))

	It("get smsg prints Session, Seq, Outcome, Source and Age", func(ctx context.Context) {
		msg := object("SessionMessage", `{metadata: {name: m1}, spec: {source: {actor: zoe}}}`)
		mustCreate(ctx, ns, msg)
		setStatus(ctx, msg, `status: {sequence: 7, outcome: Submitted, reason: PromptTaken}`)
		header, rows := table(kubectlOK(ctx, "get", "smsg", "-n", ns, "-o", "wide"))
		Expect(header).To(Equal([]string{"NAME", "SESSION", "SEQ", "OUTCOME", "SOURCE", "AGE", "ACTOR", "REASON"}))
		Expect(cells(rows["m1"])).To(HaveExactElements("hello", "7", "Submitted", "Person", MatchRegexp(`^\d+s$`), "zoe", "PromptTaken"))
	}, NodeTimeout(time.Minute))

	It("M8 get theloop lists everything of ours, and only that", func(ctx context.Context) {
		var want []any
		for _, kind := range kinds {
			obj := object(kind)
			mustCreate(ctx, ns, obj)
			want = append(want, strings.ToLower(kind)+".theloop.dev/"+obj.GetName())
		}
		got := strings.Fields(kubectlOK(ctx, "get", "theloop", "-n", ns, "-o", "name"))
		Expect(got).To(ContainElements(want...))
		Expect(got).To(HaveEach(MatchRegexp(`^[a-z]+\.theloop\.dev/`)))
		Expect(kubectlOK(ctx, "get", "theloop", "-n", ns)).To(ContainSubstring("ITEM"))

		got = strings.Fields(kubectlOK(ctx, "get", "all", "-n", ns, "-o", "name"))
		Expect(got).NotTo(ContainElement(ContainSubstring("theloop.dev")))
	}, NodeTimeout(time.Minute))

	It("M9 get theloop -w is refused: one watches a kind by its name", func(ctx context.Context) {
		_, stderr, err := kubectl(ctx, "get", "theloop", "-n", ns, "-w")
		Expect(err).To(HaveOccurred())
		Expect(stderr).To(ContainSubstring("you may only specify a single resource type"))
	}, NodeTimeout(time.Minute))

	It("get --field-selector finds what is bound to a host, and what is to none", func(ctx context.Context) {
		running(ctx, "StandingSession", "bound", `restarts: 0`)
		mustCreate(ctx, ns, object("StandingSession", `metadata: {name: free}`))
		Expect(kubectlOK(ctx, "get", "standing", "-n", ns, "-o", "name", "--field-selector", "spec.hostName=build1")).
			To(Equal("standingsession.theloop.dev/bound\n"))
		Expect(kubectlOK(ctx, "get", "standing", "-n", ns, "-o", "name", "--field-selector", "spec.hostName=")).
			To(Equal("standingsession.theloop.dev/free\n"))
	}, NodeTimeout(time.Minute))

	DescribeTable("explains", func(ctx context.Context, path string, words ...string) {
		var out string
		Eventually(ctx, func(g Gomega) { // the schema is published some time after the CRD
			var err error
			out, _, err = kubectl(ctx, "explain", path)
			g.Expect(err).NotTo(HaveOccurred())
		}).Should(Succeed())
		Expect(out).To(HavePrefix("GROUP:      theloop.dev\n"))
		Expect(out).NotTo(ContainSubstring("<no description>"))
		oneLine := strings.Join(strings.Fields(out), " ")
		for _, word := range words {
			Expect(oneLine).To(ContainSubstring(word))
		}
	},
		explained("workitemsession", "one hosted agent session for one work item"),
		explained("workitemsession.spec", "workItem <Object> -required-", "hostName <string>", "startGates <[]Object>", "enum: Running, Stopped, CleanedUp"),
		explained("worksession.spec.workItem", "number <integer> -required-", "provider <string> -required-"),
		explained("workitemsession.status", "item <string>", "tmuxTarget <string>", "conditions <[]Object>"),
		explained("standingsession.spec", "harnessArgs <[]string>", "An empty list: none.", "autoStart <boolean>"),
		explained("standing.status", "restarts <integer>", "activity <Object>"),
		explained("standingsession.status.conditions", "observedGeneration <integer>"),
		explained("sessionmessage.spec", "text <string> -required-", "ttlSecondsAfterFinished <integer>"),
		explained("sessionmessage.status", "sequence <integer>", "outcome <string>", "enum: Queued, Held, Typed, Submitted, ....", "Queued and Held are not final; only Submitted is success."),
		explained("sclass.spec.tmux", "harnessKillGraceSeconds <integer>", "0 is none"),
		explained("sessionhost.spec", "scheduling <string>", "enum: Enabled, Cordoned, Draining"),
	)

	It("create refuses an unknown field by its name", func(ctx context.Context) {
		file := filepath.Join(GinkgoT().TempDir(), "typo.json")
		obj := object("StandingSession", `{metadata: {name: typo}, spec: {harnesArgs: []}}`)
		Expect(os.WriteFile(file, mustJSON(obj.Object), 0o600)).To(Succeed())
		_, stderr, err := kubectl(ctx, "create", "-n", ns, "-f", file)
		Expect(err).To(HaveOccurred())
		Expect(stderr).To(ContainSubstring(`unknown field "spec.harnesArgs"`))
		obj.SetNamespace(ns)
		expectAbsent(ctx, obj)
	}, NodeTimeout(time.Minute))

	It("create shows a person the allowed form", func(ctx context.Context) {
		file := filepath.Join(GinkgoT().TempDir(), "bad.json")
		obj := object("StandingSession", `{metadata: {name: Supervisor}, spec: {cwd: src}}`)
		Expect(os.WriteFile(file, mustJSON(obj.Object), 0o600)).To(Succeed())
		_, stderr, err := kubectl(ctx, "create", "-n", ns, "-f", file)
		Expect(err).To(HaveOccurred())
		Expect(stderr).To(ContainSubstring(standingName))
		Expect(stderr).To(ContainSubstring("spec.cwd " + absolute))
	}, NodeTimeout(time.Minute))

	It("M11 says what it cannot restart, and the annotation is the way that works", func(ctx context.Context) {
		running(ctx, "StandingSession", "again", `restarts: 0`)
		_, stderr, err := kubectl(ctx, "rollout", "restart", "standing/again", "-n", ns)
		Expect(err).To(HaveOccurred())
		Expect(stderr).To(MatchRegexp(`(?i)(not support|no kind|no matches|is not)`))
		Expect(kubectlOK(ctx, "annotate", "standing/again", "-n", ns, "theloop.dev/restart-requested=token-1")).
			To(Equal("standingsession.theloop.dev/again annotated\n"))
	}, NodeTimeout(time.Minute))
})

func explained(path string, words ...any) TableEntry {
	return Entry(path, append([]any{NodeTimeout(2 * time.Minute), path}, words...)...)
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/testenv/ground"
)

// pair is one row of the table in docs/cli.md.
type pair struct{ verb, kubectl string }

var row = regexp.MustCompile("(?m)^\\| `(the-loop [^`]+)` \\| `(kubectl [^`]+)` \\|$")

// pairs reads the table.
func pairs() []pair {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "cli.md"))
	Expect(err).NotTo(HaveOccurred())
	var out []pair
	for _, m := range row.FindAllStringSubmatch(string(text), -1) {
		out = append(out, pair{m[1], m[2]})
	}
	return out
}

var _ = Describe("the same with kubectl", Ordered, func() {
	var (
		s *stage
		n int
	)
	BeforeAll(func() {
		s = newStage()
		s.create(&api.SessionClass{ObjectMeta: metav1.ObjectMeta{Name: "default", Labels: map[string]string{api.DefaultClassLabel: "true"}}, Spec: api.SessionClassSpec{Harness: api.HarnessSpec{Name: "claude"}}})
		for _, host := range []string{"build-1", "build-2"} {
			s.create(&api.SessionHost{ObjectMeta: metav1.ObjectMeta{Name: host}})
		}
	})

	// room makes a namespace with the objects of the table, and makes it that of the
	// kubeconfig.
	room := func() string {
		GinkgoHelper()
		n++
		ns := fmt.Sprintf("room-%d", n)
		s.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}})
		in := func(o *api.StandingSession) { o.Namespace = ns }
		s.standing("supervisor", alive(api.ReasonIdle, "x"), in)
		s.standing("sleeper", dead(api.ReasonStopped, "x"), in, func(o *api.StandingSession) { o.Spec.State = api.SessionStateStopped })
		s.standing("elsewhere", alive(api.ReasonIdle, "x"), in, func(o *api.StandingSession) { o.Spec.HostName = "build-2" })
		s.item(15, alive(api.ReasonIdle, "x"), func(o *api.WorkItemSession) { o.Namespace = ns })
		s.item(16, dead(api.ReasonStopped, "x"), func(o *api.WorkItemSession) { o.Namespace, o.Spec.State = ns, api.SessionStateStopped })
		m := &api.SessionMessage{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "first"}}
		m.Spec.SessionRef, m.Spec.Text = api.SessionReference{Kind: api.KindStandingSession, Name: "supervisor"}, "first"
		s.create(m)
		var hosts api.SessionHostList
		Expect(s.client.List(context.Background(), &hosts)).To(Succeed())
		for i := range hosts.Items {
			h := &hosts.Items[i]
			h.Annotations, h.Spec.Scheduling = nil, api.HostSchedulingEnabled
			Expect(s.client.Update(context.Background(), h)).To(Succeed())
		}
		k, err := clientcmd.LoadFromFile(s.kubeconfig)
		Expect(err).NotTo(HaveOccurred())
		k.Contexts[k.CurrentContext].Namespace = ns
		Expect(clientcmd.WriteToFile(*k, s.kubeconfig)).To(Succeed())
		return ns
	}
	// left drops the rooms: those of a host are in all namespaces.
	left := func(ns string) {
		GinkgoHelper()
		for _, o := range []client.Object{&api.StandingSession{}, &api.WorkItemSession{}, &api.SessionMessage{}} {
			Expect(s.client.DeleteAllOf(context.Background(), o, client.InNamespace(ns))).To(Succeed())
		}
	}
	// wishes is what is wanted of everything in a room: specs, our labels and annotations.
	wishes := func(ns string) string {
		GinkgoHelper()
		type wish struct {
			Kind, Name    string
			Labels, Notes map[string]string
			Spec          any
		}
		var all []wish
		add := func(kind string, o client.Object, name string, spec any) {
			all = append(all, wish{kind, name, o.GetLabels(), o.GetAnnotations(), spec})
		}
		var standing api.StandingSessionList
		var items api.WorkItemSessionList
		var messages api.SessionMessageList
		var hosts api.SessionHostList
		for list, opts := range map[client.ObjectList][]client.ListOption{
			&standing: {client.InNamespace(ns)}, &items: {client.InNamespace(ns)}, &messages: {client.InNamespace(ns)}, &hosts: nil,
		} {
			Expect(s.client.List(context.Background(), list, opts...)).To(Succeed())
		}
		for i := range standing.Items {
			add("standing", &standing.Items[i], standing.Items[i].Name, standing.Items[i].Spec)
		}
		for i := range items.Items {
			o := &items.Items[i]
			name := o.Name
			if o.Spec.PullRequest != nil {
				name = "of a pull request" // a hash keeps the verb's apart from all others
			}
			add("session", o, name, o.Spec)
		}
		for i := range messages.Items {
			m := &messages.Items[i]
			name := m.Name
			if name != "first" {
				name = "said"
			}
			// The verb knows more: which very session, and who says it.
			m.Spec.SessionRef.UID, m.Spec.Source.Actor = "", ""
			add("message", m, name, m.Spec)
		}
		for i := range hosts.Items {
			add("host", &hosts.Items[i], hosts.Items[i].Name, hosts.Items[i].Spec)
		}
		b, err := json.MarshalIndent(all, "", " ")
		Expect(err).NotTo(HaveOccurred())
		return regexp.MustCompile(`(theloop.dev/[a-z-]+-requested": )"[^"]+"`).ReplaceAllString(string(b), "${1}<token>")
	}

	It("does what the verb does, for each of them", func() {
		kubectl := ground.Kubectl(GinkgoTB())
		table := pairs()
		Expect(len(table)).To(BeNumerically(">", 40))
		for _, p := range table {
			By(p.verb)
			ns := room()
			before := wishes(ns)
			args := strings.Fields(p.verb)[1:]
			if cmd, _, err := (&cli{name: "the-loop"}).root().Find(args); err == nil && cmd.Flags().Lookup("no-wait") != nil {
				args = append(args, "--no-wait")
			}
			// These act on no object, and are shown elsewhere.
			if !slices.Contains(args, "attach") && !slices.Contains(args, "logs") && args[0] != "doctor" {
				a := s.run("", args...)
				Expect(a.Code).To(BeElementOf(0, 1), a.Err)
				if args[0] != "status" {
					Expect(a.Code).To(Equal(0), a.Err)
				}
			}
			byVerb := wishes(ns)
			left(ns)

			ns = room()
			line := exec.Command("bash", "-euc", strings.ReplaceAll(p.kubectl, "kubectl ", kubectl+" "))
			line.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig)
			out, err := line.CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), "%s\n%s", p.kubectl, out)
			Expect(wishes(ns)).To(Equal(byVerb), p.verb)
			reads := slices.ContainsFunc([]string{" get ", " describe ", " auth "}, func(w string) bool { return strings.Contains(p.kubectl, w) })
			unchanged := byVerb == before
			Expect(unchanged).To(Equal(reads || strings.Contains(p.verb, "uncordon") || strings.Contains(p.verb, "resume")), "%s: what was not changed proves nothing", p.verb)
			left(ns)
		}
	})

	It("finds the command line as its plugin", func() {
		dir := GinkgoT().TempDir()
		Expect(os.Symlink(filepath.Join(ground.Programs(GinkgoTB(), "./cmd/the-loop"), "the-loop"), filepath.Join(dir, "kubectl-loop"))).To(Succeed())
		plugin := func(args ...string) string {
			cmd := exec.Command(ground.Kubectl(GinkgoTB()), append([]string{"loop"}, args...)...)
			cmd.Env = append(os.Environ(), "KUBECONFIG="+s.kubeconfig, "PATH="+dir+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			Expect(err).NotTo(HaveOccurred(), string(out))
			return string(out)
		}
		Expect(plugin("classes", "list")).To(MatchRegexp(`(?m)^default +claude +yes`))
		Expect(plugin("sessions", "--help")).To(ContainSubstring("kubectl loop sessions [command]"))
	})

	It("has a row for each verb", func() {
		var verbs []string
		var walk func(*cobra.Command)
		walk = func(cmd *cobra.Command) {
			if !cmd.HasSubCommands() && cmd.Name() != "up" && cmd.Name() != "down" {
				verbs = append(verbs, cmd.CommandPath())
			}
			for _, sub := range cmd.Commands() {
				walk(sub)
			}
		}
		walk((&cli{name: "the-loop"}).root())
		for _, verb := range verbs {
			Expect(slices.ContainsFunc(pairs(), func(p pair) bool { return strings.HasPrefix(p.verb+" ", verb+" ") })).To(BeTrue(), verb)
		}
	})
})

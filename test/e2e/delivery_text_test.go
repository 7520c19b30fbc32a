package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/fakeharness/faketest"
	"github.com/theloop-dev/the-loop/test/testenv"
)

// saying is a text, and what of it the harness is to get.
type saying struct{ text, arrives string }

// sayings are texts that terminals, tmux and harnesses take for something else.
var sayings = []saying{
	{"ok \x1b[201~\r!touch /tmp/pwn\r", "ok \uFFFD[201~\n!touch /tmp/pwn ."}, // P01, C061
	{"line1\r\nline2\rline3", "line1\nline2\nline3"},                         // P03
	{"do it\n", "do it"}, {"do that\r\n\r\n \n", "do that"}, // P04
	{"-x", "-x"}, {"--help", "--help"}, {"-", "-"}, // P23
	{"a;", "a;"}, {";", ";"}, {`\;`, `\;`}, // P24
	{"#1234 fails", "#1234 fails"}, {"@reviewer please", "@reviewer please"}, // P27
	{"read @src/ma", "read @src/ma ."}, {"!ls", "!ls"}, {"/clear", "/clear ."}, // P27
	{"nul \x00 and \x7f", "nul \uFFFD and \uFFFD"}, {"broken \xc3(", "broken \uFFFD("}, // P34
	{"LGTM\U000E0064\U000E0065", "LGTM\uFFFD\uFFFD"}, {"a\u200bb \u202egnp.exe", "ab \uFFFDgnp.exe"}, // P37
	{"a family 👩\u200d👩\u200d👧 🇩🇪", "a family 👩\u200d👩\u200d👧 🇩🇪"}, // P37
}

// byKubectl says a text to a session by a process of its own. body is the text as JSON.
func byKubectl(h *testenv.Host, s testenv.Session, name, body string) *api.SessionMessage {
	GinkgoHelper()
	file := filepath.Join(h.Dir, name+".json")
	Expect(os.WriteFile(file, []byte(`{"apiVersion":"`+api.GroupVersion.String()+`","kind":"SessionMessage","metadata":{"name":"`+name+`"},`+
		`"spec":{"sessionRef":{"kind":"`+s.SessionKind()+`","name":"`+s.GetName()+`"},"text":`+body+`}}`), 0o600)).To(Succeed())
	env.Kubectl("create", "--raw", "/apis/"+api.GroupVersion.String()+"/namespaces/"+h.Namespace+"/sessionmessages", "-f", file)
	return &api.SessionMessage{ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, Name: name}}
}

// says sends a message and waits until the harness has taken it, on however busy a machine.
func says(h *testenv.Host, s testenv.Session, text string) {
	GinkgoHelper()
	h.AwaitOutcome(h.Say(s, text), testenv.Submitted, time.Minute)
}

// bodies are what stands below the first line of each text that was submitted.
func bodies(submits []faketest.Event) (out []string) {
	for _, e := range submits {
		_, body, _ := strings.Cut(e.Text, "\n\n")
		out = append(out, body)
	}
	return out
}

// framed is what a terminal gets of texts that are each in one frame, with neither an escape
// nor a carriage return in it, and followed by one carriage return: nothing else.
const framed = "^(?:\x1b\\[200~[^\x1b\r]*\x1b\\[201~\r)+$"

var _ = Describe("what is said to a session", func() {
	It("P01 P03 P04 P23 P24 P27 P34 P37 P38 P40 P50 C061: arrives in one frame with one submit, whatever it is, and however many say it at once", func() {
		h := env.NewDemoHost("memory", "complete", "think=0")
		s := h.Standing("listener")
		h.Ready(s, time.Minute)
		said := make([]*api.SessionMessage, len(sayings)+1)
		var saying sync.WaitGroup
		for i, t := range sayings {
			saying.Go(func() {
				defer GinkgoRecover()
				if i%3 != 0 {
					said[i] = h.Say(s, t.text)
					return
				}
				body, err := json.Marshal(t.text)
				Expect(err).NotTo(HaveOccurred())
				said[i] = byKubectl(h, s, "by-kubectl-"+itoa(i), string(body))
			})
		}
		saying.Wait()
		said[len(sayings)] = byKubectl(h, s, "surrogate", `"lone \ud800 surrogate"`)
		arrive := []string{"lone \uFFFD surrogate"}
		for _, t := range sayings {
			arrive = append(arrive, t.arrives)
		}
		for _, m := range said {
			h.AwaitOutcome(m, testenv.Submitted, 3*time.Minute) // the last of many may be the first here
		}
		Expect(bodies(h.Submits("Message from your operator"))).To(ConsistOf(arrive))
		Expect(string(h.Log.Input())).To(MatchRegexp(framed))
		Expect(h.Events("frame")).To(HaveLen(len(said) + 1)) // the brief is one more
		Expect(h.Events("submit")).To(HaveLen(len(said) + 1))
		for _, taken := range []string{"shell", "command", "memory", "enter-held"} {
			Expect(h.Events(taken)).To(BeEmpty(), taken)
		}
	})

	It("P28 P29 P32: is refused with nothing typed where nothing is left of it, or where it is too long", func() {
		h := env.NewDemoHost()
		s := h.Standing("silent")
		says(h, s, "the only one")
		before := h.Log.Input()
		create := func(text string) error {
			return env.Client.Create(context.Background(), &api.SessionMessage{
				ObjectMeta: metav1.ObjectMeta{Namespace: h.Namespace, GenerateName: "m-"},
				Spec:       api.SessionMessageSpec{SessionRef: api.SessionReference{Kind: s.SessionKind(), Name: s.Name}, Text: text},
			})
		}
		Expect(create("")).To(MatchError(ContainSubstring("spec.text")))
		Expect(create(strings.Repeat("x", 256<<10+1))).To(MatchError(ContainSubstring("262144")))
		Expect(create(strings.Repeat("語", 100_000))).To(MatchError(ContainSubstring("put more into a file in the session's directory and refer to it")))
		for _, empty := range []string{" \n\t", "\u200b\u2060", "\u200b\r\n\u200b"} {
			h.AwaitOutcome(h.Say(s, empty), "Refused/EmptyText", time.Minute)
		}
		says(h, s, "and this one")
		Expect(bodies(h.Submits("Message from your operator"))).To(Equal([]string{"the only one", "and this one"}))
		Expect(string(h.Log.Input()[len(before):])).To(MatchRegexp(framed))
		Expect(strings.Count(string(h.Log.Input()), "\r")).To(Equal(3), "the brief is one more")
	})

	It("P24: and what a session is made of may end with a semicolon", func() {
		h := env.NewDemoHost()
		h.UpdateClass(h.Class, func(c *api.SessionClass) {
			c.Spec.Harness.Env = append(c.Spec.Harness.Env, api.EnvVar{Name: "SEMICOLON", Value: "value;"}, api.EnvVar{Name: "ESCAPED", Value: `\;`})
			c.Spec.Harness.Args = []string{"--append-system-prompt", "be brief;"}
		})
		dir := filepath.Join(h.Work, "a dir;")
		Expect(os.Mkdir(dir, 0o700)).To(Succeed())
		s := h.Standing("semicolon", func(s *api.StandingSession) { s.Spec.Cwd = dir })
		says(h, s, "are you there;")
		Expect(environOf(h.HarnessPID(s))).To(ContainElements("SEMICOLON=value;", `ESCAPED=\;`))
		started := h.Events("started")
		Expect(started).To(HaveLen(1))
		Expect(started[0].Cwd).To(Equal(dir))
		Expect(started[0].Argv).To(ContainElement("be brief;"))
	})
})

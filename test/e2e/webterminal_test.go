package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/test/browser"
	"github.com/theloop-dev/the-loop/test/testenv"
)

// serveWeb starts the agent of a host anew, with a web terminal on a free port.
func serveWeb(h *testenv.Host, args ...string) {
	GinkgoHelper()
	h.Agent.Stop()
	h.StartAgent(append([]string{"--web-terminal", "--web-terminal-port", "0"}, args...)...)
	Eventually(func() error { _, err := os.Stat(filepath.Join(h.StateDir, "web-terminal", "url")); return err }).Should(Succeed())
}

// webLink is the link to a session that a person is given on its host.
func webLink(h *testenv.Host, group, session string) string {
	GinkgoHelper()
	out, errOut, code := loop(h, group, "attach", "--web", session, "--state-dir", h.StateDir)
	Expect(code).To(Equal(0), errOut)
	return strings.TrimSpace(out)
}

func origin(link string) string {
	scheme, rest, _ := strings.Cut(link, "://")
	host, _, _ := strings.Cut(rest, "/")
	return scheme + "://" + host
}

// webScreen is what a page's terminal shows.
func webScreen(t *browser.Tab) func() (string, error) {
	return func() (string, error) {
		return browser.Eval[string](t, `(() => {
			const b = window.theLoopTerminal?.buffer.active;
			return b ? Array.from({length: b.length}, (_, i) => b.getLine(i).translateToString(true)).join("\n") : "";
		})()`)
	}
}

func webState(t *browser.Tab) func() (string, error) {
	return func() (string, error) {
		return browser.Eval[string](t, `(document.getElementById("state")?.innerText || "").trim()`)
	}
}

var _ = Describe("the web terminal of an agent", func() {
	It("shows a session in Chromium, lets a person type, and leaves the session when it stops", func() {
		chromium := browser.Start()
		h := env.NewDemoHost()
		one, twelve := h.Standing("fox-1"), h.Standing("fox-12")
		h.Ready(one)
		h.Ready(twelve)
		serveWeb(h, "--web-terminal-writable")
		pid := h.HarnessPID(one)

		By("a link that a person gets on the host")
		link := webLink(h, "standing", "fox-1")
		Expect(link).To(MatchRegexp(`^http://127\.0\.0\.1:[0-9]+/login\?next=%2Fsessions%2Fstandingsession%2F` + h.Namespace + `%2Ffox-1#t1\.[A-Za-z0-9_-]+$`))
		t := chromium.Tab()
		t.Go(link)
		Eventually(webScreen(t)).Should(ContainSubstring(`standing session "fox-1"`))
		Expect(webScreen(t)()).NotTo(ContainSubstring("fox-12"))
		Eventually(webState(t)).Should(Equal("read-only"))

		By("typing to the one of two whose names begin alike")
		t.Click("#take")
		Eventually(webState(t)).Should(Equal("you type"))
		t.Type("hello from a browser")
		t.Type("\r")
		Eventually(func() []string {
			var pids []string
			for _, e := range h.Submits("hello from a browser") {
				pids = append(pids, fmt.Sprint(e.PID, " ", e.Text))
			}
			return pids
		}).Should(Equal([]string{fmt.Sprint(pid, " hello from a browser")}))
		Eventually(webScreen(t)).Should(ContainSubstring("hello from a browser"))

		By("what is said through the API arrives all the same")
		m := h.Say(one, "and from a message")
		h.AwaitOutcome(m, "Submitted/PromptTaken")

		By("U10: watching only, once it is stopped")
		env.Update(one, func() { one.Spec.State = api.SessionStateStopped })
		Eventually(webState(t)).Should(Equal("read-only: it is stopped"))

		By("stopping the agent")
		u := chromium.Tab()
		u.Go(origin(link) + "/sessions/standingsession/" + h.Namespace + "/fox-12")
		Eventually(webState(u)).Should(Equal("read-only"))
		survivor := h.HarnessPID(twelve)
		Expect(h.Tmux("list-clients")).NotTo(BeEmpty())
		h.Agent.Stop()
		Eventually(webState(u)).Should(ContainSubstring("disconnected"))
		Eventually(func() string { return h.Tmux("list-clients") }).Should(BeEmpty())
		Expect(h.HarnessPID(twelve)).To(Equal(survivor))
	})

	It("says which host has a session, and what there is not", func() {
		h, other := env.NewDemoHost(), env.NewDemoHost()
		s, there := h.Standing("here"), other.Standing("there")
		h.Ready(s)
		other.Ready(there)
		serveWeb(h)
		c := webClient(webLink(h, "standing", "here"))
		status, body := c("/")
		Expect(status).To(Equal(http.StatusOK))
		Expect(body).To(And(ContainSubstring("standingsession/"+h.Namespace+"/here"), Not(ContainSubstring("there"))))
		status, body = c("/sessions/standingsession/" + other.Namespace + "/there")
		Expect(status).To(Equal(http.StatusConflict))
		Expect(body).To(ContainSubstring("is on host " + other.Name))
		status, body = c("/sessions/standingsession/" + h.Namespace + "/her")
		Expect(status).To(Equal(http.StatusNotFound))
		Expect(body).To(ContainSubstring("There is no session"))
		status, _ = c("/sessions/workitemsession/" + h.Namespace + "/here")
		Expect(status).To(Equal(http.StatusNotFound))
	})

	It("is off by default, and refuses at the start what cannot be served", func() {
		h := env.NewDemoHost()
		s := h.Standing("here")
		h.Ready(s)
		_, errOut, code := loop(h, "standing", "attach", "--web", "here", "--state-dir", h.StateDir)
		Expect(code).To(Equal(2))
		Expect(errOut).To(And(ContainSubstring("no web terminal is served"), ContainSubstring("--web-terminal")))
		h.Agent.Stop()
		for want, args := range map[string][]string{
			"--web-terminal-exposed":                  {"--web-terminal-host", "0.0.0.0"},
			"choose builtin or ttyd":                  {"--web-terminal-provider", "gotty"},
			"needs ttyd 1.7 or newer":                 {"--web-terminal-provider", "ttyd", "--web-terminal-ttyd", "/does/not/exist/ttyd"},
			"cannot listen on 127.0.0.1:":             {"--web-terminal-port", usedPort()},
			"--web-terminal-idle 500ms is not a time": {"--web-terminal-idle", "500ms"},
		} {
			p := h.AgentOn(h.StateDir, append([]string{"--web-terminal"}, args...)...)
			Eventually(p.Session, time.Minute).Should(gexec.Exit(1))
			Expect(string(p.Err.Contents())).To(ContainSubstring(want))
		}
	})
})

// usedPort is a port of 127.0.0.1 that somebody listens on.
func usedPort() string {
	GinkgoHelper()
	u := env.Cluster.Config().Host
	return u[strings.LastIndex(u, ":")+1:]
}

// webClient logs in with the ticket of a link, and returns what gets a page.
func webClient(link string) func(path string) (int, string) {
	GinkgoHelper()
	base := origin(link)
	_, ticket, _ := strings.Cut(link, "#")
	b, err := json.Marshal(map[string]string{"credential": ticket})
	Expect(err).NotTo(HaveOccurred())
	r, err := http.NewRequest(http.MethodPost, base+"/login", strings.NewReader(string(b)))
	Expect(err).NotTo(HaveOccurred())
	r.Header.Set("Origin", base)
	answer, err := http.DefaultClient.Do(r)
	Expect(err).NotTo(HaveOccurred())
	Expect(answer.Body.Close()).To(Succeed())
	Expect(answer.StatusCode).To(Equal(http.StatusNoContent))
	cookie := answer.Cookies()[0]
	return func(path string) (int, string) {
		GinkgoHelper()
		r, err := http.NewRequest(http.MethodGet, base+path, nil)
		Expect(err).NotTo(HaveOccurred())
		r.AddCookie(cookie)
		answer, err := http.DefaultClient.Do(r)
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = answer.Body.Close() }()
		body, err := io.ReadAll(answer.Body)
		Expect(err).NotTo(HaveOccurred())
		return answer.StatusCode, string(body)
	}
}

var _ = Describe("the web terminal of the-loop up", func() {
	It("is as the configuration file says, refused with its place when that is wrong", func() {
		u := newUpState()
		u.declare("routing:\n  webTerminal: {enabled: true, port: 70000, host: example.org, provider: gotty, idle: 3}\n")
		p := u.up()
		Eventually(p.Session, 20*time.Second).Should(gexec.Exit(2))
		Expect(string(p.Err.Contents())).To(And(
			ContainSubstring("routing.webTerminal.port (2:38)"), ContainSubstring("a whole number from 0 to 65535"),
			ContainSubstring("routing.webTerminal.host"), ContainSubstring("give an IP address such as 127.0.0.1, or localhost"),
			ContainSubstring("choose builtin or ttyd"), ContainSubstring("routing.webTerminal.idle")))
		u.declare("routing:\n  webTerminal: {enabled: true, port: 0, host: 0.0.0.0}\n")
		p = u.up()
		Eventually(p.Session, 20*time.Second).Should(gexec.Exit(2))
		Expect(string(p.Err.Contents())).To(ContainSubstring("webTerminal.exposed: true"))

		u.declare("routing:\n  webTerminal: {enabled: true, port: 0, writable: true}\n")
		p = u.up()
		isReady(p)
		Expect(string(p.Err.Contents())).To(MatchRegexp(`web terminal.*http://127\.0\.0\.1:[0-9]+/`))
		link := env.Program("the-loop", append(u.environment(), "KUBECONFIG="+filepath.Join(u.dir, "control-plane", "kubeconfig")),
			"standing", "attach", "--web", "hello", "--state-dir", u.dir)
		Eventually(link.Session, 20*time.Second).Should(gexec.Exit(0))
		status, body := webClient(strings.TrimSpace(string(link.Out.Contents())))("/sessions/standingsession/default/hello")
		Expect(status).To(Equal(http.StatusOK))
		Expect(body).To(ContainSubstring(`data-socket="/terminal/standingsession/default/hello"`))
		p.Stop()
	})
})

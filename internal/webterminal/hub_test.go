//go:build linux

package webterminal_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/coder/websocket"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/webterminal"
	"github.com/theloop-dev/the-loop/test/browser"
)

// ttydAs writes a program that is called ttyd, answers so to --version, and does what
// ttyd does.
func ttydAs(version string) (path, log string) {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	path, log = filepath.Join(dir, "ttyd"), filepath.Join(dir, "log")
	self, err := os.Executable()
	Expect(err).NotTo(HaveOccurred())
	script := fmt.Sprintf("#!/bin/sh\nexport %s='%s' LOOP_TTYD_LOG='%s'\nexec '%s' \"$@\"\n", standInVariable, version, log, self)
	Expect(os.WriteFile(path, []byte(script), 0o755)).To(Succeed())
	return path, log
}

// starts are the process ids and the arguments with which the stand-in was started.
func starts(log string) (pids []int, argv [][]string) {
	b, _ := os.ReadFile(log)
	for line := range strings.Lines(string(b)) {
		pid, args, _ := strings.Cut(strings.TrimSpace(line), " ")
		var p int
		var a []string
		if _, err := fmt.Sscan(pid, &p); err == nil && json.Unmarshal([]byte(args), &a) == nil {
			pids, argv = append(pids, p), append(argv, a)
		}
	}
	return pids, argv
}

var _ = Describe("the provider ttyd", func() {
	const current = "ttyd version 1.7.7-40e79c7"
	byTTYD := func(path string, change ...func(*webterminal.Options)) func(*webterminal.Options) {
		return func(o *webterminal.Options) {
			o.Provider, o.TTYD = webterminal.ProviderTTYD, path
			for _, c := range change {
				c(o)
			}
		}
	}
	watch := func(p *someone) *page {
		GinkgoHelper()
		var g *page
		Eventually(func() error {
			conn, _, err := websocket.Dial(context.Background(), strings.Replace(p.origin(), "http", "ws", 1)+"/hub/ws",
				&websocket.DialOptions{HTTPClient: p.http, HTTPHeader: http.Header{"Origin": {p.origin()}}, Subprotocols: []string{"tty"}})
			if err != nil {
				return err
			}
			g = &page{conn: conn, over: make(chan struct{})}
			return nil
		}).Should(Succeed())
		go g.listen()
		DeferCleanup(func() {
			_ = g.conn.CloseNow()
			<-g.over
		})
		return g
	}
	clients := func(s *stage) string {
		out, _ := exec.Command("tmux", "-S", s.socket, "list-clients", "-F", "#{client_session} #{client_readonly}").Output()
		return strings.TrimSpace(string(out))
	}

	It("ends the connection of who logs out", func() {
		path, _ := ttydAs(current)
		s := newStage(byTTYD(path))
		s.reader("a")
		p := s.person()
		g := watch(p)
		Eventually(g.shown).Should(ContainSubstring("loop-standing-a"))
		r, _ := p.ask(http.MethodPost, "/logout", "", "Origin", p.origin())
		Expect(r.StatusCode).To(Equal(http.StatusNoContent))
		Eventually(g.over).Should(BeClosed())
		Eventually(func() string { return clients(s) }).Should(BeEmpty())
	})

	DescribeTable("the preflight is silent when ttyd will do, and else says what to do", func(version, want string) {
		path := filepath.Join(GinkgoT().TempDir(), "no-ttyd")
		if version != "" {
			path, _ = ttydAs(version)
		}
		s := newStage()
		o := s.web.Options
		o.Provider, o.TTYD, o.Port = webterminal.ProviderTTYD, path, 0
		again := &webterminal.Server{Options: o, Dir: filepath.Join(s.dir, "again"), Terminal: s.tmux, Sessions: s.sessions}
		Expect(again.Open()).To(MatchError(ContainSubstring(want)))
	},
		Entry("missing", "", "needs ttyd 1.7 or newer"),
		Entry("missing, with a way to install it", "", "install"),
		Entry("missing, with a way without it", "", "--web-terminal-provider builtin"),
		Entry("too old to be read-only by default", "ttyd version 1.6.3", "ttyd is version 1.6, but 1.7 is the oldest"),
		Entry("something else", "zsh 5.9", "is this ttyd?"),
	)

	It("shows the shared hub session read-only, behind the same door, and stops with the agent", func() {
		path, log := ttydAs(current)
		s := newStage(byTTYD(path))
		a, _ := s.reader("a")
		r, _ := s.visitor().ask(http.MethodGet, "/hub/", "")
		Expect(r.StatusCode).To(Equal(http.StatusSeeOther))
		p := s.person()
		r, _ = p.ask(http.MethodGet, "/", "")
		Expect(r.Header.Get("Location")).To(Equal("/hub/"))
		var body string
		Eventually(func() int {
			r, body = p.ask(http.MethodGet, "/hub/", "")
			return r.StatusCode
		}).Should(Equal(http.StatusOK))
		// The login's cookie is none of ttyd's business, and its headers are none of the browser's.
		Expect(body).To(ContainSubstring(`cookie=""`))
		Expect(r.Header.Get("Content-Security-Policy")).To(ContainSubstring("frame-ancestors 'none'"))

		one, two := watch(p), watch(p)
		Eventually(one.shown).Should(ContainSubstring("loop-standing-a"))
		Eventually(two.shown).Should(ContainSubstring("loop-standing-a"))
		Expect(clients(s)).To(Equal("the-loop-hub 1\nthe-loop-hub 1"))
		pids, argv := starts(log)
		Expect(pids).To(HaveLen(1))
		Expect(argv[0]).NotTo(ContainElement("-W"))
		Expect(argv[0]).To(ContainElements("-O", filepath.Join(s.web.Dir, "ttyd.sock"), "new-session", "the-loop-hub"))

		s.stop()
		Expect(alive(pids[0])).To(BeFalse())
		Eventually(func() string { return clients(s) }).Should(BeEmpty())
		l, err := s.tmux.Look(context.Background(), a.Target)
		Expect(err).NotTo(HaveOccurred())
		Expect(l.Live).To(BeTrue())
		snap, err := s.tmux.Snapshot(context.Background())
		Expect(err).NotTo(HaveOccurred())
		Expect(snap.Sessions).To(HaveLen(1))
		Expect(tmuxAs("-S", s.socket, "has-session", "-t", "=the-loop-hub")).NotTo(Succeed())
	})

	It("W15: lets people type only where the operator says so", func() {
		path, log := ttydAs(current)
		s := newStage(byTTYD(path, writable))
		a, got := s.reader("a")
		g := watch(s.person())
		Eventually(g.shown).Should(ContainSubstring("loop-standing-a"))
		_, argv := starts(log)
		Expect(argv[0]).To(ContainElement("-W"))
		Expect(clients(s)).To(Equal("the-loop-hub 0"))
		// Into the list's only other session, which is then typed into.
		Expect(g.conn.Write(context.Background(), websocket.MessageBinary, []byte("\x1b[B\x1b[A"))).To(Succeed())
		Expect(tmuxAs("-S", s.socket, "switch-client", "-t", a.Target.SessionID)).To(Succeed())
		Eventually(g.shown).Should(ContainSubstring("READY-a."))
		Expect(g.conn.Write(context.Background(), websocket.MessageBinary, []byte("hello"))).To(Succeed())
		Eventually(got).Should(Equal("hello"))
	})

	It("U02, U04: leads nobody to ttyd from another page, and ttyd listens where nobody else comes", func() {
		path, _ := ttydAs(current)
		s := newStage(byTTYD(path))
		p := s.person()
		for _, origin := range []string{"https://evil.example", ""} {
			header := http.Header{}
			if origin != "" {
				header.Set("Origin", origin)
			}
			_, r, err := websocket.Dial(context.Background(), strings.Replace(p.origin(), "http", "ws", 1)+"/hub/ws", &websocket.DialOptions{HTTPClient: p.http, HTTPHeader: header})
			Expect(err).To(HaveOccurred())
			Expect(r.StatusCode).To(Equal(http.StatusForbidden))
		}
		r, _ := p.ask(http.MethodGet, "/hub/", "", "Host", "evil.example")
		Expect(r.StatusCode).To(Equal(http.StatusMisdirectedRequest))
		Eventually(func() error { _, err := os.Stat(filepath.Join(s.web.Dir, "ttyd.sock")); return err }).Should(Succeed())
		info, err := os.Stat(s.web.Dir)
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode().Perm()).To(Equal(os.FileMode(0o700)))
	})

	It("is started again when it ends by itself, later each time", func() {
		path, log := ttydAs(current)
		s := newStage(byTTYD(path))
		Eventually(func() int { pids, _ := starts(log); return len(pids) }).Should(Equal(1))
		for n := 1; n <= 2; n++ {
			pids, _ := starts(log)
			killed := time.Now()
			Expect(syscall.Kill(pids[n-1], syscall.SIGKILL)).To(Succeed())
			Eventually(func() int { pids, _ := starts(log); return len(pids) }).Should(Equal(n + 1))
			Expect(time.Since(killed)).To(BeNumerically(">=", time.Duration(n)*time.Second))
		}
		p := s.person()
		Eventually(func() int { r, _ := p.ask(http.MethodGet, "/hub/", ""); return r.StatusCode }).Should(Equal(http.StatusOK))
		Expect(s.log.String()).To(ContainSubstring("ttyd ended by itself"))
	})

	It("is the real ttyd in Chromium, where there is one", func() {
		path := os.Getenv("THE_LOOP_TTYD")
		if path == "" {
			var err error
			if path, err = exec.LookPath("ttyd"); err != nil {
				Skip("there is no ttyd here (hack/build-ttyd.sh): the stand-in alone was tested")
			}
		}
		s := newStage(byTTYD(path))
		s.reader("a")
		t := browser.Start().Tab()
		t.Go(webterminal.LoginURL(s.web.URL(), "/hub/", s.ticket()))
		hub := func() (string, error) {
			return browser.Eval[string](t, `(() => {
				const b = window.term?.buffer.active;
				return b ? Array.from({length: b.length}, (_, i) => b.getLine(i)?.translateToString(true) ?? "").join("\n") : "";
			})()`)
		}
		Eventually(hub).Should(ContainSubstring("loop-standing-a"))
		Expect(t.URL()).To(Equal(s.origin() + "/hub/"))
		Expect(clients(s)).To(Equal("the-loop-hub 1"))
		// What is typed would leave the list.
		t.Type("q\r")
		Consistently(hub, "300ms").Should(ContainSubstring("loop-standing-a"))
		s.stop()
		Eventually(func() string { return clients(s) }).Should(BeEmpty())
		_, err := net.Dial("unix", filepath.Join(s.web.Dir, "ttyd.sock"))
		Expect(err).To(HaveOccurred())
	})
})

package session_test

import (
	"context"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	testclock "k8s.io/utils/clock/testing"

	"github.com/theloop-dev/the-loop/internal/session"
	"github.com/theloop-dev/the-loop/internal/tmux"
)

var _ = Describe("what is retained of deleted sessions", func() {
	var (
		ctx    context.Context
		dir    string
		server *tmux.Server
		clock  *testclock.FakePassiveClock
		engine *session.Engine
	)

	BeforeEach(func() {
		ctx = context.Background()
		var err error
		dir, err = os.MkdirTemp("", "reap") // a short path: it holds a socket
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(os.RemoveAll, dir)
		server, err = tmux.New(tmux.Config{Socket: filepath.Join(dir, "t", "s")})
		Expect(err).NotTo(HaveOccurred())
		epoch, err := server.Ensure(ctx)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(server.Shutdown(context.Background(), epoch)).To(Succeed()) })
		clock = testclock.NewFakePassiveClock(time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC))
		engine = &session.Engine{
			Terminal: server, Lister: &session.Lister{Source: server}, Dir: dir, Clock: clock,
			KnownUID: func(string) bool { return false },
		}
	})

	// retained makes a terminal whose object is gone, with the time until which it is kept.
	retained := func(name, uid, until string, argv ...string) (sign string) {
		GinkgoHelper()
		_, err := server.Spawn(ctx, tmux.SpawnRequest{Name: name, UID: uid, Generation: "1", Dir: dir, Argv: argv})
		Expect(err).NotTo(HaveOccurred())
		sign = filepath.Join(dir, "sessions", uid)
		Expect(os.MkdirAll(sign, 0o700)).To(Succeed())
		if until != "" {
			Expect(os.WriteFile(filepath.Join(sign, "retain-until"), []byte(until), 0o600)).To(Succeed())
		}
		return sign
	}
	names := func() (out []string) {
		snap, err := server.Snapshot(ctx)
		Expect(err).NotTo(HaveOccurred())
		for _, s := range snap.Sessions {
			if s.Panes[0].Dead || s.Name == "lives" {
				out = append(out, s.Name)
			}
		}
		return out
	}

	It("is closed when its time is over, and nothing else is", func() {
		over := retained("over", "uid-over", "2030-01-02T11:00:00Z\n", "/bin/true", "x")
		early := retained("early", "uid-early", "2030-01-02T13:00:00Z\n", "/bin/true", "x")
		forever := retained("forever", "uid-forever", "", "/bin/true", "x")
		lives := retained("lives", "uid-lives", "2030-01-02T11:00:00Z\n", "/bin/sleep", "1000")
		Eventually(names).Should(ConsistOf("over", "early", "forever", "lives"))
		engine.Reap(ctx)
		Expect(names()).To(ContainElement("over"), "T36: it has to be seen to be due twice")
		engine.Reap(ctx)
		Expect(names()).To(ConsistOf("early", "forever", "lives"))
		Expect(over).NotTo(BeADirectory())
		for _, d := range []string{early, forever, lives} {
			Expect(d).To(BeADirectory())
		}
	})

	It("T36: stays when only the clock jumped ahead and back", func() {
		retained("kept", "uid-kept", "2030-01-02T13:00:00Z\n", "/bin/true", "x")
		Eventually(names).Should(ConsistOf("kept"))
		clock.SetTime(clock.Now().Add(2 * time.Hour))
		engine.Reap(ctx)
		clock.SetTime(clock.Now().Add(-2 * time.Hour))
		engine.Reap(ctx)
		clock.SetTime(clock.Now().Add(2 * time.Hour))
		engine.Reap(ctx)
		Expect(names()).To(ConsistOf("kept"))
		engine.Reap(ctx)
		Expect(names()).To(BeEmpty())
	})

	It("stays while an object of its UID exists", func() {
		engine.KnownUID = func(uid string) bool { return uid == "uid-known" }
		retained("known", "uid-known", "2030-01-02T11:00:00Z\n", "/bin/true", "x")
		Eventually(names).Should(ConsistOf("known"))
		engine.Reap(ctx)
		engine.Reap(ctx)
		Expect(names()).To(ConsistOf("known"))
	})
})

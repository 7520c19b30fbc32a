//go:build linux

package webterminal_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/coder/websocket"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/tmux"
	"github.com/theloop-dev/the-loop/internal/webterminal"
)

var _ = Describe("a viewer", func() {
	It("is shown exactly its session, and types nothing", func() {
		s := newStage()
		a, got := s.reader("x-1")
		b, _ := s.reader("x-12")
		p := s.person()
		one, twelve := p.open(a), p.open(b)
		Eventually(one.shown).Should(ContainSubstring("READY-x-1."))
		Eventually(twelve.shown).Should(ContainSubstring("READY-x-12."))
		Expect(one.shown()).NotTo(ContainSubstring("x-12"))
		Eventually(one.told("columns")).Should(BeEquivalentTo(80))
		Expect(one.told("rows")()).To(BeEquivalentTo(25))
		Expect(one.told("writable")()).To(BeFalse())
		one.says("keys", "typed")
		Eventually(one.noticed).Should(ContainSubstring("you only watch"))
		one.says("take", "")
		Eventually(one.noticed).Should(ContainSubstring("This web terminal is read-only"))
		one.says("paste", "pasted")
		Eventually(func() int { return strings.Count(one.noticed(), "you only watch") }).Should(Equal(2))
		Expect(got()).To(BeEmpty())
	})

	It("U07, U12: has the keys when it takes them, and each byte of them is a key of the harness alone", func() {
		s := newStage(writable)
		a, got := s.reader("a")
		s.reader("b")
		g := s.person().open(a)
		Eventually(g.told("writer")).Should(Equal("nobody"))
		g.says("keys", "too early")
		Eventually(g.noticed).Should(ContainSubstring("you only watch"))
		g.says("take", "")
		Eventually(g.told("writer")).Should(Equal("you"))
		keys := "hé\x02s\x02w\x02)\x02:kill-server\r\x03\x04\x1b[98;5u\x1b\x02\x02\x7f"
		g.says("keys", keys)
		Eventually(got).Should(Equal(keys))
		Expect(s.clients(a)).To(HaveLen(1))
		Expect(g.shown()).NotTo(ContainSubstring("READY-b."))
		many := strings.Repeat("0123456789", 2000)
		g.says("keys", many)
		Eventually(got).Should(Equal(keys + many))
		g.says("release", "")
		Eventually(g.told("writer")).Should(Equal("nobody"))
		g.says("keys", "late")
		Eventually(func() int { return strings.Count(g.noticed(), "you only watch") }).Should(Equal(2))
		Expect(got()).To(Equal(keys + many))
	})

	It("U08, P01: pastes a text in one frame, whatever is in it", func() {
		s := newStage(writable)
		a, got := s.reader("a")
		g := s.person().open(a)
		g.says("take", "")
		g.says("paste", "one\ntwo\n\x1b[201~\x03three")
		Eventually(got).Should(HaveSuffix("\x1b[201~"))
		Expect(got()).To(HavePrefix("\x1b[200~one\ntwo\n"))
		Expect(strings.Count(got(), "\x1b")).To(Equal(2))
		Expect(got()).NotTo(ContainSubstring("\x03"))
		Eventually(g.noticed).Should(ContainSubstring("left out of what you pasted"))
		before := got()
		g.says("paste", strings.Repeat("x", 64<<10+1))
		Eventually(g.noticed).Should(ContainSubstring("at most 65536 are taken"))
		g.says("paste", " \n ")
		Eventually(g.noticed).Should(ContainSubstring("nothing in it"))
		Expect(got()).To(Equal(before))
		g.says("paste", strings.Repeat("ö", 32<<10))
		Eventually(func() int { return len(got()) }).Should(Equal(len(before) + 64<<10 + 12))
	})

	It("has the keys alone, until another takes them over in so many words", func() {
		s := newStage(writable)
		a, got := s.reader("a")
		first, second := s.person().open(a), s.person().open(a)
		first.says("take", "")
		Eventually(first.told("writer")).Should(Equal("you"))
		Eventually(second.told("writer")).Should(Equal("other"))
		second.says("take", "")
		Eventually(second.noticed).Should(ContainSubstring("Somebody else types here now"))
		second.says("keys", "refused")
		Eventually(second.noticed).Should(ContainSubstring("you only watch"))
		Expect(got()).To(BeEmpty())
		second.says("takeover", "")
		Eventually(second.told("writer")).Should(Equal("you"))
		Eventually(first.told("writer")).Should(Equal("other"))
		Expect(first.noticed()).To(ContainSubstring("took the keys over"))
		first.says("keys", "refused")
		Eventually(first.noticed).Should(ContainSubstring("you only watch"))
		second.says("keys", "mine")
		Eventually(got).Should(Equal("mine"))
		// Who leaves takes nothing with it.
		Expect(second.conn.Close(websocket.StatusNormalClosure, "")).To(Succeed())
		Eventually(first.told("writer")).Should(Equal("nobody"))
	})

	It("U10: watches only what has ended, or is to end", func() {
		s := newStage(writable)
		a, got := s.reader("a")
		g := s.person().open(a)
		g.says("take", "")
		Eventually(g.told("writer")).Should(Equal("you"))
		s.change(a.Ref, func(v *webterminal.Session) { v.Ended = "it is stopped" })
		Eventually(g.told("ended")).Should(Equal("it is stopped"))
		Eventually(g.told("writer")).Should(Equal("nobody"))
		g.says("keys", "x")
		g.says("takeover", "")
		Eventually(g.noticed).Should(ContainSubstring("read-only"))
		Expect(got()).To(BeEmpty())

		go1 := filepath.Join(s.dir, "go")
		b := s.standing("b", `echo; echo LAST-WORDS; while [ ! -e "$0" ]; do sleep 0.02; done`, go1)
		h := s.person().open(b)
		h.says("take", "")
		Eventually(h.told("writer")).Should(Equal("you"))
		Expect(os.WriteFile(go1, nil, 0o600)).To(Succeed())
		Eventually(h.told("live")).Should(BeFalse())
		Expect(h.told("ended")()).To(Equal("its harness has ended"))
		Eventually(h.told("writer")).Should(Equal("nobody"))
		h.says("keys", "x")
		h.says("take", "")
		Eventually(h.noticed).Should(ContainSubstring("is a record"))
		Eventually(s.person().open(b).shown).Should(ContainSubstring("LAST-WORDS"))
	})

	It("is told to come back when the session is another one, and that it is gone when it is", func() {
		s := newStage()
		a, _ := s.reader("a")
		b, _ := s.reader("b")
		p := s.person()
		g, h, k := p.open(a), p.open(a), p.open(b)
		Eventually(k.shown).Should(ContainSubstring("READY-b."))
		_, err := s.tmux.KillSession(context.Background(), b.Target)
		Expect(err).NotTo(HaveOccurred())
		Eventually(k.ended).Should(HavePrefix("4001 "))
		Expect(k.shown()).NotTo(ContainSubstring("READY-a."))
		s.change(a.Ref, func(v *webterminal.Session) { v.UID = "another" })
		Eventually(g.ended).Should(Equal("4001 the session was started anew"))
		Eventually(h.ended).Should(HavePrefix("4001 "))
		n := p.open(a)
		s.remove(a.Ref)
		Eventually(n.ended).Should(Equal("4000 There is no session standingsession/default/a"))
		Expect(s.clients(a)).To(BeEmpty())
	})

	It("is not taken to have left a session that its client has not come to yet", func() {
		dir := GinkgoT().TempDir()
		gate, slow := filepath.Join(dir, "gate"), filepath.Join(dir, "tmux")
		program := "#!/bin/sh\ncase \"$*\" in *attach-session*) until [ -e " + gate + " ]; do sleep 0.05; done;; esac\nexec tmux \"$@\"\n"
		Expect(os.WriteFile(slow, []byte(program), 0o700)).To(Succeed())
		s := newStageBy(slow)
		a, _ := s.reader("a")
		g := s.person().open(a)
		Consistently(g.ended, 10*s.web.LookEvery).Should(BeEmpty())
		Expect(os.WriteFile(gate, nil, 0o600)).To(Succeed())
		Eventually(g.shown).Should(ContainSubstring("READY-a."))
	})

	It("U12: is dropped when somebody leads its client to another session", func() {
		s := newStage()
		a, _ := s.reader("a")
		b, _ := s.reader("b")
		g := s.person().open(a)
		Eventually(g.shown).Should(ContainSubstring("READY-a."))
		person := []string{"-S", s.socket, "switch-client", "-t", b.Target.SessionID}
		Expect(tmuxAs(person...)).To(Succeed())
		Eventually(g.ended).Should(Equal("4001 the view left the session"))
	})

	It("follows the size of the session, and does not change it", func() {
		s := newStage()
		a, _ := s.reader("a")
		g := s.person().open(a)
		Eventually(g.told("columns")).Should(BeEquivalentTo(80))
		Expect(tmuxAs("-S", s.socket, "resize-window", "-t", a.Target.SessionID, "-x", "90", "-y", "20")).To(Succeed())
		Eventually(g.told("columns")).Should(BeEquivalentTo(90))
		Consistently(func() tmux.Size {
			l, err := s.tmux.Look(context.Background(), a.Target)
			Expect(err).NotTo(HaveOccurred())
			return l.Size
		}, "1500ms").Should(Equal(tmux.Size{Columns: 90, Rows: 21}))
	})

	It("is dropped when nobody is seen there, and kept while somebody is", func() {
		s := newStage(func(o *webterminal.Options) { o.Idle = 2 * time.Second })
		a, _ := s.reader("a")
		idle, busy := s.person().open(a), s.person().open(a)
		stop := make(chan struct{})
		DeferCleanup(func() { close(stop) })
		go func() {
			tick := time.NewTicker(500 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-stop:
					return
				case <-tick.C:
					_ = busy.conn.Write(context.Background(), websocket.MessageText, []byte(`{"type":"here"}`))
				}
			}
		}()
		Eventually(idle.ended).Should(Equal("4002 nobody was seen here for 2s"))
		Consistently(busy.ended, "2s").Should(BeEmpty())
	})

	It("is one of as many as there may be", func() {
		s := newStage(func(o *webterminal.Options) { o.MaxClients = 2 })
		a, _ := s.reader("a")
		p := s.person()
		first := p.open(a)
		p.open(a)
		_, status, err := p.dial(a.Ref.String(), p.origin())
		Expect(err).To(HaveOccurred())
		Expect(status).To(Equal(http.StatusServiceUnavailable))
		Expect(first.conn.Close(websocket.StatusNormalClosure, "")).To(Succeed())
		Eventually(func() error {
			_, _, err := p.dial(a.Ref.String(), p.origin())
			return err
		}).Should(Succeed())
	})

	It("is dropped for what no page of ours sends", func() {
		s := newStage()
		a, _ := s.reader("a")
		p := s.person()
		g := p.open(a)
		Expect(g.conn.Write(context.Background(), websocket.MessageBinary, []byte("x"))).To(Succeed())
		Eventually(g.ended).Should(HavePrefix("1008 "))
		g = p.open(a)
		g.says("kill", "")
		Eventually(g.ended).Should(HavePrefix("1008 "))
		g = p.open(a)
		_ = g.conn.Write(context.Background(), websocket.MessageText, make([]byte, 600<<10))
		Eventually(g.ended).Should(Or(HavePrefix("1009 "), Equal("broken")))
		Eventually(func() []int { return s.clients(a) }).Should(BeEmpty())
	})

	It("ends with the agent, its tmux client too, and the session does not", func() {
		s := newStage(writable)
		a, got := s.reader("a")
		p := s.person()
		g, h := p.open(a), p.open(a)
		g.says("take", "")
		Eventually(g.told("writer")).Should(Equal("you"))
		Eventually(h.shown).Should(ContainSubstring("READY-a."))
		clients := s.clients(a)
		Expect(clients).To(HaveLen(2))
		s.stop()
		Eventually(g.ended).Should(Equal("4004 the agent stops"))
		Eventually(h.ended).Should(Equal("4004 the agent stops"))
		for _, pid := range clients {
			Expect(alive(pid)).To(BeFalse())
		}
		l, err := s.tmux.Look(context.Background(), a.Target)
		Expect(err).NotTo(HaveOccurred())
		Expect(l).To(And(HaveField("Live", true), HaveField("Clients", BeEmpty())))
		r, err := s.tmux.Keys(context.Background(), a.Target, []byte("still"))
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Outcome).To(Equal(tmux.Done))
		Eventually(got).Should(Equal("still"))
		_, err = os.Stat(filepath.Join(s.web.Dir, "url"))
		Expect(err).To(MatchError(os.ErrNotExist))
	})
})

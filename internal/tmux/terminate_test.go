//go:build linux

package tmux

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/gomega"
)

var _ = with("ClearDead", func(bin string) {
	ctx := context.Background()

	It("removes a dead session with the stamp that is named, and says when there is none", func() {
		f := started(bin)
		t := f.spawn("dead", "/bin/sh", "-c", "exit 1")
		f.died("dead")
		r, err := f.ClearDead(ctx, t.SessionID, newUID(), t.Epoch)
		Expect(err).NotTo(HaveOccurred())
		Expect(r).To(And(HaveField("Outcome", Refused), HaveField("Detail", ContainSubstring("not ours"))))
		Expect(outcome(f.ClearDead(ctx, t.SessionID, "", t.Epoch))).To(Equal(Refused), "it has a stamp")
		Expect(outcome(f.ClearDead(ctx, t.SessionID, t.UID, Epoch{PID: t.Epoch.PID, StartTime: 1}))).To(Equal(Refused))
		Expect(f.names()).To(ConsistOf("dead"))
		Expect(outcome(f.ClearDead(ctx, t.SessionID, t.UID, t.Epoch))).To(Equal(Done))
		Expect(f.names()).To(BeEmpty())
		Expect(outcome(f.ClearDead(ctx, t.SessionID, t.UID, t.Epoch))).To(Equal(Gone))
		killPID(f.epoch.PID)
		Eventually(func() (Outcome, error) {
			r, err := f.ClearDead(ctx, t.SessionID, t.UID, t.Epoch)
			return r.Outcome, err
		}).Should(Equal(Gone))
		f.seen = seenServer{}
		Expect(outcome(f.ClearDead(ctx, t.SessionID, t.UID, t.Epoch))).To(Equal(Gone))
	})

	It("never removes a live session, ours or foreign, not even one with a single live pane in another window", func() {
		f := started(bin)
		t := f.spawn("ours")
		f.person("new-session", "-d", "-s", "foreign", "--", "/bin/sleep", "infinity")
		half := f.spawn("half", "/bin/sh", "-c", "exit 1")
		f.died("half")
		f.person("new-window", "-d", "-t", "=half:", "exec sleep infinity")
		foreign := f.session("foreign")
		r, err := f.ClearDead(ctx, half.SessionID, half.UID, half.Epoch)
		Expect(err).NotTo(HaveOccurred())
		Expect(r).To(And(HaveField("Outcome", Refused), HaveField("Detail", ContainSubstring(`panes="DL"`))))
		Expect(outcome(f.ClearDead(ctx, t.SessionID, t.UID, t.Epoch))).To(Equal(Refused))
		Expect(outcome(f.ClearDead(ctx, foreign.ID, "", t.Epoch))).To(Equal(Refused))
		Expect(outcome(f.ClearDead(ctx, foreign.ID, newUID(), t.Epoch))).To(Equal(Refused))
		Expect(f.names()).To(ConsistOf("ours", "foreign", "half"))
	})

	It("removes a dead session without a stamp only when that is what is asked for", func() {
		f := started(bin)
		f.person("new-session", "-d", "-s", "foreign", "--", "/bin/sh", "-c", "exit 0")
		f.died("foreign")
		id := f.session("foreign").ID
		Expect(outcome(f.ClearDead(ctx, id, newUID(), f.epoch))).To(Equal(Refused))
		f.person("set-option", "-t", "=foreign:", "@loop_uid", "a|b")
		Expect(outcome(f.ClearDead(ctx, id, "", f.epoch))).To(Equal(Refused), "it has a stamp that is not ours")
		f.person("set-option", "-u", "-t", "=foreign:", "@loop_uid")
		Expect(outcome(f.ClearDead(ctx, id, "", f.epoch))).To(Equal(Done))
		Expect(f.names()).To(BeEmpty())
	})

	It("T22: does not remove a session whose program has left the terminal and lives", func() {
		f := started(bin)
		file := filepath.Join(f.dir, "pid") // a dead pane has none since tmux 3.8
		t := f.spawn("away", "/bin/sh", "-c", "trap '' HUP; exec </dev/null >/dev/null 2>&1; echo $$ >"+file+"; sleep infinity & wait")
		var pid int
		Eventually(func() error {
			text, err := os.ReadFile(file)
			if err == nil {
				pid, err = strconv.Atoi(strings.TrimSpace(string(text)))
			}
			return err
		}).Should(Succeed())
		if f.olderThan(parseVersion("3.7")) {
			Eventually(func() Pane { return f.session("away").Panes[0] }).Should(HaveField("Dead", true))
		}
		if f.olderThan(v33) {
			Skip("tmux 3.2 cannot tell")
		}
		for range 5 {
			Expect(outcome(f.ClearDead(ctx, t.SessionID, t.UID, t.Epoch))).To(Equal(Refused))
		}
		Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Succeed())
		f.died("away")
		Expect(outcome(f.ClearDead(ctx, t.SessionID, t.UID, t.Epoch))).To(Equal(Done))
	})

	It("N01, N07: takes ids only", func() {
		f := unstarted(bin)
		for _, id := range []string{"", "loop-a-1", "=loop-a-1:", "%1", "$", "$1:"} {
			_, err := f.ClearDead(ctx, id, "u", Epoch{PID: 2, StartTime: 3})
			Expect(err).To(MatchError(ContainSubstring("session id")), "%q", id)
		}
	})
})

var _ = with("KillSession", func(bin string) {
	ctx := context.Background()

	It("N01, T20: ends ours with every window in it, and no other", func() {
		f := started(bin)
		t, twin := f.spawn("loop-a-1"), f.spawn("loop-a-12")
		f.person("new-session", "-d", "-s", "foreign", "--", "/bin/sleep", "infinity")
		f.person("new-window", "-t", "=loop-a-1:", "exec sleep infinity")
		foreign := f.session("foreign")
		for _, not := range []Target{
			{UID: twin.UID, SessionID: t.SessionID, PaneID: t.PaneID, Epoch: t.Epoch},
			{UID: t.UID, SessionID: foreign.ID, Epoch: t.Epoch},
			{UID: t.UID, SessionID: t.SessionID, PaneID: t.PaneID, Epoch: Epoch{PID: t.Epoch.PID, StartTime: 1}},
		} {
			Expect(outcome(f.KillSession(ctx, not))).To(Equal(Refused))
		}
		Expect(f.names()).To(ConsistOf("loop-a-1", "loop-a-12", "foreign"))
		Expect(outcome(f.KillSession(ctx, t))).To(Equal(Done))
		Expect(outcome(f.KillSession(ctx, t))).To(Equal(Gone))
		Expect(f.names()).To(ConsistOf("loop-a-12", "foreign"))
	})
})

var _ = with("Signal", func(bin string) {
	ctx := context.Background()
	// trap is a program that says which signal it got and ends.
	trap := []string{"/bin/sh", "-c", `trap 'echo GOT; exit 4' TERM; echo READY; while :; do sleep 0.01; done`}

	It("reaches the program of every live pane of our session, and of no other", func() {
		f := started(bin)
		t, other := f.spawn("loop-a-1", trap...), f.spawn("loop-a-12", trap...)
		f.ready(t)
		f.ready(other)
		f.person("split-window", "-d", "-t", "=loop-a-1:", "exec sleep infinity")
		f.person("new-window", "-d", "-t", "=loop-a-1:", "exit 0")
		Eventually(func() bool { p := f.session("loop-a-1").Panes; return len(p) == 3 && p[2].Dead && !p[2].Dying }).Should(BeTrue())
		t.PaneID = ""
		r, err := f.Signal(ctx, t, syscall.SIGTERM)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Outcome).To(Equal(Done))
		Expect(strings.Count(r.Detail, "TERM to ")).To(Equal(2))
		s := f.died("loop-a-1")
		Eventually(func() bool { return f.session("loop-a-1").Live() }).Should(BeFalse())
		Expect(*s.Panes[0].ExitStatus).To(Equal(4))
		Expect(f.session("loop-a-12").Live()).To(BeTrue())
		r, err = f.Signal(ctx, t, syscall.SIGKILL)
		Expect(err).NotTo(HaveOccurred())
		Expect(r).To(And(HaveField("Outcome", Refused), HaveField("Detail", ContainSubstring("every pane is dead"))))
		Expect(f.snapshot().Epoch).To(Equal(f.epoch))
	})

	It("T20: reaches the harness's pane alone, and not what a person opened beside it", func() {
		f := started(bin)
		t := f.spawn("loop-a-1", trap...)
		f.ready(t)
		f.person("split-window", "-d", "-t", "=loop-a-1:", "exec sleep infinity")
		r, err := f.Signal(ctx, t, syscall.SIGTERM)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Outcome).To(Equal(Done))
		Expect(strings.Count(r.Detail, "TERM to ")).To(Equal(1))
		Eventually(func() bool { p, ok := f.session("loop-a-1").Pane(t.PaneID); return ok && p.Dead }).Should(BeTrue())
		Expect(f.session("loop-a-1").Live()).To(BeTrue())
	})

	It("N19: never reaches a foreign session, another stamp, or another server's", func() {
		f := started(bin)
		t := f.spawn("ours")
		f.person("new-session", "-d", "-s", "foreign", "--", "/bin/sleep", "infinity")
		foreign := f.session("foreign")
		for _, not := range []Target{
			{UID: t.UID, SessionID: foreign.ID, PaneID: foreign.Panes[0].ID, Epoch: t.Epoch},
			{UID: newUID(), SessionID: t.SessionID, PaneID: t.PaneID, Epoch: t.Epoch},
			{UID: t.UID, SessionID: t.SessionID, PaneID: t.PaneID, Epoch: Epoch{PID: t.Epoch.PID, StartTime: 1}},
		} {
			Expect(outcome(f.Signal(ctx, not, syscall.SIGKILL))).To(Equal(Refused))
		}
		Expect(outcome(f.Signal(ctx, Target{UID: t.UID, SessionID: "$999", Epoch: t.Epoch}, syscall.SIGKILL))).To(Equal(Gone))
		_, err := f.Signal(ctx, t, 0)
		Expect(err).To(MatchError(ContainSubstring("is no signal")))
		Expect(f.session("ours").Live()).To(BeTrue())
		Expect(f.session("foreign").Live()).To(BeTrue())
	})

	It("signals only what the second look confirms: the same process, live, in a session that is ours", func() {
		f := started(bin)
		t := f.spawn("a")
		pid := f.session("a").Panes[0].PID
		for change, says := range map[string]string{
			"s/[|]0[|][|][|]/|1|||/":                   "every pane is dead",      // it died
			fmt.Sprintf("s/[|]%d[|]/|1%d|/", pid, pid): "no live process",         // it is another process
			"s/[|]" + t.UID + "[|]/|other|/":           "not ours",                // it was given away
			"s/|[$][0-9]*|/|$99|/":                     "the session has no pane", // it is another session
			"s/LOOP-\\(.*\\)|[0-9]*|/LOOP-\\1|4711|/":  "another server",
		} {
			count := filepath.Join(f.dir, "count")
			Expect(os.WriteFile(count, nil, 0o600)).To(Succeed())
			f.binary = script(f.dir, "second", `case "$*" in *"list-panes -s"*) echo >>`+count+`; [ $(wc -l <`+count+`) = 2 ] && exec sh -c '`+
				lookPath(bin)+` "$@" | sed "$0"' '`+change+`' "$@";; esac; exec `+lookPath(bin)+` "$@"`)
			r, err := f.Signal(ctx, t, syscall.SIGKILL)
			f.binary = lookPath(bin)
			Expect(err).NotTo(HaveOccurred(), change)
			Expect(r.Outcome).NotTo(Equal(Done), change)
			Expect(r.Detail).To(ContainSubstring(says), change)
			Expect(fileText(count)).To(Equal("\n\n"))
			Expect(gonePID(pid)).To(BeFalse(), change)
			f.seen = seenServer{}
			f.snapshot()
		}
	})

	It("never takes the server, this process, init or a group for a pane's program", func() {
		t := Target{Epoch: Epoch{PID: 4711}}
		for _, pid := range []int{-4711, -1, 0, 1, 4711, os.Getpid()} {
			Expect(t.mayBeSignalled(pid)).To(BeFalse())
		}
		Expect(t.mayBeSignalled(4712)).To(BeTrue())
		for _, pid := range []int{-1, 0, 1} {
			_, err := openProcess(pid)
			Expect(err).To(HaveOccurred())
		}
	})

	It("lets a server in another pid namespace signal its own processes", func() {
		needNamespace("--pid", "--fork", "--kill-child")
		dir := shortDir()
		wrapper := script(dir, "tmux", `case "$*" in *" -D "*) exec unshare --pid --fork --kill-child `+lookPath(bin)+` "$@";; esac
exec `+lookPath(bin)+` "$@"`)
		f := started(wrapper)
		Expect(f.epoch.PID).To(Equal(1))
		Expect(f.pidsVisible(f.epoch)).To(BeFalse())
		t := f.spawn("a", trap...)
		f.ready(t)
		inside := f.session("a").Panes[0].PID
		Expect(inside).To(BeNumerically("<", 100))
		f.WatchPanes([]int{inside})
		r, err := f.Signal(ctx, t, syscall.SIGTERM)
		Expect(err).NotTo(HaveOccurred())
		Expect(r).To(And(HaveField("Outcome", Done), HaveField("Detail", ContainSubstring("through the server"))))
		Expect(*f.died("a").Panes[0].ExitStatus).To(Equal(4))
		Expect(outcome(f.Signal(ctx, t, syscall.SIGTERM))).To(Equal(Refused))
	})
})

var _ = with("Retain", func(bin string) {
	ctx := context.Background()

	It("T34: keeps what ends in every window, whatever a person has set there", func() {
		f := started(bin)
		t := f.spawn("a")
		f.person("new-window", "-t", "=a:", "exec sleep infinity")
		f.person("split-window", "-t", "=a:", "exec sleep infinity")
		for _, p := range f.session("a").Panes {
			f.person("set-option", "-w", "-t", p.WindowID, "remain-on-exit", "off")
		}
		Expect(outcome(f.Retain(ctx, t))).To(Equal(Done))
		t.PaneID = ""
		Expect(outcome(f.Signal(ctx, t, syscall.SIGKILL))).To(Equal(Done))
		Eventually(func() bool { return f.session("a").Live() }).Should(BeFalse())
		Expect(f.session("a").Panes).To(HaveLen(3))
	})

	It("changes nothing that is not ours", func() {
		f := started(bin)
		t := f.spawn("a")
		f.person("set-option", "-w", "-t", "=a:", "remain-on-exit", "off")
		other := t
		other.UID = newUID()
		Expect(outcome(f.Retain(ctx, other))).To(Equal(Refused))
		Expect(f.person("show-options", "-wv", "-t", "=a:", "remain-on-exit")).To(Equal("off"))
		Expect(outcome(f.KillSession(ctx, t))).To(Equal(Done))
		Expect(outcome(f.Retain(ctx, t))).To(Equal(Gone))
	})
})

var _ = with("EndProcesses", func(bin string) {
	ctx := context.Background()

	It("T22: ends what a session left behind: stubborn, in other groups and sessions, orphaned", func() {
		f := started(bin)
		// Each line survives kill-session, a hangup and SIGTERM to the group.
		body := `trap '' HUP TERM
pids=` + f.dir + `/pids
sh -c 'trap "" HUP TERM; echo $$ >>'$pids'; while :; do sleep 0.05; done' &
setsid sh -c 'trap "" HUP TERM; echo $$ >>'$pids'; while :; do sleep 0.05; done' &
nohup sh -c 'echo $$ >>'$pids'; exec sleep infinity' >/dev/null 2>&1 &
(setsid sh -c 'echo $$ >>'$pids'; exec sleep infinity' &)
echo $$ >>$pids; echo READY
while :; do sleep 0.05; done`
		t := f.spawn("a", "/bin/bash", "-m", "-c", body)
		bystander := f.spawn("b")
		Eventually(func() int { data, _ := os.ReadFile(f.dir + "/pids"); return strings.Count(string(data), "\n") }).Should(Equal(5))
		Expect(outcome(f.KillSession(ctx, t))).To(Equal(Done))
		left, err := Sweep(t.UID)
		Expect(err).NotTo(HaveOccurred())
		Expect(len(left)).To(BeNumerically(">=", 5))
		ended, err := EndProcesses(ctx, t.UID, 100*ms)
		Expect(err).NotTo(HaveOccurred())
		for _, line := range strings.Fields(fileText(f.dir + "/pids")) {
			var pid int
			_, err := fmt.Sscan(line, &pid)
			Expect(err).NotTo(HaveOccurred())
			Expect(ended).To(ContainElement(pid))
			Expect(gonePID(pid)).To(BeTrue(), "%d", pid)
		}
		Expect(Sweep(t.UID)).To(BeEmpty())
		Expect(EndProcesses(ctx, t.UID, 0)).To(BeEmpty())
		Expect(Sweep(bystander.UID)).To(HaveLen(1))
		Expect(f.session("b").Live()).To(BeTrue())
	})

	It("lets a program end by itself within the grace time", func() {
		f := started(bin)
		t := f.spawn("a", "/bin/sh", "-c", `trap 'exit 0' TERM; echo READY; while :; do sleep 0.01; done`)
		f.ready(t)
		Expect(EndProcesses(ctx, t.UID, 10*1000*ms)).NotTo(BeEmpty())
		Expect(*f.died("a").Panes[0].ExitStatus).To(Equal(0))
	})

	It("leaves out what is excluded, tmux servers, and other users' processes", func() {
		uid := newUID()
		GinkgoT().Setenv("LOOP_UID", uid) // as for a server that somebody starts inside of a session
		f := unstarted(bin)
		f.uids = append(f.uids, uid)
		cmd := detachedServer(f, uid)
		Expect(marked(cmd, uid)).To(BeFalse())
		sp, err := f.Spawn(ctx, SpawnRequest{Name: "a", UID: uid, Generation: "1", Dir: f.dir, Argv: []string{"/bin/sleep", "infinity"}})
		Expect(err).NotTo(HaveOccurred())
		// This server hands its mark to every helper that it runs for a moment, too.
		Eventually(func() ([]int, error) { return Sweep(uid) }).Should(ConsistOf(sp.PanePID))
		Expect(Sweep(uid, sp.PanePID)).To(BeEmpty())
		Expect(EndProcesses(ctx, uid, 0, sp.PanePID)).To(BeEmpty())
		Expect(Sweep(uid)).To(ConsistOf(sp.PanePID))
		if os.Geteuid() == 0 {
			stop := sleeperAs(65534, uid)
			defer stop()
			Expect(Sweep(uid)).To(ConsistOf(sp.PanePID))
		}
	})

	It("H18: names what a session has started, by its age", func() {
		f := started(bin)
		t := f.spawn("a", "/bin/sh", "-c", "sleep 1000 & wait")
		pane := f.session("a").Panes[0].PID
		children := func(least, most time.Duration) func() ([]string, error) {
			return func() (names []string, err error) {
				all, err := Children(t.UID, least, most, pane)
				for _, c := range all {
					names = append(names, c.Name)
					Expect(c.PID).NotTo(Equal(pane))
				}
				return names, err
			}
		}
		Eventually(children(0, time.Hour)).Should(Equal([]string{"sleep"}))
		Expect(children(time.Hour, 2*time.Hour)()).To(BeEmpty())
		Eventually(children(0, ms)).Should(BeEmpty())
		_, err := Children("*", 0, time.Hour)
		Expect(err).To(HaveOccurred())
	})

	It("ends with its context, and refuses a UID that could match anything", func() {
		f := started(bin)
		t := f.spawn("a", "/bin/sh", "-c", `trap '' TERM; echo READY; while :; do sleep 0.05; done`)
		f.ready(t)
		short, cancel := context.WithTimeout(ctx, 100*ms)
		defer cancel()
		_, err := EndProcesses(short, t.UID, 60*1000*ms)
		Expect(err).To(MatchError(context.DeadlineExceeded))
		for _, uid := range []string{"", "a b", "*", "a\x00"} {
			_, err := Sweep(uid)
			Expect(err).To(HaveOccurred())
			_, err = EndProcesses(ctx, uid, 0)
			Expect(err).To(HaveOccurred())
		}
		Expect(filepath.Join(f.dir, "x")).NotTo(BeAnExistingFile())
	})
})

var _ = Describe("Stamp", func() {
	It("puts the stamp on our pane's session that lost it, and on no other", func() {
		f, ctx := started(binaries()[0]), context.Background()
		t := f.spawn("a")
		f.person("set-option", "-u", "-t", "=a:", "@loop_uid")
		Expect(f.session("a").UID).To(BeEmpty())
		wrong := t
		wrong.Epoch.StartTime++
		Expect(outcome(f.Stamp(ctx, wrong, "g"))).To(Equal(Refused))
		Expect(outcome(f.Stamp(ctx, t, "g2"))).To(Equal(Done))
		Expect(f.session("a")).To(And(HaveField("UID", t.UID), HaveField("Generation", "g2")))
		other := t
		other.UID = newUID()
		Expect(outcome(f.Stamp(ctx, other, "g"))).To(Equal(Refused))
		Expect(f.session("a").UID).To(Equal(t.UID))
	})
})

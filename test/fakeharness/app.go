package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// eventRoom is how many events may wait for the main loop.
const eventRoom = 1024

// app is the running program. Its fields belong to the main loop: readers, timers
// and hooks run beside it and hand their results to it with post.
type app struct {
	opts     options
	modes    modes
	eaten    [][]byte
	log      *eventLog
	home     string
	cwd      string
	started  time.Time
	settings settings

	store  store
	conv   *conversation
	id     string
	source string // startup or resume
	picker bool   // the conversation is to be picked by a person

	events  chan func()
	pending sync.WaitGroup // hooks under way

	parser  parser
	box     box
	dialog  *dialog
	dialogs []*dialog // those that wait for the open one
	turns   turns
	scr     screen

	ready      bool
	framing    bool
	vimNormal  bool
	vimVisual  bool      // and not vimNormal
	pendingD   bool      // vim: one d was typed
	limitEnds  time.Time // of the behaviour usage-limit, zero when it has no end
	lastInput  time.Time
	lastPaste  time.Time
	pasted     bool // since the last submit
	imageHeld  bool
	notice     string // one line above the box
	quitArmed  bool   // ^C was pressed once
	status     string
	waitingFor string
	statusTime time.Time

	ending, done bool
	code         int
}

// post hands f to the main loop.
func (a *app) post(f func()) { a.events <- f }

// after runs f on the main loop after d.
func (a *app) after(d time.Duration, f func()) {
	time.AfterFunc(d, func() { a.post(f) })
}

// main runs the program on its terminal and returns the exit code.
func (a *app) main() int {
	if a.opts.print {
		return a.printOnly()
	}
	old, err := term.MakeRaw(0)
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error: raw mode is not supported on this terminal:", err)
		return 1
	}
	a.scr.open(a)
	a.watchSignals()
	a.begin()
	go a.readInput()
	a.nextStartDialog(a.startDialogs())
	for !a.done {
		a.draw()
		(<-a.events)()
		for len(a.events) > 0 && !a.done {
			(<-a.events)()
		}
	}
	a.scr.close(a)
	_ = term.Restore(0, old)
	fmt.Print(a.farewell())
	a.log.event("exit", fields{"code": a.code})
	return a.code
}

// farewell is what stands on the terminal afterwards.
func (a *app) farewell() string {
	if len(a.conv.turns) == 0 {
		return ""
	}
	return fmt.Sprintf("\nResume this conversation with:\n  fakeharness --resume %s\n", a.id)
}

// begin starts what the behaviours say happens at or after the start.
func (a *app) begin() {
	if late, ok := a.modes.millis("framing-late"); ok {
		a.after(late, a.enableFraming)
	} else if !a.modes.has("no-framing") {
		a.enableFraming()
	}
	if d, ok := a.modes.millis("flush-input"); ok {
		a.after(d, a.flushInput)
	}
	a.applyNow(a.modes)
}

// applyNow starts what a behaviour that came into force does by itself.
func (a *app) applyNow(m modes) {
	if d, ok := m.millis("exit-after"); ok {
		code, _ := a.modes.number("exit")
		a.after(d, func() { a.finish(code, "other") })
	}
	if d, ok := m.millis("crash-after"); ok {
		a.after(d, crash)
	}
	if m.has("children") {
		a.startChildren(m.list("children"))
	}
	a.applyToConfig(m)
	if m.has("spin") {
		go func() {
			for n := uint64(1); n != 0; n += 2 { // odd, so never zero
			}
		}()
	}
	if n, ok := m.number("eat"); ok {
		go a.eat(n)
	}
	if d, ok := m.millis("usage-limit"); ok && d > 0 {
		a.limitEnds = time.Now().Add(d)
		a.after(d, func() { delete(a.modes, "usage-limit") })
	}
	if d, ok := m.millis("discard"); ok && d > 0 {
		a.after(d, func() { delete(a.modes, "discard") })
	}
	if m.has("discard") {
		a.scr.add(entry{marker: "⚠ ", style: styleWarn, text: "You've hit your usage limit · resets later"})
	}
	if m.has("menu") {
		a.openMenu("Menu")
	}
	if m.has("extended-keys") {
		a.scr.raw("\x1b[>4;2m\x1b[>1u")
	}
	if n, ok := m.numberOr("output", 1000); ok {
		for i := 1; i <= n; i++ {
			a.scr.add(entry{marker: "  ", text: fmt.Sprintf("line %d of %d", i, n)})
		}
		delete(a.modes, "output")
	}
}

// eat takes memory, a megabyte at a time.
func (a *app) eat(megabytes int) {
	const megabyte = 1 << 20
	for range megabytes {
		bite := make([]byte, megabyte)
		for i := range bite {
			bite[i] = 1 // until then it is a promise
		}
		a.eaten = append(a.eaten, bite)
	}
}

func (a *app) enableFraming() {
	a.framing, a.parser.framing = true, true
	a.scr.raw("\x1b[?2004h")
	a.log.event("framing-on", nil)
}

// flushInput throws away what the terminal and this program hold of the input.
func (a *app) flushInput() {
	_ = unix.IoctlSetInt(0, unix.TCFLSH, unix.TCIFLUSH)
	a.parser = parser{framing: a.framing}
	a.box.clear()
	a.log.event("input-flushed", nil)
}

// watchSignals makes the program end as the real one does.
func (a *app) watchSignals() {
	on := func(sig os.Signal, f func()) {
		c := make(chan os.Signal, 1)
		signal.Notify(c, sig)
		go func() {
			for range c {
				a.post(f)
			}
		}()
	}
	ignorable := func(sig syscall.Signal, mode string) func() {
		return func() {
			a.log.event("signal", fields{"signal": unix.SignalName(sig)})
			if !a.modes.has(mode) {
				const signalBase = 128
				a.finish(signalBase+int(sig), "other")
			}
		}
	}
	on(syscall.SIGTERM, ignorable(syscall.SIGTERM, "ignore-term"))
	on(syscall.SIGHUP, ignorable(syscall.SIGHUP, "ignore-hup"))
	on(syscall.SIGINT, func() {
		a.log.event("signal", fields{"signal": "SIGINT"})
		if a.turns.busy {
			a.interrupt()
			return
		}
		a.finish(0, "other")
	})
	on(syscall.SIGQUIT, func() { a.log.event("signal", fields{"signal": "SIGQUIT"}) })
	on(syscall.SIGWINCH, a.scr.resize)
}

// readInput reads the terminal until it is gone.
func (a *app) readInput() {
	size, pause := 64<<10, time.Duration(0)
	if n, ok := a.modes.number("slow-read"); ok {
		size, pause = max(1, n), 10*time.Millisecond
	}
	buf := make([]byte, size)
	for {
		n, err := os.Stdin.Read(buf)
		if n > 0 {
			chunk := append([]byte(nil), buf[:n]...)
			a.log.event("input", fields{"raw": chunk})
			a.post(func() { a.input(chunk) })
			time.Sleep(pause)
		}
		if err != nil {
			a.post(func() {
				if !a.modes.has("ignore-hup") {
					a.finish(128+int(syscall.SIGHUP), "other")
				}
			})
			return
		}
	}
}

// becomeReady is the moment when no dialog is in the way any more.
func (a *app) becomeReady() {
	if a.modes.has("never-ready") {
		a.log.event("not-ready", nil)
		return
	}
	a.runHooks("SessionStart", hookInput{"source": a.source, "model": a.opts.model}, func(hookResult) {
		a.ready = true
		a.showStatus()
		a.log.event("ready", fields{"id": a.id, "source": a.source})
		if p := a.opts.prompt; p != "" {
			a.submit(p)
		}
	})
}

// showStatus writes the session file when the status changed.
func (a *app) showStatus() {
	status, waitingFor := "idle", ""
	switch {
	case a.dialog != nil:
		status, waitingFor = "waiting", a.dialog.waitingFor
	case a.turns.busy:
		status = "busy"
	}
	if !a.ready || a.ending || a.status == status && a.waitingFor == waitingFor {
		return
	}
	a.status, a.waitingFor, a.statusTime = status, waitingFor, time.Now()
	a.writeSessionFile()
}

func (a *app) writeSessionFile() {
	data, err := json.Marshal(sessionFile{
		PID: os.Getpid(), SessionID: a.id, Cwd: a.cwd, StartedAt: a.started.UnixMilli(), Version: version,
		Kind: "interactive", Status: a.status, WaitingFor: a.waitingFor,
		StatusUpdatedAt: a.statusTime.UnixMilli(), ProcStart: procStart(),
	})
	if err == nil {
		_ = writeAtomically(a.sessionPath(), data)
	}
}

// endWithin bounds the end: hooks that take longer are left behind.
const endWithin = 3 * time.Second

// finish ends the program in good order: what was said is written down, the
// SessionEnd hook runs, the session file goes.
func (a *app) finish(code int, reason string) {
	if a.ending {
		return
	}
	a.ending, a.code = true, code
	a.turns.flush(a)
	quit := func() {
		_ = os.Remove(a.sessionPath())
		a.done = true
	}
	a.runHooks("SessionEnd", hookInput{"reason": reason}, func(hookResult) { quit() })
	a.after(endWithin, quit)
}

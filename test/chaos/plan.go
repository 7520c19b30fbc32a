package chaos

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/theloop-dev/the-loop/internal/faultpoint"
)

// Options of a run. The same options give the same texts, senders and faults in the same
// order; what they meet is up to the machine.
type Options struct {
	Seed               uint64
	Messages, Sessions int
	// Duration is how long messages are sent and things go wrong. What takes minutes to
	// recover from happens from a minute on only.
	Duration time.Duration
}

func (o Options) String() string {
	return fmt.Sprintf("--seed %d --messages %d --sessions %d --duration %s", o.Seed, o.Messages, o.Sessions, o.Duration)
}

// long reports whether there is time for what takes minutes to recover from.
func (o Options) long() bool { return o.Duration >= time.Minute }

// random is a stream of numbers of its own, for each use.
func (o Options) random(use uint64) *rand.Rand { return rand.New(rand.NewPCG(o.Seed, use)) }

// Kind is what goes wrong.
type Kind string

// Kinds of faults. Those of an agent come at a random moment, or at a named point.
const (
	KillAgent   Kind = "agent killed"
	StopAgent   Kind = "agent stopped"
	FailWrite   Kind = "write refused, or its answer lost"
	FullDisk    Kind = "disk full"
	JumpClock   Kind = "clock jumps"
	StopServer  Kind = "terminal server stopped"
	KillServer  Kind = "terminal server killed"
	KillHarness Kind = "harness killed"
	StopHarness Kind = "harness stopped"
	Restart     Kind = "restart asked for"
	StopAPI     Kind = "API server stopped"
	RestartAPI  Kind = "API server restarted"
	KillHub     Kind = "controller killed"
	StopHub     Kind = "controller stopped"
	CopyMode    Kind = "copy mode"
	Split       Kind = "pane split"
	Watch       Kind = "read-only client"
	Visit       Kind = "writable client"
	InputOff    Kind = "input off"
	Hold        Kind = "messages held"
	Drop        Kind = "messages dropped"
	Pause       Kind = "session paused"
	Recall      Kind = "messages recalled"
	Delete      Kind = "message deleted"
	Drain       Kind = "host drained"
)

// Mishap is one thing that goes wrong.
type Mishap struct {
	Kind Kind
	// Point of the program at which it does, "" for any moment.
	Point string
	// Session is the place of the session that it is about.
	Session int
	// Gap is the time since the one before began, For how long it lasts.
	Gap, For time.Duration
	// Times is how often a write fails, or by how many seconds the clock jumps.
	Times int
}

func (m Mishap) String() string {
	s := string(m.Kind)
	if m.Point != "" {
		s += " at " + m.Point
	}
	return fmt.Sprintf("%s (session %d, %d) for %s", s, m.Session, m.Times, m.For.Round(time.Millisecond))
}

// share is how often a kind comes, and how long it lasts at most in a short run and in a
// long one.
type share struct {
	kind        Kind
	weight      int
	short, long time.Duration
}

var shares = []share{
	{KillAgent, 8, time.Second, 2 * time.Second},
	{StopAgent, 6, time.Second, 5 * time.Second},
	{FailWrite, 5, time.Second, 3 * time.Second},
	{FullDisk, 3, time.Second, 4 * time.Second},
	{JumpClock, 2, time.Second, 5 * time.Second},
	{StopServer, 3, time.Second, 8 * time.Second},
	{KillServer, 1, 0, time.Second},
	{KillHarness, 3, time.Second, time.Second},
	{StopHarness, 4, time.Second, 8 * time.Second},
	{Restart, 2, time.Second, time.Second},
	{StopAPI, 2, time.Second, 8 * time.Second},
	{RestartAPI, 1, 0, 3 * time.Second},
	{KillHub, 2, time.Second, 3 * time.Second},
	{StopHub, 2, time.Second, 5 * time.Second},
	{CopyMode, 4, time.Second, time.Second},
	{Split, 3, 2 * time.Second, 5 * time.Second},
	{Watch, 2, 2 * time.Second, 5 * time.Second},
	{Visit, 2, 2 * time.Second, 5 * time.Second},
	{InputOff, 2, time.Second, 3 * time.Second},
	{Hold, 2, time.Second, 3 * time.Second},
	{Drop, 1, time.Second, 2 * time.Second},
	{Pause, 2, time.Second, 3 * time.Second},
	{Recall, 3, time.Second, time.Second},
	{Delete, 2, time.Second, time.Second},
	{Drain, 1, 0, 4 * time.Second},
}

// Plan is the schedule of a run.
func Plan(o Options) []Mishap {
	r := o.random(0)
	total := 0
	for _, s := range shares {
		if s.short > 0 || o.long() {
			total += s.weight
		}
	}
	var out []Mishap
	for at := time.Duration(0); ; {
		m := draw(o, r, total)
		if at += m.Gap; at >= o.Duration {
			return out
		}
		out = append(out, m)
	}
}

func draw(o Options, r *rand.Rand, total int) Mishap {
	n := r.IntN(total)
	var chosen share
	for _, s := range shares {
		if s.short == 0 && !o.long() {
			continue
		}
		if n -= s.weight; n < 0 {
			chosen = s
			break
		}
	}
	most := chosen.short
	if o.long() {
		most = chosen.long
	}
	m := Mishap{
		Kind: chosen.kind, Session: r.IntN(o.Sessions), Times: 1 + r.IntN(3),
		Gap: between(r, 50*time.Millisecond, 1200*time.Millisecond), For: between(r, 50*time.Millisecond, most),
	}
	point := r.IntN(4 * len(faultpoint.Points))
	switch m.Kind {
	case KillAgent, StopAgent:
		// Three of four at a point.
		if point >= len(faultpoint.Points) {
			m.Point = faultpoint.Points[point%len(faultpoint.Points)]
		}
	case FailWrite:
		m.Point = faultpoint.Failing[point%(len(faultpoint.Failing)-1)] // the last is the disk
	case FullDisk:
		m.Point = faultpoint.AttemptWrite
	case JumpClock:
		m.Times = (1 + r.IntN(7200)) * (1 - 2*r.IntN(2))
	}
	return m
}

func between(r *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(r.Int64N(int64(most-least)+1))
}

package session

import (
	"fmt"

	"github.com/theloop-dev/the-loop/internal/tmux"
	"github.com/theloop-dev/the-loop/internal/workitem"
)

// Names are the terminal names that a session may have, best first: the second is
// taken when a session of another object holds the first.
type Names struct {
	Preferred, Disambiguated string
}

// Sighting is what a snapshot shows of one session.
type Sighting struct {
	Holder Holder
	// Name is the terminal name that the session has or would get.
	Name string
	// Session is the holder, when there is one.
	Session tmux.Session
	// Pane is the harness's own pane, when the holder is ours.
	Pane tmux.Pane
	// Detail names a holder that is not ours, with what a person can do.
	Detail string
	// OccupantKnown: the occupant belongs to an object of this host.
	OccupantKnown bool
	// Twins counts further live sessions with our UID: a fault to be reported.
	Twins int
}

// Hints are the command lines that a person is told.
type Hints interface {
	AttachCommand(session string, readOnly bool) string
	KillCommand(session string) string
}

// Record is what an object's status says of its terminal session.
type Record struct {
	UID, Target, PaneID, Epoch, LaunchID string
}

// Sight finds a session in a snapshot. known tells whether a UID belongs to an
// object of this host.
func Sight(snap tmux.Snapshot, rec Record, names Names, known func(uid string) bool, hints Hints) Sighting {
	if mine := snap.ByUID(rec.UID); len(mine) > 0 {
		return sightOurs(mine, rec, snap.Epoch)
	}
	if s, ok := unstamped(snap, rec); ok {
		return sightOurs([]tmux.Session{s}, rec, snap.Epoch)
	}
	candidates := []string{names.Preferred, names.Disambiguated}
	if rec.Target == names.Disambiguated {
		candidates = candidates[1:]
	}
	var out Sighting
	for _, name := range candidates {
		out = occupant(snap, name, known, hints)
		if out.Holder == HolderLiveOther || out.Holder == HolderDeadOther && out.OccupantKnown {
			continue
		}
		break
	}
	return out
}

// unstamped finds a session that lost its stamp by what the record says: this very
// pane, in this very life of the server. A record that names a terminal which cannot be
// ours is not believed (C094).
func unstamped(snap tmux.Snapshot, rec Record) (tmux.Session, bool) {
	if rec.PaneID == "" || rec.Epoch != snap.Epoch.String() || !workitem.OursTarget(rec.Target) {
		return tmux.Session{}, false
	}
	for _, s := range snap.Sessions {
		if _, ok := s.Pane(rec.PaneID); ok && s.UID == "" {
			return s, true
		}
	}
	return tmux.Session{}, false
}

// sightOurs chooses among the sessions with our UID: one in which the harness lives
// first, then one that lives at all, and among equals the launch on record. So a dead
// session never hides a live one, which would be ended by what is done to the dead.
func sightOurs(mine []tmux.Session, rec Record, epoch tmux.Epoch) Sighting {
	var best Sighting
	live := 0
	for i, s := range mine {
		if s.Live() {
			live++
		}
		next := Sighting{Name: s.Name, Session: s, Pane: harnessPane(s, rec, epoch)}
		next.Holder = holderOf(next.Pane, s)
		if i == 0 || better(next, best, rec) {
			best = next
		}
	}
	if best.Session.Live() {
		live--
	}
	best.Twins = live
	return best
}

func holderOf(harness tmux.Pane, s tmux.Session) Holder {
	switch {
	case !harness.Dead:
		return HolderLiveOurs
	case s.Live():
		return HolderShared
	}
	return HolderDeadOurs
}

// better reports whether a is to be preferred to b.
func better(a, b Sighting, rec Record) bool {
	if a.Holder != b.Holder {
		return a.Holder == HolderLiveOurs || a.Holder == HolderShared && b.Holder == HolderDeadOurs
	}
	return rec.LaunchID != "" && a.Session.Generation == rec.LaunchID && b.Session.Generation != rec.LaunchID
}

// harnessPane is the pane on record. Where the record is not of this session it is the
// first: the one tmux made when the session was created has the lowest id.
func harnessPane(s tmux.Session, rec Record, epoch tmux.Epoch) tmux.Pane {
	if rec.PaneID != "" && rec.Epoch == epoch.String() && (s.UID == "" || s.Generation == rec.LaunchID) {
		if p, ok := s.Pane(rec.PaneID); ok {
			return p
		}
		// It was closed. What is left was opened by a person: nothing may be typed into it.
		return tmux.Pane{ID: rec.PaneID, Dead: true}
	}
	if len(s.Panes) == 0 {
		return tmux.Pane{Dead: true}
	}
	first := s.Panes[0]
	for _, p := range s.Panes {
		if len(p.ID) < len(first.ID) || len(p.ID) == len(first.ID) && p.ID < first.ID {
			first = p
		}
	}
	return first
}

func occupant(snap tmux.Snapshot, name string, known func(string) bool, hints Hints) Sighting {
	out := Sighting{Name: name, Holder: HolderAbsent}
	s, ok := snap.ByName(name)
	if !ok {
		return out
	}
	out.Session = s
	out.OccupantKnown = s.UID != "" && known(s.UID)
	switch live := s.Live(); {
	case s.UID == "" && live:
		out.Holder = HolderLiveForeign
	case s.UID == "":
		out.Holder = HolderDeadForeign
	case live:
		out.Holder = HolderLiveOther
	default:
		out.Holder = HolderDeadOther
	}
	who := "was not started by the-loop"
	if s.UID != "" {
		who = "belongs to the object with UID " + s.UID
	}
	out.Detail = fmt.Sprintf("the terminal session %s is taken: it %s and is left alone. Look at it with: %s. To free the name, end it yourself: %s",
		name, who, hints.AttachCommand(name, true), hints.KillCommand(name))
	return out
}

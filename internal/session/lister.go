package session

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/theloop-dev/the-loop/internal/tmux"
)

// Source is where a Lister's snapshots come from.
type Source interface {
	Snapshot(ctx context.Context) (tmux.Snapshot, error)
	Events(ctx context.Context) <-chan struct{}
	WatchPanes(pids []int)
}

// Lister keeps the newest snapshot of a host's terminal server. Listing again is
// the truth; events only hurry it (the kubelet's pod lifecycle event generator
// works the same way).
type Lister struct {
	// Source of snapshots.
	Source Source
	// Interval between listings; stretched, up to 5 seconds, when one takes more than a
	// twentieth of it. 0 is one second.
	Interval time.Duration
	// Changed is told the UIDs and names of sessions that differ from the listing
	// before. all is true when everything may have changed: the first answer, another
	// life of the server, or an answer after none.
	Changed func(uids, names []string, all bool)
	Log     logr.Logger

	mu   sync.Mutex
	last tmux.Snapshot
	err  error
	// newest is when the listing began that last and err come from.
	newest time.Time
}

// maxStretch bounds the interval of a host with very many sessions.
const maxStretch = 5 * time.Second

var errNotListed = errors.New("the terminal server has not been listed yet")

// Latest returns the newest snapshot, or why there is none.
func (l *Lister) Latest() (tmux.Snapshot, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil && l.last.Taken.IsZero() {
		return tmux.Snapshot{}, errNotListed
	}
	return l.last, l.err
}

// Refresh lists now. The snapshot that it returns is newer than the call.
func (l *Lister) Refresh(ctx context.Context) (tmux.Snapshot, error) {
	began := time.Now()
	snap, err := l.Source.Snapshot(ctx)
	if err == nil {
		began = snap.Taken
	} else if ctx.Err() != nil {
		// The caller went away: that says nothing of the terminal server.
		return snap, err
	}
	l.store(began, snap, err)
	return snap, err
}

// Start lists until ctx ends. It is a manager's Runnable.
func (l *Lister) Start(ctx context.Context) error {
	interval := l.Interval
	if interval <= 0 {
		interval = time.Second
	}
	events := l.Source.Events(ctx)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, open := <-events:
			if !open {
				events = nil
			}
		case <-timer.C:
		}
		began := time.Now()
		_, err := l.Refresh(ctx)
		if err != nil && ctx.Err() == nil {
			l.Log.V(1).Info("terminal server not listed", "reason", err.Error())
		}
		next := interval
		if err == nil {
			next = max(interval, min(20*time.Since(began), maxStretch))
		}
		timer.Reset(next)
	}
}

func (l *Lister) store(began time.Time, snap tmux.Snapshot, err error) {
	l.mu.Lock()
	// Two listings may overtake each other: the older one has nothing to say, an error
	// neither.
	if began.Before(l.newest) {
		l.mu.Unlock()
		return
	}
	before, hadErr := l.last, l.err
	l.err, l.newest = err, began
	if err == nil {
		l.last = snap
	}
	l.mu.Unlock()

	if l.Changed == nil {
		return
	}
	if err != nil {
		if hadErr == nil {
			l.Changed(nil, nil, true)
		}
		return
	}
	l.Source.WatchPanes(livePIDs(snap))
	if hadErr != nil || before.Taken.IsZero() || before.Epoch != snap.Epoch {
		l.Changed(nil, nil, true)
		return
	}
	if uids, names := difference(before, snap); len(uids)+len(names) > 0 {
		l.Changed(uids, names, false)
	}
}

func livePIDs(snap tmux.Snapshot) []int {
	var pids []int
	for _, s := range snap.Sessions {
		for _, p := range s.Panes {
			if s.UID != "" && !p.Dead && p.PID > 1 {
				pids = append(pids, p.PID)
			}
		}
	}
	return pids
}

// unmarked is a session without what we alone write into it when we type.
func unmarked(s tmux.Session) tmux.Session {
	s.Pasted, s.Submitted, s.Notice = "", "", ""
	return s
}

// difference names the sessions that changed in what decisions depend on.
func difference(before, after tmux.Snapshot) (uids, names []string) {
	old := make(map[string]tmux.Session, len(before.Sessions))
	for _, s := range before.Sessions {
		old[s.ID] = s
	}
	note := func(s tmux.Session) {
		if s.UID != "" {
			uids = append(uids, s.UID)
		}
		names = append(names, s.Name)
	}
	for _, s := range after.Sessions {
		b, ok := old[s.ID]
		delete(old, s.ID)
		if !ok || !reflect.DeepEqual(unmarked(b), unmarked(s)) {
			note(s)
			if ok && (b.Name != s.Name || b.UID != s.UID) {
				// Somebody may wait for what it was.
				note(b)
			}
		}
	}
	for _, s := range old {
		note(s)
	}
	return uids, names
}

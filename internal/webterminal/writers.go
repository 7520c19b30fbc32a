package webterminal

import "sync"

// writers knows who has the keys of each session: one at a time.
type writers struct {
	mu sync.Mutex
	by map[string]*viewer // by the UID of the session
}

// take gives v the keys, if nobody has them or when it takes them over; lost is who had
// them.
func (w *writers) take(v *viewer, over bool) (ok bool, lost *viewer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch before := w.by[v.session.UID]; {
	case before == v:
		return true, nil
	case before != nil && !over:
		return false, nil
	case before != nil:
		lost = before
	}
	if w.by == nil {
		w.by = map[string]*viewer{}
	}
	w.by[v.session.UID] = v
	return true, lost
}

// release takes the keys from v, if it has them.
func (w *writers) release(v *viewer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by[v.session.UID] == v {
		delete(w.by, v.session.UID)
	}
}

// of says who has the keys of v's session, as v sees it: "you", "other" or "nobody".
func (w *writers) of(v *viewer) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.by[v.session.UID] {
	case nil:
		return "nobody"
	case v:
		return "you"
	}
	return "other"
}

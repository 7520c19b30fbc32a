package workspace

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/theloop-dev/the-loop/internal/durable"
	"github.com/theloop-dev/the-loop/internal/workitem"
)

const (
	treesDir  = ".worktrees"
	itemsDir  = ".work-items"
	locksDir  = ".locks"
	asideMark = "removing"
	cloneMark = "cloning"
)

// claim says whose a directory is. It is written before the directory is made, so that
// none of ours is ever without one.
type claim struct {
	// Ref is the full reference of the item (W3).
	Ref string `json:"ref"`
	// Preparing means that no session was ever given the directory: what is in it was
	// left by a call that did not end.
	Preparing bool `json:"preparing,omitempty"`
}

// place is where a checkout is, or goes.
type place struct {
	strategy Strategy
	repo     Repository
	// name is one of the names of the item.
	name string
	// path is the checkout, owned what the claim is about: the checkout or, with the
	// strategy Clone, the item's directory with all its checkouts.
	path, owned string
}

func (p place) claimFile() string { return beside(p.owned, "json") }

func (m *Manager) place(s Strategy, r Repository, name string) place {
	p := place{strategy: s, repo: r, name: name}
	if s == Clone {
		p.owned = filepath.Join(m.root, itemsDir, name)
		p.path = filepath.Join(p.owned, r.dir())
	} else {
		p.path = filepath.Join(m.root, treesDir, r.dir(), name)
		p.owned = p.path
	}
	return p
}

// readClaim gives nil when there is no claim. One that cannot be read is an error: it may
// be anybody's.
func readClaim(file string) (*claim, error) {
	data, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	c := &claim{}
	if err := json.Unmarshal(data, c); err != nil || c.Ref == "" {
		return nil, &Error{
			Reason: ReasonDamaged, Path: file, Err: err,
			Problem: "the file " + file + ", which says whose checkout is beside it, cannot be read",
			Remedy:  `find out whose it is and write {"ref": "<provider>:<owner>/<repo>#<number>"} there, or move both away`,
		}
	}
	return c, nil
}

func (m *Manager) writeClaim(p place, c claim) error {
	if err := m.inside(p.path); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(p.owned), 0o755); err != nil {
		return err
	}
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return durable.Write(p.claimFile(), append(data, '\n'))
}

// find gives the place that belongs to the item and whose directory is there, nil when
// there is none. The item's lock is held.
func (m *Manager) find(item workitem.Ref, r Repository) (*place, error) {
	strategies := []Strategy{m.strategy, Worktree, Clone}
	for _, s := range strategies {
		for _, name := range names(item) {
			p := m.place(s, r, name)
			c, err := readClaim(p.claimFile())
			if err != nil {
				return nil, err
			}
			if c != nil && c.Ref == item.String() && !c.Preparing && exists(p.path) {
				return &p, m.inside(p.path)
			}
		}
	}
	return nil, nil
}

// claimPlace finds or takes the place for a new checkout. The item's lock is held.
func (m *Manager) claimPlace(s Strategy, item workitem.Ref, r Repository) (place, error) {
	mine := claim{Ref: item.String(), Preparing: s == Worktree}
	var free *place
	for _, name := range names(item) {
		p := m.place(s, r, name)
		if err := m.inside(p.path); err != nil {
			return p, err
		}
		c, err := readClaim(p.claimFile())
		switch {
		case err != nil:
			return p, err
		case c != nil && c.Ref == mine.Ref:
			return p, m.writeClaim(p, mine)
		case c == nil && !exists(p.owned) && free == nil:
			free = &p
		}
	}
	if free == nil {
		p := m.place(s, r, item.Slug())
		return p, &Error{
			Reason: ReasonOccupied, Path: p.owned, Remedy: "move it away",
			Problem: p.owned + ", and the name beside it, are taken by something that is not its checkout",
		}
	}
	return *free, m.writeClaim(*free, mine)
}

// claimedBy is whose checkout a path is, "" when it is none of ours.
func (m *Manager) claimedBy(path string) string {
	if c, err := readClaim(beside(path, "json")); err == nil && c != nil {
		return c.Ref
	}
	return ""
}

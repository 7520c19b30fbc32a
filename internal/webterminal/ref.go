package webterminal

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/theloop-dev/the-loop/internal/tmux"
)

// Ref is the exact name of a session.
type Ref struct {
	// Kind is the kind in lower case, "standingsession" or "workitemsession".
	Kind string `json:"kind"`
	// Namespace and Name are the object's.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Kinds are the kinds of session.
var Kinds = []string{"standingsession", "workitemsession"}

var nameForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)

// ParseRef reads "standingsession/default/hello". There is one way to write each session,
// and nothing is guessed: a prefix, another case or an escaped character is none.
func ParseRef(s string) (Ref, error) {
	f := strings.Split(s, "/")
	if len(f) == 3 && (f[0] == Kinds[0] || f[0] == Kinds[1]) && nameForm.MatchString(f[1]) && nameForm.MatchString(f[2]) {
		return Ref{Kind: f[0], Namespace: f[1], Name: f[2]}, nil
	}
	return Ref{}, fmt.Errorf("%.120q names no session: write KIND/NAMESPACE/NAME, such as standingsession/default/hello; the kinds are %s", s, strings.Join(Kinds, " and "))
}

// RefOf is the Ref of an object of this kind, as Kubernetes writes it: StandingSession.
func RefOf(kind, namespace, name string) Ref {
	return Ref{Kind: strings.ToLower(kind), Namespace: namespace, Name: name}
}

func (r Ref) String() string { return r.Kind + "/" + r.Namespace + "/" + r.Name }

// Path is where its page is.
func (r Ref) Path() string { return sessionsPath + r.String() }

const (
	sessionsPath = "/sessions/"
	terminalPath = "/terminal/"
	hubPath      = "/hub/"
)

// LoginURL is the address that lets a person in with a ticket and leads to a page. The
// ticket is in the fragment, which browsers keep to themselves (U05).
func LoginURL(base, page, ticket string) string {
	return strings.TrimSuffix(base, "/") + "/login?next=" + url.QueryEscape(page) + "#" + ticket
}

// Session is what stands behind a Ref now.
type Session struct {
	Ref Ref
	// UID of the object.
	UID string
	// Target is its terminal.
	Target tmux.Target
	// Ended says why its terminal is a record and no live one, "" when it is live. It is
	// shown read-only then, whatever is asked for (U10).
	Ended string
}

// Sessions knows the sessions of this host.
type Sessions interface {
	// Find finds exactly this session with its terminal. Its error is a *ProblemError for a
	// session that cannot be shown.
	Find(ctx context.Context, ref Ref) (Session, error)
	// List lists those that have a terminal, in a stable order.
	List(ctx context.Context) ([]Session, error)
}

// Terminal shows and types; *tmux.Server is it.
type Terminal interface {
	View(t tmux.Target, size tmux.Size) (*tmux.View, error)
	Look(ctx context.Context, t tmux.Target) (tmux.Look, error)
	Keys(ctx context.Context, t tmux.Target, keys []byte) (tmux.Result, error)
	PasteKeys(ctx context.Context, t tmux.Target, text string) (tmux.Result, error)
	HubCommand(writable bool) (argv, env []string)
	EndHub(ctx context.Context) error
}

// ProblemError is why something is not shown, for a person.
type ProblemError struct {
	// Status of the answer.
	Status int
	// What happened, to what.
	What string
	// Do is what to do about it, a sentence or a command.
	Do string
}

func (p *ProblemError) Error() string { return p.What + ": " + p.Do }

func notFound(what, do string) *ProblemError { return &ProblemError{http.StatusNotFound, what, do} }

package agent

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/theloop-dev/the-loop/controllers/internal/kinds"
	"github.com/theloop-dev/the-loop/internal/session"
	"github.com/theloop-dev/the-loop/internal/webterminal"
)

// setupWebTerminal adds the web terminal to the manager, where it is enabled.
func (o Options) setupWebTerminal(mgr ctrl.Manager, engine *session.Engine) error {
	if !o.WebTerminal.Enabled {
		return nil
	}
	terminal, ok := engine.Terminal.(webterminal.Terminal)
	if !ok {
		return fmt.Errorf("the web terminal cannot show a %T", engine.Terminal)
	}
	web := &webterminal.Server{
		Options: o.WebTerminal, Dir: webterminal.Dir(o.Dir), Terminal: terminal, Log: o.Log.WithName("web-terminal"),
		Sessions: &webSessions{client: mgr.GetClient(), reader: mgr.GetAPIReader(), engine: engine, hostName: o.HostName},
	}
	if err := web.Open(); err != nil {
		return err
	}
	return mgr.Add(web)
}

// webSessions are this host's sessions as the web terminal shows them.
type webSessions struct {
	client   client.Reader // of this host's sessions
	reader   client.Reader // past the cache
	engine   *session.Engine
	hostName string
}

// Find implements webterminal.Sessions.
func (w *webSessions) Find(ctx context.Context, ref webterminal.Ref) (webterminal.Session, error) {
	obj := webKind(ref.Kind)
	err := w.client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, obj)
	if apierrors.IsNotFound(err) || err == nil && obj.Placement().HostName != w.hostName {
		return webterminal.Session{}, w.elsewhere(ctx, ref)
	}
	if err != nil {
		return webterminal.Session{}, err
	}
	s, ok, err := w.shown(obj)
	if err == nil && !ok {
		return webterminal.Session{}, &webterminal.ProblemError{Status: http.StatusNotFound, What: ref.String() + " has no terminal",
			Do: "It was not started yet, or its terminal was closed: `the-loop explain` says why."}
	}
	return s, err
}

// elsewhere says why a session is not this host's.
func (w *webSessions) elsewhere(ctx context.Context, ref webterminal.Ref) error {
	obj := webKind(ref.Kind)
	err := w.reader.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, obj)
	switch host := obj.Placement().HostName; {
	case apierrors.IsNotFound(err):
		return &webterminal.ProblemError{Status: http.StatusNotFound, What: "There is no session " + ref.String(), Do: "The list of this host's sessions has each with its whole name."}
	case err != nil:
		return fmt.Errorf("the API server did not answer: %w", err)
	case host == "":
		return &webterminal.ProblemError{Status: http.StatusConflict, What: ref.String() + " is on no host yet", Do: "Its condition Scheduled says what it waits for."}
	case host != w.hostName:
		return &webterminal.ProblemError{Status: http.StatusConflict, What: ref.String() + " is on host " + host, Do: "This is the web terminal of " + w.hostName + ": open that of " + host + "."}
	}
	// Bound to this host just now.
	return &webterminal.ProblemError{Status: http.StatusNotFound, What: ref.String() + " has no terminal yet", Do: "Try again in a moment."}
}

// List implements webterminal.Sessions.
func (w *webSessions) List(ctx context.Context) ([]webterminal.Session, error) {
	var out []webterminal.Session
	for _, k := range kinds.All {
		var unknown error
		err := k.Each(ctx, w.client, func(obj kinds.Session) {
			s, ok, err := w.shown(obj)
			unknown = cmp.Or(unknown, err)
			if ok {
				out = append(out, s)
			}
		})
		if err := cmp.Or(err, unknown); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(out, func(a, b webterminal.Session) int { return cmp.Compare(a.Ref.String(), b.Ref.String()) })
	return out, nil
}

func (w *webSessions) shown(obj kinds.Session) (webterminal.Session, bool, error) {
	t, ok, err := w.engine.Shown(obj)
	if err != nil || !ok {
		return webterminal.Session{}, false, err
	}
	return webterminal.Session{
		Ref: webterminal.RefOf(obj.SessionKind(), obj.GetNamespace(), obj.GetName()),
		UID: string(obj.GetUID()), Target: t.Target, Ended: t.Ended,
	}, true, nil
}

func webKind(kind string) kinds.Session {
	for _, k := range kinds.All {
		if strings.ToLower(k.Name) == kind {
			return k.New()
		}
	}
	return kinds.All[0].New() // a Ref has no other kind
}

package agent

import (
	"context"
	"slices"
	"sync"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/theloop-dev/the-loop/controllers/internal/kinds"
	"github.com/theloop-dev/the-loop/internal/session"
)

// hints hurries the reconcilers: a hint says that something about a session may have
// changed on the host. Losing one costs time only, because every listing of the
// terminal server that differs from the one before gives another.
type hints struct {
	client client.Client
	log    logr.Logger

	mu       sync.Mutex
	channels map[string]chan event.GenericEvent
}

// channel is where the hints for one kind go.
func (h *hints) channel(kind string) chan event.GenericEvent {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.channels == nil {
		h.channels = map[string]chan event.GenericEvent{}
	}
	if h.channels[kind] == nil {
		h.channels[kind] = make(chan event.GenericEvent, 256)
	}
	return h.channels[kind]
}

// changed sends a hint for each session concerned. It is the lister's Changed.
func (h *hints) changed(uids, names []string, all bool) {
	ctx, cancel := context.WithTimeout(context.Background(), hintTimeout)
	defer cancel()
	for _, k := range kinds.All {
		ch := h.channel(k.Name)
		err := k.Each(ctx, h.client, func(o kinds.Session) {
			if !all && !slices.Contains(uids, string(o.GetUID())) && !session.Named(o, names) {
				return
			}
			select {
			case ch <- event.GenericEvent{Object: o}:
			case <-ctx.Done():
			}
		})
		if err != nil {
			h.log.V(1).Info("hints not given", "kind", k.Name, "reason", err.Error())
		}
	}
}

// known reports whether the UID is that of a session of this host.
func (h *hints) known(uid string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), hintTimeout)
	defer cancel()
	found := false
	for _, k := range kinds.All {
		err := k.Each(ctx, h.client, func(o kinds.Session) { found = found || string(o.GetUID()) == uid })
		// Not to know is to be careful: the occupant is then left alone.
		found = found || err != nil
	}
	return found
}

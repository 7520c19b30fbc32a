package session

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
)

// Holds reports whether another session of the host goes on with a conversation that obj
// would go on with: two harnesses that write one conversation mix what was said in both
// (R04). One that neither runs nor is to run holds none; of two that have it on record it
// is that which runs, else the older one.
func Holds(other, obj api.HostedSession, conversation string) bool {
	if other.GetUID() == obj.GetUID() || other.HostedStatus().ConversationID != conversation {
		return false
	}
	runs := func(s api.HostedSession) bool {
		return meta.IsStatusConditionTrue(s.HostedStatus().Conditions, api.ConditionSessionRunning)
	}
	switch {
	case runs(other):
		return true
	case other.GetDeletionTimestamp() != nil || other.WantedState() != api.SessionStateRunning:
		return false
	case obj.HostedStatus().ConversationID != conversation || runs(obj):
		return !runs(obj)
	}
	a, b := other.GetCreationTimestamp(), obj.GetCreationTimestamp()
	return a.Before(&b) || a.Equal(&b) && other.GetUID() < obj.GetUID()
}

// claim says who keeps a resume from the conversation, nil for nobody.
func (t *turn) claim(ctx context.Context) (*Obstacle, error) {
	id := t.conversationToResume()
	holder, err := t.Store.ConversationHolder(ctx, id)
	switch {
	case err != nil:
		return nil, t.fail("looking for who has the conversation", err)
	case holder == "":
		return nil, nil
	}
	return &Obstacle{Reason: api.ReasonConversationInUse, Message: fmt.Sprintf(
		"the conversation %s is that of %s already, and two harnesses would mix it up: stop or delete one of the two sessions", id, holder)}, nil
}

package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/harness"
)

// Holds reports whether another session of the host goes on with a conversation that obj
// would go on with: two harnesses that write one conversation mix what was said in both
// (R04). One that neither runs nor is to run holds none; of two that have it on record it
// is that which runs or starts, else the older one.
func Holds(other, obj api.HostedSession, conversation string) bool {
	if other.GetUID() == obj.GetUID() || other.HostedStatus().ConversationID != conversation {
		return false
	}
	runs := func(s api.HostedSession) bool {
		return meta.IsStatusConditionTrue(s.HostedStatus().Conditions, api.ConditionSessionRunning)
	}
	// It is on record that it starts, and not yet that it runs.
	starts := func(s api.HostedSession) bool {
		l := s.HostedStatus().Launch
		return l != nil && l.Mode == api.LaunchResume && !l.Confirmed && s.HostedStatus().ConversationID == conversation
	}
	switch {
	case runs(other):
		return true
	case runs(obj), other.GetDeletionTimestamp() != nil, other.WantedState() != api.SessionStateRunning:
		return false
	case starts(other) != starts(obj):
		return starts(other)
	case obj.HostedStatus().ConversationID != conversation:
		return true
	}
	a, b := other.GetCreationTimestamp(), obj.GetCreationTimestamp()
	return a.Before(&b) || a.Equal(&b) && other.GetUID() < obj.GetUID()
}

// canResume reports whether the conversation on record can be gone on with, and whether it
// could if it were still on the host.
func (t *turn) canResume(allowed bool) (can, lost bool) {
	if !allowed || t.sight.Holder == HolderLiveOurs || !t.resumable() {
		return false, false
	}
	lost = t.lost()
	return !lost, lost
}

// lost reports that the conversation to resume is not on the host any more. Only its own
// harness's word where it keeps it counts, or what is on record of its file: what it may have
// elsewhere is tried (R01), but not where another file would take the place of the one that
// is on record (R14).
func (t *turn) lost() bool {
	a, ok := t.launch.adapter.(harness.Transcripts)
	id := t.conversationToResume()
	if ok && t.state.TranscriptPath != "" && t.state.ConversationID == id {
		return a.Lost(t.state.TranscriptPath, id)
	}
	s := t.sealOf(id)
	if ok || s == nil {
		return false
	}
	_, err := os.Lstat(s.Path)
	return errors.Is(err, fs.ErrNotExist)
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

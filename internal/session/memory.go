package session

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/delivery"
	"github.com/theloop-dev/the-loop/internal/harness"
	"github.com/theloop-dev/the-loop/internal/harness/hook"
	"github.com/theloop-dev/the-loop/internal/harness/seal"
)

// memory is what this process remembers of a session beside its record. Losing it
// costs time, never correctness.
type memory struct {
	// prepared is the launch that was made by this agent, and so with what is prepared now.
	prepared string
	// swept is the launch after whose end no process is left.
	swept string
	// uncleared is the terminal session that could not be cleared.
	uncleared string
	// unclearedAt is when that was tried.
	unclearedAt time.Time
	// failed is why the last start failed, until it may be tried again at retryAt.
	failed  *Obstacle
	retryAt time.Time
	retries int
	// checkoutGone: the checkout was removed, and none made since.
	checkoutGone bool
	// removalProblem is why it could not be removed, at removalAt.
	removalProblem string
	removalAt      time.Time
	// overdue is when a retained terminal was first seen to be due to be closed.
	overdue time.Time
	// duplicates counts the starts in a row that found the name taken, though it had been
	// seen to be free.
	duplicates int
	// refuted is the launch whose harness was to resume and ended by itself.
	refuted string
	// stopRequested is when the harness was asked to end, to the fraction of a second.
	stopRequested time.Time
	// kills counts the SIGKILLs since the harness was asked to end.
	kills int
	// stopFailed: it was told that the stop under way does not succeed.
	stopFailed bool
	// comparison is that of the conversation's file with what it was, which is under way, or
	// which found another.
	comparison *seal.Check
	// sealedAt is when the record of that file was last brought up to date, sealFailed why it
	// could not be.
	sealedAt   time.Time
	sealFailed string
	// policy is the delivery policy that was seen last.
	policy api.DeliveryPolicy
	// failing is the message of which it was told that its delivery is tried again.
	failing types.UID
	// delayed is the message of which it was told that it waits.
	delayed types.UID
	// cutOff counts the resumes in a row that ended before they were proved.
	cutOff int
	// unclearSince is when the input box was first not seen.
	unclearSince time.Time
	// unknownSince is when tmux first did not answer.
	unknownSince time.Time
	// endedSince is when the harness was first seen to have ended.
	endedSince time.Time
	// askedFor is the end of the harness, as in endedSince, for which it was asked again at
	// askedAt, and asked what about.
	askedFor, askedAt time.Time
	asked             map[VerdictKey]bool
	// words of the harness, which no hook tells.
	words words
	// unbounded is why the class's bound of memory is not kept, as it was told of last.
	unbounded string
	// refused is why the harness is not in its group, as it was told of last.
	refused string
	// killed is how many were killed for memory in the group of the live harness, since
	// killedAt.
	killed   int64
	killedAt time.Time
	// stall names what holds up a long turn, as it was looked for at stallAt.
	stall   string
	stallAt time.Time
	// fold of the hooks' journal.
	journal journalState
	// sequence is the highest number given to a message.
	sequence int64
	// places are those that messages were given and that are not on record yet.
	places map[types.UID]place
	// inflight is the delivery under way.
	inflight types.UID
	progress delivery.Progress
	launch   string
	// attempt is the newest delivery that was begun, as it stands on disk; recalled when
	// it was read.
	attempt  delivery.Attempt
	recalled bool
	// unsure is the message whose outcome may be on record although its write failed.
	unsure types.UID
	// activitySince and booksSince are since when status is kept back that says what the
	// harness does, or what merely counts.
	activitySince, booksSince time.Time
}

// journalState is how far the journal of a launch was read, and what it told.
type journalState struct {
	path   string
	offset int64
	// mark is the newest note that was read.
	mark  hook.Mark
	state harness.State
}

// memories holds one memory for each session, by UID.
type memories struct {
	mu sync.Mutex
	m  map[types.UID]*memory
}

// of returns the memory of a session. A session is worked on by one reconcile at a
// time, so its memory needs no lock of its own.
func (ms *memories) of(uid types.UID) *memory {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if ms.m == nil {
		ms.m = map[types.UID]*memory{}
	}
	if ms.m[uid] == nil {
		ms.m[uid] = &memory{}
	}
	return ms.m[uid]
}

func (ms *memories) forget(uid types.UID) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	delete(ms.m, uid)
}

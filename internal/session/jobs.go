package session

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// maxJobs is how many jobs run at a time: each may fetch a repository.
const maxJobs = 4

// errJobsIdle is the outcome of work that comes before Start or after its end.
var errJobsIdle = errors.New("the agent is not ready for it, or is ending")

// Jobs runs what may take minutes, such as cloning a repository, beside the
// reconcilers: one job for a session at a time. What a lost job has begun is found
// again by the next one of its kind.
type Jobs struct {
	mu      sync.Mutex
	base    context.Context // the life of the jobs, not of a call
	running map[types.UID]*job
	group   sync.WaitGroup
	slots   chan struct{}
	// done is called, with the session, after each job.
	done func(types.UID)
}

// job is one piece of work.
type job struct {
	kind     string
	finished bool
	outcome
}

// outcome is what came of a job.
type outcome struct {
	value any
	err   error
}

// NewJobs makes Jobs that call done after each.
func NewJobs(done func(types.UID)) *Jobs {
	return &Jobs{done: done, running: map[types.UID]*job{}, slots: make(chan struct{}, maxJobs)}
}

// Start lets jobs run until ctx ends, and returns when all of them have ended.
func (j *Jobs) Start(ctx context.Context) error {
	j.mu.Lock()
	j.base = ctx
	j.mu.Unlock()
	<-ctx.Done()
	j.mu.Lock()
	j.base = nil // whoever saw it before has been counted
	j.mu.Unlock()
	j.group.Wait()
	return nil
}

// run returns the outcome of the session's job of a kind, which it begins if there is
// none; finished is false while it is under way. An outcome is given once. While a job of
// another kind is under way, nothing is begun.
func (j *Jobs) run(uid types.UID, kind string, do func(context.Context) (any, error)) (o outcome, finished bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now, busy := j.running[uid]
	if busy && now.finished && now.kind != kind {
		busy = false // nobody wants its outcome any more
	}
	if !busy {
		if j.base == nil || j.base.Err() != nil {
			return outcome{err: errJobsIdle}, true
		}
		now = &job{kind: kind}
		j.running[uid] = now
		j.group.Add(1)
		go j.work(j.base, uid, now, do)
	}
	if !now.finished {
		return outcome{}, false
	}
	delete(j.running, uid)
	return now.outcome, true
}

// forget drops the outcome of a session that is gone. A job under way goes on.
func (j *Jobs) forget(uid types.UID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if w := j.running[uid]; w != nil && w.finished {
		delete(j.running, uid)
	}
}

func (j *Jobs) work(ctx context.Context, uid types.UID, w *job, do func(context.Context) (any, error)) {
	defer j.group.Done()
	var o outcome
	select {
	case j.slots <- struct{}{}:
		o.value, o.err = do(ctx)
		<-j.slots
	case <-ctx.Done():
		o.err = ctx.Err()
	}
	j.mu.Lock()
	w.finished, w.outcome = true, o
	j.mu.Unlock()
	if ctx.Err() == nil {
		j.done(uid)
	}
}

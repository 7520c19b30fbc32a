package devcluster

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// stopLimit bounds Stop; killing takes up to killWait more, in theory only.
const stopLimit = 4500 * time.Millisecond

// Done is closed when a child ends by itself, and after Stop. Err tells which.
func (c *Cluster) Done() <-chan struct{} { return c.done }

// Err says, once Done is closed, which child ended by itself, how, and what its
// log says last. It is nil before that and after a Stop without such an end.
// Later ends of other children are not reported.
func (c *Cluster) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// finish closes done, with err as the reason unless there is one already.
func (c *Cluster) finish(err error) {
	c.mu.Lock()
	if c.err == nil && !c.stopped {
		c.err = err
	}
	c.mu.Unlock()
	c.doneOnce.Do(func() { close(c.done) })
}

// Stop ends the API server, then etcd, and gives the directory free. Each is
// asked to end and killed when it does not in time; all of it takes less than
// five seconds, and less when ctx ends earlier. The state stays for the next
// Start. Calling it again does nothing.
func (c *Cluster) Stop(ctx context.Context) error {
	c.op.Lock()
	defer c.op.Unlock()
	c.mu.Lock()
	again := c.stopped
	c.stopped = true
	c.mu.Unlock()
	if again {
		return nil
	}
	deadline := time.Now().Add(stopLimit)
	if t, ok := ctx.Deadline(); ok && t.Before(deadline) {
		deadline = t
	}
	err := c.stopChildren(ctx, deadline)
	c.finish(nil)
	if err == nil {
		c.watchers.Wait()
	}
	c.lock.Release()
	return err
}

// stopChildren ends both children by the deadline: the API server gets two
// thirds of the time, etcd the rest.
func (c *Cluster) stopChildren(ctx context.Context, deadline time.Time) error {
	etcd, apiserver := c.children()
	var errs []error
	if apiserver != nil && !apiserver.ended() {
		c.opts.Log("stopping %s", apiserverName)
		errs = append(errs, apiserver.stop(ctx, deadline.Add(-time.Until(deadline)/3)))
	}
	if etcd != nil && !etcd.ended() {
		c.opts.Log("stopping %s", etcdName)
		errs = append(errs, etcd.stop(ctx, deadline))
	}
	return errors.Join(errs...)
}

// StopAPIServer ends the API server alone, as an outage would: etcd and the data
// stay, Done stays open. It is asked to end and killed at the end of ctx, or
// after three seconds. Without a running API server it does nothing.
func (c *Cluster) StopAPIServer(ctx context.Context) error {
	c.op.Lock()
	defer c.op.Unlock()
	_, apiserver := c.children()
	if apiserver == nil {
		return nil
	}
	return apiserver.stop(ctx, time.Now().Add(stopLimit*2/3))
}

// StartAPIServer starts the API server again on the same port and data, after
// StopAPIServer or after it ended by itself, and returns when it answers, at
// most by the deadline of ctx or in two minutes. A Done that is closed stays closed.
func (c *Cluster) StartAPIServer(ctx context.Context) error {
	c.op.Lock()
	defer c.op.Unlock()
	etcd, apiserver := c.children()
	switch {
	case c.isStopped():
		return fmt.Errorf("the control plane in %s was stopped: call Start", c.dirs)
	case etcd == nil || etcd.ended():
		return fmt.Errorf("etcd of the control plane in %s does not run: call Stop, then Start", c.dirs)
	case apiserver != nil && !apiserver.ended():
		return fmt.Errorf("kube-apiserver of the control plane in %s runs already (pid %d)", c.dirs, apiserver.process.Pid)
	}
	if err := checkPort("the API server", c.ports.APIServer, "end that process, then try again"); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	err := c.startAPIServer(ctx)
	if err == nil {
		return nil
	}
	// No half-started server: the outage goes on.
	if _, apiserver := c.children(); apiserver != nil {
		err = errors.Join(err, apiserver.stop(ctx, time.Now()))
	}
	return err
}

func (c *Cluster) isStopped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopped
}

// children returns the latest child of each kind, nil when there was none.
func (c *Cluster) children() (etcd, apiserver *child) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.etcd, c.apiserver
}

// lostPort says whether a child ended because its port was taken.
func (c *Cluster) lostPort() bool {
	etcd, apiserver := c.children()
	for _, ch := range []*child{etcd, apiserver} {
		if ch != nil && ch.ended() && ch.addressTaken() {
			return true
		}
	}
	return false
}

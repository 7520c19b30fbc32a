package devcluster

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"time"

	"github.com/theloop-dev/the-loop/internal/filelock"
)

// Cluster is a running control plane. Its methods may be called from any goroutine.
type Cluster struct {
	opts  Options
	dirs  layout
	lock  *filelock.Lock
	pki   *pki
	ports ports

	done     chan struct{}
	doneOnce sync.Once
	watchers sync.WaitGroup

	op sync.Mutex // serialises Stop, StopAPIServer and StartAPIServer

	mu              sync.Mutex // guards what follows; never held while waiting
	etcd, apiserver *child     // the latest of each; nil when it was never started
	stopped         bool
	err             error
}

// Start starts the control plane of o.Dir and returns when it answers: typically
// in less than six seconds, at most by the deadline of ctx or in two minutes.
// Once it has returned, ctx means nothing to the cluster; call Stop to end it.
// When another process runs the same directory, the error is a *LockedError. An
// error leaves no process behind and the directory usable.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if err := supported(); err != nil {
		return nil, err
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	o.Dir = filepath.Clean(o.Dir)
	d := layout(o.Dir)
	if err := d.make(); err != nil {
		return nil, err
	}
	lock, err := lockDir(ctx, d)
	if err != nil {
		return nil, err
	}
	c := &Cluster{opts: o, dirs: d, lock: lock, done: make(chan struct{})}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := c.start(ctx); err != nil {
		// The children have served nobody: there is nothing to wait for.
		now, kill := context.WithCancel(context.Background())
		kill()
		return nil, errors.Join(err, c.Stop(now))
	}
	return c, nil
}

// start does what Start does once the directory is locked.
func (c *Cluster) start(ctx context.Context) error {
	left, err := endRecorded(ctx, c.dirs)
	for _, p := range left {
		c.opts.Log("ended %s (pid %d), which an earlier run had left", p.Name, p.PID)
	}
	if err != nil {
		return err
	}
	if c.pki, err = loadPKI(c.dirs, time.Now()); err != nil {
		return err
	}
	if err := writeAuditPolicy(c.dirs, c.opts); err != nil {
		return err
	}
	const attempts = 3
	for i := 1; ; i++ {
		var fresh bool
		if c.ports, fresh, err = choosePorts(c.dirs, c.opts); err != nil {
			return err
		}
		if err = c.startServers(ctx); err == nil {
			break
		}
		if !fresh || i == attempts || !c.lostPort() {
			return err
		}
		c.opts.Log("another process took a port that was free just now; trying other ports")
		if err := c.stopChildren(ctx, time.Now()); err != nil {
			return err
		}
	}
	if err := writePorts(c.dirs, c.ports); err != nil {
		return err
	}
	return writeKubeconfig(c.dirs, c.pki, c.ports.APIServer)
}

// startServers starts etcd and the API server and waits for both.
func (c *Cluster) startServers(ctx context.Context) error {
	begin := time.Now()
	c.opts.Log("starting etcd on port %d", c.ports.Etcd)
	etcd, err := c.launch(etcdProgram(c.dirs, c.opts, c.pki, c.ports), &c.etcd)
	if err != nil {
		return err
	}
	ready, err := newProbe(c.pki.etcdCA, c.pki.etcdClient, serverURL(c.ports.Etcd)+"/readyz")
	if err != nil {
		return err
	}
	if err := ready.wait(ctx, etcd); err != nil {
		return err
	}
	if err := c.startAPIServer(ctx); err != nil {
		return err
	}
	c.opts.Log("the control plane is ready on %s after %s", serverURL(c.ports.APIServer), time.Since(begin).Round(100*time.Millisecond))
	return nil
}

// startAPIServer starts the API server and waits until it serves, which includes
// the namespace that everybody uses.
func (c *Cluster) startAPIServer(ctx context.Context) error {
	c.opts.Log("starting kube-apiserver on port %d", c.ports.APIServer)
	apiserver, err := c.launch(apiserverProgram(c.dirs, c.opts, c.pki, c.ports), &c.apiserver)
	if err != nil {
		return err
	}
	url := serverURL(c.ports.APIServer)
	ready, err := newProbe(c.pki.ca, c.pki.admin, url+"/readyz", url+"/api/v1/namespaces/default")
	if err != nil {
		return err
	}
	return ready.wait(ctx, apiserver)
}

// launch starts a program as the child in slot and watches over it.
func (c *Cluster) launch(p program, slot **child) (*child, error) {
	ch, err := startChild(c.dirs, p)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	*slot = ch
	c.mu.Unlock()
	c.watchers.Add(1)
	go func() {
		defer c.watchers.Done()
		<-ch.done
		select {
		case <-ch.asked:
		default:
			c.finish(ch.death())
		}
	}()
	return ch, nil
}

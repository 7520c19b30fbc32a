package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// builder makes one binary at the absolute path out; other files that it makes
// next to it are removed with the directory. step is called, from any goroutine,
// with what it is doing right now.
type builder interface {
	build(ctx context.Context, t target, out string, step func(string)) error
}

// ensurer fills the cache with the binaries that are missing.
type ensurer struct {
	cache   cache
	builder builder
	out     *progress
	every   time.Duration // between two progress lines
}

// ensure returns when all targets are in the cache. Without work to do it only
// looks; an error or the end of ctx leaves the cache as it was.
func (e ensurer) ensure(ctx context.Context, ts []target) (err error) {
	if len(e.cache.missing(ts)) == 0 {
		return nil
	}
	if err := e.cache.prepare(); err != nil {
		return err
	}
	unlock, err := lock(ctx, e.cache.lockFile(), 2*e.every, func(pid int) {
		who := "another process"
		if pid != 0 {
			who = fmt.Sprintf("pid %d", pid)
		}
		e.out.say("waiting for %s, which is building the control plane into %s", who, e.cache.dir())
	})
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return e.cache.explain(err)
	}
	defer unlock()
	ts = e.cache.missing(ts) // another process may have built them meanwhile
	if len(ts) == 0 {
		return nil
	}
	return e.buildAll(ctx, ts)
}

// buildAll builds ts into a temporary directory and publishes it.
func (e ensurer) buildAll(ctx context.Context, ts []target) (err error) {
	tmp, err := e.cache.tempDir()
	if err != nil {
		return err
	}
	defer func() {
		if rmErr := os.RemoveAll(tmp); err == nil && rmErr != nil {
			err = e.cache.explain(rmErr)
		}
	}()
	names := make([]string, len(ts))
	for i, t := range ts {
		names[i] = t.name + " " + t.version
	}
	e.out.say("building %s into %s (once for these versions; 5 to 15 minutes when nothing of it was ever compiled here)",
		strings.Join(names, ", "), e.cache.dir())
	start := time.Now()
	for i, t := range ts {
		if err := e.buildOne(ctx, t, tmp, fmt.Sprintf("%s (%d of %d)", t.name, i+1, len(ts))); err != nil {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := e.cache.publish(tmp, ts); err != nil {
		return err
	}
	e.out.say("done in %s", elapsed(start))
	return nil
}

// buildOne builds t into dir, with a progress line every few seconds.
func (e ensurer) buildOne(ctx context.Context, t target, dir, title string) error {
	start := time.Now()
	var mu sync.Mutex
	doing := "compiling and linking"
	step := func(s string) {
		mu.Lock()
		defer mu.Unlock()
		doing = s
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(e.every)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				mu.Lock()
				now := doing
				mu.Unlock()
				e.out.say("%s: %s, %s", title, now, elapsed(start))
			}
		}
	}()
	out := filepath.Join(dir, t.name)
	err := e.builder.build(ctx, t, out, step)
	close(stop)
	<-done
	if err != nil {
		return err
	}
	info, err := os.Stat(out)
	if err != nil {
		return e.cache.explain(err)
	}
	e.out.say("%s: built in %s, %d MB", title, elapsed(start), info.Size()>>20)
	return nil
}

func elapsed(since time.Time) time.Duration { return time.Since(since).Round(time.Second) }

// progress writes whole lines for a person.
type progress struct {
	mu sync.Mutex
	w  io.Writer
}

func (p *progress) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, "controlplane: "+format+"\n", args...)
}

package session

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-logr/logr"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/event"
	"github.com/theloop-dev/the-loop/internal/harness"
)

const (
	// configQuiet is for how long nobody may have written a broken file before it is called
	// so, and configBroken how long one that keeps being written may be broken: a harness
	// writes in more than one step.
	configQuiet  = 2 * time.Second
	configBroken = 15 * time.Second
	// configCoalesce gathers the events of one write.
	configCoalesce = 100 * time.Millisecond
	// Of one file so many restores are made in such a time: what breaks it again and again is
	// not to leave hundreds of broken files.
	maxRestores    = 3
	restoresWithin = time.Hour
	// A sound text is copied when nobody has written another one for copyQuiet, and copyAtMost
	// after the first that is not: fleets write many times a second.
	copyQuiet  = 2 * time.Second
	copyAtMost = 10 * time.Second
	// unwatchedLook is how often a file is looked at whose events are not told.
	unwatchedLook = 15 * time.Second
)

// HostEmitter tells of events that are about the host.
type HostEmitter interface {
	Emit(e event.Event, message string, fields ...any)
}

// Configs watches the configuration files that the sessions of a harness share. Many
// harnesses that write one at once break it (H09): nothing is started into a broken one, and
// what was left half written is restored from the last good copy. What runs is left alone.
type Configs struct {
	Clock clock.PassiveClock
	Log   logr.Logger
	Host  HostEmitter
	// Changed is called when a file became broken, or sound again.
	Changed func()

	mu      sync.Mutex
	files   map[string]*sharedFile
	watcher *fsnotify.Watcher
	queue   workqueue.TypedDelayingInterface[string]
}

// sharedFile is what is known of one file.
type sharedFile struct {
	harness.SharedConfig
	of string

	mu    sync.Mutex
	found harness.Finding
	// failure is why the last look found nothing: what is known stays.
	failure string
	// seen are the marks of file and copy when they were read.
	seen [2]mark
	// since is when it was first seen to be damaged, written when it was last seen to be
	// another one.
	since, written time.Time
	// told: it is broken for certain, and that was told.
	told     bool
	restored []time.Time
	// problem is why it is not restored, though it could be.
	problem string

	// newest is what was sound last and is not copied yet, newerSince when the first such was
	// seen and newerAt when this one was. copying: that is being done.
	newest              harness.Finding
	newerSince, newerAt time.Time
	copying             bool

	// after is done when the file is unlocked: every Reconcile of the harness waits for that.
	after []func(c *Configs)
}

// mark tells apart what a path names.
type mark struct {
	there              bool
	size, mtime, ctime int64
	info               os.FileInfo
}

func markOf(path string) mark {
	info, err := os.Stat(path)
	if err != nil {
		return mark{}
	}
	m := mark{there: true, size: info.Size(), mtime: info.ModTime().UnixNano(), info: info}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		m.ctime = st.Ctim.Nano()
	}
	return m
}

// same reports that nothing of the file changed, not even its mode.
func (m mark) same(o mark) bool { return m.unwritten(o) && m.ctime == o.ctime }

// unwritten reports that nobody wrote the file.
func (m mark) unwritten(o mark) bool {
	return m.there == o.there && m.size == o.size && m.mtime == o.mtime && (!m.there || os.SameFile(m.info, o.info))
}

// Check looks at the files of a harness, unless nothing changed, and says what keeps a
// session from being started into them, nil for nothing. They are watched from now on.
func (c *Configs) Check(ctx context.Context, name string, files []harness.SharedConfig) *Obstacle {
	for _, f := range files {
		if o := c.examine(ctx, c.known(name, f)); o != nil {
			return o
		}
	}
	return nil
}

func (c *Configs) known(name string, f harness.SharedConfig) *sharedFile {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.files == nil {
		c.files = map[string]*sharedFile{}
	}
	if c.files[f.Path()] == nil {
		c.files[f.Path()] = &sharedFile{SharedConfig: f, of: name}
	}
	return c.files[f.Path()]
}

// Start watches the files until ctx ends.
func (c *Configs) Start(ctx context.Context) error {
	queue := workqueue.NewTypedDelayingQueue[string]()
	var events chan fsnotify.Event
	var lost chan error
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		c.Log.Error(err, "the shared configuration of harnesses is not watched: it is looked at now and then, and whenever a session is")
	} else {
		events, lost = watcher.Events, watcher.Errors
		defer func() { _ = watcher.Close() }()
	}
	c.mu.Lock()
	c.watcher, c.queue = watcher, queue
	for path := range c.files {
		queue.Add(path)
	}
	c.mu.Unlock()
	var worker sync.WaitGroup
	worker.Go(func() {
		for {
			path, shutdown := queue.Get()
			if shutdown {
				return
			}
			c.mu.Lock()
			f := c.files[path]
			c.mu.Unlock()
			c.examine(ctx, f)
			queue.Done(path)
		}
	})
	defer func() {
		queue.ShutDown()
		worker.Wait()
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e := <-events:
			c.noticed(e.Name)
		case err := <-lost:
			c.Log.Info("events about shared configuration were lost: all of it is looked at", "reason", err)
			c.noticed("")
		}
	}
}

// noticed has the files looked at that an event is about by its name: that of the file, of
// what it is a link to, or of a directory of theirs, whose watch ends when it is moved or
// removed. "" is about all.
func (c *Configs) noticed(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for path, f := range c.files {
		concerned := name == "" || name == path || name == filepath.Dir(path)
		if at, err := f.Locate(); err == nil && !concerned {
			concerned = name == at.Path || name == filepath.Dir(at.Path)
		}
		if concerned {
			c.queue.AddAfter(path, configCoalesce)
		}
	}
}

// again has a file looked at later.
func (c *Configs) again(f *sharedFile, after time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.queue != nil {
		c.queue.AddAfter(f.Path(), after)
	}
}

// watch has the events about a file told, from the directory that is there now: it is asked
// for at each look, because a watch ends with its directory. It reports whether they are.
func (c *Configs) watch(f *sharedFile) bool {
	c.mu.Lock()
	watcher := c.watcher
	c.mu.Unlock()
	if watcher == nil {
		return false
	}
	watched := watcher.Add(filepath.Dir(f.Path())) == nil
	if at, err := f.Locate(); err == nil && filepath.Dir(at.Path) != filepath.Dir(f.Path()) {
		watched = watcher.Add(filepath.Dir(at.Path)) == nil && watched
	}
	return watched
}

// examine looks at a file, tells what became of it, and restores it where that is due. It
// returns why nothing is started into it.
func (c *Configs) examine(ctx context.Context, f *sharedFile) *Obstacle {
	f.mu.Lock()
	o := c.look(ctx, f)
	after := f.after
	f.after = nil
	f.mu.Unlock()
	for _, do := range after {
		do(c)
	}
	return o
}

// tell has an event told once the file is unlocked: that may wait for the API server.
func (f *sharedFile) tell(e event.Event, message string, fields ...any) {
	f.after = append(f.after, func(c *Configs) { c.Host.Emit(e, message, fields...) })
}

func (c *Configs) look(ctx context.Context, f *sharedFile) *Obstacle {
	if !c.watch(f) { // before it is read: nothing is missed in between
		c.again(f, unwatchedLook)
	}
	c.read(ctx, f)
	c.copyDue(f)
	if f.found.Damage == harness.DamageNone {
		return nil
	}
	if wait := f.unsure(c.Clock.Now()); wait > 0 {
		c.again(f, wait)
		return &Obstacle{Reason: api.ReasonConfigurationBroken, Message: f.found.Path + " " + f.found.Damage.Words() + ", or is being written: it is looked at again"}
	}
	if !f.told {
		f.told = true
		c.copyNow(f)
		f.tell(event.HostConfigBroken, f.why(), "harness", f.of, "path", f.found.Path, "damage", f.found.Damage, "copy", f.found.Copy)
		c.changed()
	}
	if f.found.Damage != harness.DamageTorn {
		return f.obstacle()
	}
	c.restore(ctx, f)
	if f.found.Damage == harness.DamageNone {
		return nil
	}
	return f.obstacle()
}

// read brings what is known of a file up to date.
func (c *Configs) read(ctx context.Context, f *sharedFile) {
	file := markOf(f.Path())
	if f.found.Path != "" && f.failure == "" && file.same(f.seen[0]) && markOf(f.found.Copy).same(f.seen[1]) {
		return
	}
	found, err := f.Examine(ctx, f.newest)
	if err != nil {
		if reason := err.Error(); reason != f.failure {
			f.failure = reason
			c.Log.Info("shared configuration of a harness could not be examined: what is known of it stays", "path", f.Path(), "reason", reason)
		}
		return
	}
	if found.CopyProblem != nil {
		c.Log.Info("the last good copy of a harness's configuration is of no use: there is none until the file is sound", "path", found.Path, "copy", found.Copy, "reason", found.CopyProblem.Error())
	}
	now := c.Clock.Now()
	if f.found.Path == "" || !file.unwritten(f.seen[0]) {
		f.written, f.problem = now, ""
	}
	was := f.found.Damage
	f.found, f.seen, f.failure = found, [2]mark{file, markOf(found.Copy)}, ""
	switch {
	case found.Damage == harness.DamageNone:
		f.newer(now)
		f.sound(c, was)
	case was == harness.DamageNone:
		f.since = now
	}
}

// newer notes whether a sound file is another than its copy.
func (f *sharedFile) newer(now time.Time) {
	if !f.found.Newer {
		f.newest = harness.Finding{}
		return
	}
	if f.newest.Path == "" {
		f.newerSince = now
	}
	f.newest, f.newerAt = f.found, now
}

// copyDue has the newest sound text copied where that is due: at once where there is no
// copy that is of use.
func (c *Configs) copyDue(f *sharedFile) {
	if f.newest.Path == "" || f.copying {
		return
	}
	now := c.Clock.Now()
	wait := min(until(now, f.newerAt.Add(copyQuiet)), until(now, f.newerSince.Add(copyAtMost)))
	if f.seen[1].there && f.found.CopyProblem == nil && wait > 0 {
		c.again(f, wait)
		return
	}
	f.copying = true
	newest := f.newest
	f.after = append(f.after, func(c *Configs) {
		err := newest.Keep()
		f.mu.Lock()
		defer f.mu.Unlock()
		f.copying = false
		c.copied(f, newest, err)
	})
}

// copyNow copies the newest sound text, which is needed.
func (c *Configs) copyNow(f *sharedFile) {
	if f.newest.Path != "" {
		c.copied(f, f.newest, f.newest.Keep())
	}
}

// copied notes what became of the copying of a text.
func (c *Configs) copied(f *sharedFile, newest harness.Finding, err error) {
	now := c.Clock.Now()
	if err != nil {
		c.Log.Info("shared configuration of a harness could not be copied", "path", newest.Path, "reason", err.Error())
		f.newerSince, f.newerAt = now, now
		c.again(f, copyQuiet)
		return
	}
	if f.found.Damage == harness.DamageNone && !f.found.Is(newest) {
		c.again(f, copyQuiet) // another one since: it is compared with the copy
		f.newerSince = now
		return
	}
	f.newest, f.seen[1] = harness.Finding{}, markOf(newest.Copy)
}

// sound notes that nothing is wrong with the file any more.
func (f *sharedFile) sound(c *Configs, was harness.Damage) {
	told := f.told
	f.told = false
	if was != harness.DamageNone {
		c.changed()
	}
	if told {
		c.Log.Info("shared configuration of a harness is sound again", "path", f.found.Path)
	}
}

// unsure says for how long it cannot be told yet whether somebody is writing the file.
func (f *sharedFile) unsure(now time.Time) time.Duration {
	if f.told {
		return 0
	}
	return min(until(now, f.written.Add(configQuiet)), until(now, f.since.Add(configBroken)))
}

// restore puts the last good text in the place of what was left half written, once nobody
// writes it any more.
func (c *Configs) restore(ctx context.Context, f *sharedFile) {
	now := c.Clock.Now()
	if wait := until(now, f.written.Add(configQuiet)); wait > 0 {
		c.again(f, wait)
		return
	}
	for len(f.restored) > 0 && now.Sub(f.restored[0]) > restoresWithin {
		f.restored = f.restored[1:]
	}
	if len(f.restored) >= maxRestores {
		f.problem = fmt.Sprintf("it was restored %d times since %s and broken again", len(f.restored), f.restored[0].UTC().Format(time.RFC3339))
		return
	}
	kept, err := f.Restore(ctx, f.found, now)
	if err != nil {
		f.problem = "it could not be restored: " + err.Error()
		c.again(f, unknownRequeue)
		return
	}
	f.restored = append(f.restored, now)
	// What is found there next is another matter.
	f.found.Damage, f.told, f.seen = harness.DamageNone, false, [2]mark{}
	c.changed()
	f.tell(event.HostConfigRestored, fmt.Sprintf("%s was left half written and is restored from the last good copy of it; the broken one is %s: what was written meanwhile may be missing", f.found.Path, kept),
		"harness", f.of, "path", f.found.Path, "kept", kept)
	c.read(ctx, f)
}

func (c *Configs) changed() {
	if c.Changed != nil {
		go c.Changed()
	}
}

func (f *sharedFile) obstacle() *Obstacle {
	return &Obstacle{Reason: api.ReasonConfigurationBroken, Message: f.why()}
}

// why says what is wrong, and what a person does about it.
func (f *sharedFile) why() string {
	message := fmt.Sprintf("%s, which the sessions of harness %s share, %s: none is started into it, and what runs is left alone. ", f.found.Path, f.of, f.found.Damage.Words())
	if f.found.Damage == harness.DamageTorn && f.problem == "" {
		return message + "It is restored from " + f.found.Copy + " once nobody writes it any more"
	}
	if f.problem != "" {
		message += f.problem + ". "
	}
	return message + fmt.Sprintf("Mend it, or put the last good one back: cp %s %s; to have it taken as it is, remove %[1]s", f.found.Copy, f.found.Path)
}

// configInTheWay is what is wrong with the configuration that the harness shares with
// others, nil for nothing.
func (t *turn) configInTheWay(ctx context.Context) *Obstacle {
	p, ok := t.launch.adapter.(harness.ConfigSharer)
	if !ok || t.Configs == nil || t.desired() != DesiredRunning {
		return nil
	}
	o := t.prepareOptions()
	o.Trust = ptr.Deref(t.Class.Spec.Trust.Enabled, true)
	files, err := p.Shared(o)
	if err != nil {
		return nil // the start itself tells why it is not prepared
	}
	return t.Configs.Check(ctx, t.launch.adapter.Name(), files)
}

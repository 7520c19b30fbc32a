package tmux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	spawnMark     = "LOOP-SPAWN"
	defaultWidth  = 200
	defaultHeight = 50
	maxSize       = 10000
	// dirTime bounds the look at where the pane's process really works.
	dirTime = 250 * time.Millisecond
)

var objectRegexp = regexp.MustCompile(`^[A-Za-z0-9/._-]{0,300}$`)

// Spawn creates a session with one pane that executes req.Argv in req.Dir. The stamps and
// remain-on-exit, where the server takes it, are set in the same invocation, so that neither
// a fast end of the program nor a crash of ours leaves a session without them (T12).
//
// The program gets the server's environment, LOOP_UID, and no TMUX and TMUX_PANE. A
// program that cannot be executed is no error: its pane is dead with exit status 126 or
// 127 in the next snapshot (T26). A directory that does not exist, for us or for the
// server, is an error, because tmux would silently start elsewhere (T25).
//
// Errors: ErrDuplicate when the name is taken and nothing was changed; ErrAbsent when
// there is no server; *UnknownError when the session may or may not exist: look for its
// UID in a snapshot before trying again. Anything else was refused before tmux was asked.
func (s *Server) Spawn(ctx context.Context, req SpawnRequest) (Spawned, error) {
	const op = "spawn"
	if err := req.validate(); err != nil {
		return Spawned{}, err
	}
	target := "=" + req.Name + ":"
	create := command{"new-session", "-d", "-P",
		"-F", spawnMark + "|#{session_id}|#{window_id}|#{pane_id}|#{pane_pid}|#{pid}|#{start_time}|#{session_name}",
		"-s", req.Name, "-x", strconv.Itoa(or(req.Width, defaultWidth)), "-y", strconv.Itoa(or(req.Height, defaultHeight)),
		"-c", strings.ReplaceAll(req.Dir, "#", "##"), // a format: #(...) would run
		"-e", "LOOP_UID=" + req.UID,
		"--", "/usr/bin/env", "-u", "TMUX", "-u", "TMUX_PANE"}
	cmds := []command{
		append(create, req.Argv...),
		{"set-option", "-t", target, uidOption, req.UID},
		{"set-option", "-t", target, generationOption, req.Generation},
		{"set-option", "-t", target, objectOption, req.Object},
		{"set-option", "-t", target, "destroy-unattached", "off"},
	}
	if !s.refuses(remainOnExit) {
		cmds = append(cmds, command{"set-option", "-w", "-t", target, remainOnExit, "on"})
	}
	a, err := s.ask(ctx, op, append(cmds, sentinel(endMark))...)
	if err != nil {
		return Spawned{}, err
	}
	lines := strings.Split(strings.TrimSuffix(a.stdout, "\n"), "\n")
	spawned, name, ok := parseSpawned(lines[0])
	if !ok {
		return Spawned{}, s.failure(op, a)
	}
	_, v, whole := parseSentinel(endMark, lines[len(lines)-1])
	if !whole {
		return spawned, unknown(op, reasonOf(a), "the session was created, but not all of its options set: "+a.stderr, nil)
	}
	s.observe(spawned.Epoch, v)
	if name != req.Name { // never seen for names that match NamePattern (N04)
		return spawned, unknown(op, ReasonMalformed, fmt.Sprintf("the session was named %q instead of %q", name, req.Name), nil)
	}
	return spawned, s.checkDir(ctx, req, spawned)
}

func (req SpawnRequest) validate() error {
	switch {
	case !nameRegexp.MatchString(req.Name):
		return fmt.Errorf("tmux spawn: the session name %.300q does not match %s", req.Name, NamePattern)
	case req.Name == AnchorName:
		return fmt.Errorf("tmux spawn: the session name %q is reserved", req.Name)
	case !uidRegexp.MatchString(req.UID):
		return fmt.Errorf("tmux spawn: the UID %.300q does not match %s", req.UID, uidRegexp)
	case !uidRegexp.MatchString(req.Generation):
		return fmt.Errorf("tmux spawn: the generation %.300q does not match %s", req.Generation, uidRegexp)
	case !objectRegexp.MatchString(req.Object):
		return fmt.Errorf("tmux spawn: the object %.400q does not match %s", req.Object, objectRegexp)
	case len(req.Argv) < 2:
		return errors.New("tmux spawn: fewer than two words to execute: tmux would give a single one to a shell")
	case !filepath.IsAbs(req.Argv[0]):
		return fmt.Errorf("tmux spawn: the program %q is not an absolute path", req.Argv[0])
	case strings.Contains(req.Argv[0], "="):
		return fmt.Errorf(`tmux spawn: the program %q holds "=": env would take it for a variable`, req.Argv[0])
	case req.Width < 0 || req.Width > maxSize || req.Height < 0 || req.Height > maxSize:
		return fmt.Errorf("tmux spawn: a terminal of %dx%d: give 1 to %d each, or 0 for %dx%d", req.Width, req.Height, maxSize, defaultWidth, defaultHeight)
	case !filepath.IsAbs(req.Dir):
		return fmt.Errorf("tmux spawn: the directory %q is not an absolute path", req.Dir)
	}
	info, err := os.Stat(req.Dir)
	if err != nil {
		return fmt.Errorf("tmux spawn: the working directory cannot be used: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("tmux spawn: the working directory %s is not a directory", req.Dir)
	}
	return nil
}

// checkDir looks where the new process really works, as far as its pid means anything
// here. tmux falls back to the home directory or to / when the server cannot enter the
// directory that we see: it may be mounted for us only. Such a session is ended at once.
// Anywhere else the program went by itself.
func (s *Server) checkDir(ctx context.Context, req SpawnRequest, sp Spawned) error {
	want, err := os.Stat(req.Dir)
	if err != nil || !s.pidsVisible(sp.Epoch) {
		return nil
	}
	p, err := openProcess(sp.PanePID)
	if err != nil {
		return nil
	}
	defer p.close()
	for deadline := time.Now().Add(dirTime); time.Now().Before(deadline); {
		dir, fallback, ready := processDir(sp.PanePID, sp.Epoch.PID)
		switch {
		case !ready:
			if p.ended(time.Millisecond) {
				return nil
			}
			continue
		case os.SameFile(dir, want) || !fallback:
			return nil
		}
		kill := Target{UID: req.UID, SessionID: sp.SessionID, PaneID: sp.PaneID, Epoch: sp.Epoch}
		_, err := s.KillSession(ctx, kill)
		return errors.Join(fmt.Errorf("tmux spawn: the server cannot enter %s and started in its home directory or in / instead: "+
			"make the directory visible to the server; the session was ended", req.Dir), err)
	}
	return nil
}

func parseSpawned(line string) (sp Spawned, name string, ok bool) {
	f := strings.SplitN(line, "|", 8)
	if len(f) != 8 || f[0] != spawnMark || !sessionIDRegexp.MatchString(f[1]) || !windowIDRegexp.MatchString(f[2]) || !paneIDRegexp.MatchString(f[3]) {
		return Spawned{}, "", false
	}
	panePID, err1 := strconv.Atoi(f[4])
	pid, err2 := strconv.Atoi(f[5])
	start, err3 := strconv.ParseInt(f[6], 10, 64)
	if errors.Join(err1, err2, err3) != nil {
		return Spawned{}, "", false
	}
	return Spawned{SessionID: f[1], WindowID: f[2], PaneID: f[3], PanePID: panePID, Epoch: Epoch{PID: pid, StartTime: start}}, f[7], true
}

func or(n, def int) int {
	if n == 0 {
		return def
	}
	return n
}

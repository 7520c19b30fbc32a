package tmux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

const (
	// HubName is the session that all web clients of the provider ttyd share. It is no
	// part of a Snapshot.
	HubName = "the-loop-hub"
	// viewTerm is the terminal that a view talks to, and viewFeatures what of it terminfo
	// does not say.
	viewTerm     = "xterm-256color"
	viewFeatures = "256,RGB"
	// viewGrace is how long the client of a view may take to end by itself.
	viewGrace = 2 * time.Second
)

// Size of a terminal, in characters.
type Size struct{ Columns, Rows int }

func (s Size) winsize() (*pty.Winsize, error) {
	const most = 4096
	if s.Columns < 1 || s.Rows < 1 || s.Columns > most || s.Rows > most {
		return nil, fmt.Errorf("tmux view: a terminal has 1 to %d columns and rows, not %dx%d", most, s.Columns, s.Rows)
	}
	return &pty.Winsize{Cols: uint16(s.Columns), Rows: uint16(s.Rows)}, nil
}

// View is a tmux client on a terminal of its own that shows one session and types
// nothing. It ends with the session, the server or Close.
type View struct {
	client *exec.Cmd
	screen *os.File
	done   chan struct{}
	once   sync.Once
}

// View attaches a read-only client to exactly the session of the target: the server itself
// compares stamp, ids and epoch before it attaches, and of "loop-a-1" and "loop-a-12" never
// shows the other one. size is that of a Look just now: tmux asks for it where no other
// client is attached, so that another one would change the session's. What became
// another one since ends the view at once. Close ends the client alone. Errors: the client
// could not be started.
func (s *Server) View(t Target, size Size) (*View, error) {
	const op = "view"
	if err := t.validate(op, false); err != nil {
		return nil, err
	}
	ws, err := size.winsize()
	if err != nil {
		return nil, err
	}
	args, err := s.argv([]command{{"if-shell", "-F", "-t", t.session(), t.sessionGuard(nil, nil),
		"attach-session -r -t '" + t.session() + "'", t.refusal(t.session(), "-")}})
	if err != nil {
		return nil, err
	}
	v := &View{done: make(chan struct{})}
	v.client = exec.Command(s.binary, append([]string{"-T", viewFeatures}, args...)...)
	v.client.Env = append(s.clientEnv[:len(s.clientEnv):len(s.clientEnv)], "TERM="+viewTerm)
	terminal, err := pty.StartWithSize(v.client, ws)
	if err != nil {
		return nil, unknown(op, ReasonExec, "", err)
	}
	if v.screen, err = pollable(terminal); err != nil {
		_ = v.client.Process.Kill()
		_ = v.client.Wait()
		return nil, unknown(op, ReasonExec, "", err)
	}
	go func() {
		defer close(v.done)
		_ = v.client.Wait()
	}()
	return v, nil
}

// pollable makes a file of the terminal whose Close ends a Read, which creack/pty's does not:
// it reads in a system call, and the client behind it would see no hang-up.
func pollable(terminal *os.File) (*os.File, error) {
	defer func() { _ = terminal.Close() }()
	fd, err := unix.FcntlInt(terminal.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("duplicating the terminal: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, fmt.Errorf("setting up the terminal: %w", err)
	}
	return os.NewFile(uintptr(fd), terminal.Name()), nil
}

// Read reads what is drawn: escape sequences of an xterm. It fails when the view has ended.
func (v *View) Read(p []byte) (int, error) { return v.screen.Read(p) }

// Resize makes the terminal of the view another size, that of a Look just now.
func (v *View) Resize(size Size) error {
	ws, err := size.winsize()
	if err != nil {
		return err
	}
	// Not by its Fd, which would make it one that blocks.
	raw, err := v.screen.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Row: ws.Rows, Col: ws.Cols})
	})
	return errors.Join(err, failed)
}

// PID is the process id of the tmux client.
func (v *View) PID() int { return v.client.Process.Pid }

// Close detaches, and waits until the client has ended. The session goes on.
func (v *View) Close() {
	v.once.Do(func() {
		// The hang-up of its terminal ends a client.
		_ = v.screen.Close()
		timer := time.NewTimer(viewGrace)
		defer timer.Stop()
		select {
		case <-v.done:
		case <-timer.C:
			_ = v.client.Process.Kill()
			<-v.done
		}
	})
}

// Look is what a viewer must know of the pane behind a view.
type Look struct {
	// Size is that of the whole terminal, status line included.
	Size Size
	// Live: the pane's process runs.
	Live bool
	// InFront: the pane is what a viewer sees. A person can have split the window or
	// gone to another one.
	InFront bool
	// Framed: the program takes a paste in a frame. tmux tells from 3.7 on; an older one never
	// says so.
	Framed bool
	// Clients are the process ids of the clients that are attached to the session.
	Clients []int
}

// Look looks at the target's pane. Errors are those of Capture.
func (s *Server) Look(ctx context.Context, t Target) (Look, error) {
	const op = "look"
	if err := t.validate(op, true); err != nil {
		return Look{}, err
	}
	text, err := s.capture(ctx, op, t, "display-message -p "+doneMark+
		" ; display-message -p -t '"+t.pane()+"' '#{window_width} #{window_height} #{?#{==:#{status},on},1,#{?#{==:#{status},off},0,#{status}}}"+
		" #{pane_dead} #{window_active} #{pane_active} #{?bracket_paste_flag,1,0}'"+
		" ; list-clients -t '"+t.session()+"' -F '#{client_pid}'")
	if err != nil {
		return Look{}, err
	}
	first, rest, _ := strings.Cut(text, "\n")
	var l Look
	var status, dead, window, pane, framed int
	if _, err := fmt.Sscanf(first, "%d %d %d %d %d %d %d", &l.Size.Columns, &l.Size.Rows, &status, &dead, &window, &pane, &framed); err != nil {
		return Look{}, unknown(op, ReasonMalformed, "", fmt.Errorf("%.80q is no look at a pane", first))
	}
	l.Size.Rows += status
	l.Live, l.InFront, l.Framed = dead == 0, window == 1 && pane == 1, framed == 1
	for line := range strings.Lines(rest) {
		var pid int
		if _, err := fmt.Sscan(line, &pid); err == nil {
			l.Clients = append(l.Clients, pid)
		}
	}
	return l, nil
}

// maxKeys bounds what one Keys takes, in bytes.
const maxKeys = 4096

// Keys types into the target's pane what a person's terminal sent, byte for byte. It resolves
// no client and no key table, so that no key of it is a command of tmux (U12), and keys
// reach the recorded pane alone, while it lives, takes input and is in front: else Refused.
// Cursor keys are sent in the form that the application asked for. At most 4,096
// bytes. An *UnknownError leaves open whether it was typed.
func (s *Server) Keys(ctx context.Context, t Target, keys []byte) (Result, error) {
	const op = "keys"
	if len(keys) == 0 || len(keys) > maxKeys {
		return Result{}, fmt.Errorf("tmux keys: %d bytes, but 1 to %d are typed at a time", len(keys), maxKeys)
	}
	application := cursorKeys.Replace(string(keys))
	normal := cursorKeysNormal.Replace(application)
	if application == normal {
		return s.typeInto(ctx, op, t, "-r", keys)
	}
	return s.typeInto(ctx, op, t, "-r", []byte(application), []byte(normal))
}

// Cursor keys have two forms, of which an application chooses one (DECCKM).
var (
	cursorKeys = strings.NewReplacer("\x1b[A", "\x1bOA", "\x1b[B", "\x1bOB", "\x1b[C", "\x1bOC",
		"\x1b[D", "\x1bOD", "\x1b[H", "\x1bOH", "\x1b[F", "\x1bOF")
	cursorKeysNormal = strings.NewReplacer("\x1bOA", "\x1b[A", "\x1bOB", "\x1b[B", "\x1bOC", "\x1b[C",
		"\x1bOD", "\x1b[D", "\x1bOH", "\x1b[H", "\x1bOF", "\x1b[F")
)

// PasteKeys types a text that a person pasted into his terminal, in a frame where the
// application has asked for one, under the same conditions as Keys. The text holds no
// control characters but TAB and LF: another could end the frame (P01).
func (s *Server) PasteKeys(ctx context.Context, t Target, text string) (Result, error) {
	if text == "" {
		return Result{}, errors.New("tmux paste-keys: the text is empty: there is nothing to type")
	}
	return s.typeInto(ctx, "paste-keys", t, "-p -r", []byte(text))
}

// typeInto pastes the text into the pane if the guard holds. A second text is for an
// application whose cursor keys are in their normal form.
func (s *Server) typeInto(ctx context.Context, op string, t Target, flags string, text []byte, normal ...[]byte) (Result, error) {
	if err := t.validate(op, true); err != nil {
		return Result{}, err
	}
	if !s.serverVersion().before(v37) {
		flags += " -S" // else control characters are made visible
	}
	buffer := bufferName("keys")
	cmds := []command{{"load-buffer", "-b", buffer, "/proc/self/fd/3"}}
	then, drop := "paste-buffer "+flags+" -d -b "+buffer+" -t '"+t.pane()+"'", "delete-buffer -b "+buffer
	if len(normal) > 0 {
		other := bufferName("keys")
		cmds = append(cmds, command{"load-buffer", "-b", other, "/proc/self/fd/4"})
		// "$" needs its backslash in the inner strings, which tmux parses a second time.
		chosen := func(one, dropped string) string {
			return "'paste-buffer " + flags + " -d -b " + one + " -t \\" + t.pane() + " ; delete-buffer -b " + dropped + "'"
		}
		then = "if-shell -F -t '" + t.pane() + "' '#{keypad_cursor_flag}' " + chosen(buffer, other) + " " + chosen(other, buffer)
		drop += " ; delete-buffer -b " + other
	}
	guard := t.paneGuard([]string{"#{pane_dead}", "#{pane_input_off}", "#{window_active}", "#{pane_active}"}, []string{"0", "0", "1", "1"})
	cmds = append(cmds, command{"if-shell", "-F", "-t", t.pane(), guard,
		then + " ; display-message -p " + doneMark, drop + " ; " + t.refusal(t.pane(), "-")})
	return s.deliver(ctx, op, buffer, t, nil, func() (answer, error) {
		return s.askWith(ctx, op, func() (answer, error) { return s.runWith(ctx, op, append([][]byte{text}, normal...), cmds...) })
	})
}

// serverVersion is that of the server as it was last seen, else of the client.
func (s *Server) serverVersion() version {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen.version.text != "" {
		return s.seen.version
	}
	return s.client
}

// HubCommand is the program with its arguments that shows a browser the shared session
// HubName, which it makes where it is missing: a list of the server's sessions, from which
// a person who may type goes to each of them. The environment is the second value.
// It starts no server.
func (s *Server) HubCommand(writable bool) (argv, env []string) {
	create := command{"new-session", "-A", "-s", HubName, "-c", "/"}
	if !writable {
		create = append(create, "-f", "read-only,ignore-size")
	}
	create = append(create, "--", "/bin/sleep", "infinity")
	args, err := s.argv([]command{create, {"choose-tree", "-Zs", "-t", "=" + HubName + ":"}})
	if err != nil { // nothing in it is given
		panic(err)
	}
	return append([]string{s.binary, "-T", viewFeatures}, args...), append(s.clientEnv[:len(s.clientEnv):len(s.clientEnv)], "TERM="+viewTerm)
}

// EndHub ends the shared session and nothing else. One that does not exist is no error.
func (s *Server) EndHub(ctx context.Context) error {
	_, err := s.run(ctx, "end-hub", command{"kill-session", "-t", "=" + HubName})
	return err
}

// memoryFiles are anonymous files with these texts.
func memoryFiles(texts [][]byte) (files []*os.File, closing func(), err error) {
	closing = func() {
		for _, f := range files {
			_ = f.Close()
		}
	}
	for _, text := range texts {
		f, err := memoryFile(text)
		if err != nil {
			closing()
			return nil, nil, err
		}
		files = append(files, f)
	}
	return files, closing, nil
}

package tmux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// NamePattern is what a session name must match: no character that any tmux version
	// rewrites, refuses, expands or takes for a flag, an id or a special token (N04, N07).
	NamePattern = `^[A-Za-z][A-Za-z0-9_-]{0,199}$`

	// AnchorName is the session that keeps the server from ever being empty. It is no
	// part of a Snapshot.
	AnchorName = "loop_anchor"

	// MaxSocketBytes is the longest socket path that the kernel takes.
	MaxSocketBytes = 107

	defaultTimeout      = 5 * time.Second
	defaultHistoryLimit = 20000
)

var nameRegexp = regexp.MustCompile(NamePattern)

// Config says which tmux server is ours and how it is spoken to.
type Config struct {
	// Binary is the tmux program; "" means tmux on PATH.
	Binary string
	// Socket is the server's socket: absolute, at most MaxSocketBytes long. It is passed
	// with -S always, so that no environment variable can lead to another server (N17).
	Socket string
	// Timeout bounds one run of the tmux client; 0 means 5 s.
	Timeout time.Duration
	// HistoryLimit is the scrollback of a pane in lines; 0 means 20000. It is the memory
	// knob: 2,000 lines of 200 columns take about 2 MB.
	HistoryLimit int
	// PassEnv names further variables of our environment that a server started by
	// Ensure gets. Without it only a fixed list gets through (PATH, HOME, USER, SHELL, locale,
	// time zone, XDG directories, proxies, CA files), because every process in every
	// session inherits the server's environment (T27, T28).
	PassEnv []string
}

// Server is our side of one tmux server, running or not. Its methods may be called
// from several goroutines at once.
type Server struct {
	binary       string
	command      string // what a person types for binary
	socket       string
	timeout      time.Duration
	historyLimit int
	client       version
	clientEnv    []string
	serverEnv    []string

	starting sync.Mutex // one Ensure at a time

	mu       sync.Mutex
	seen     seenServer
	reminded time.Time
	warnings []string
	pinned   Epoch // the server that drift is about
	drift    []string
	refused  map[string]bool // options that the pinned server does not take
	watchers map[*watcher]struct{}
	typing   map[string]*typing // by delivery
}

// New checks the configuration and the tmux client. It starts nothing. It refuses a
// missing tmux, one older than 3.2 and a socket path that cannot work, and says what
// to do about it.
func New(cfg Config) (*Server, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("sessions can be hosted on Linux only, not on %s", runtime.GOOS)
	}
	if err := checkSocket(cfg.Socket); err != nil {
		return nil, err
	}
	if cfg.Timeout < 0 || cfg.HistoryLimit < 0 {
		return nil, fmt.Errorf("tmux: timeout %s and history limit %d must not be negative", cfg.Timeout, cfg.HistoryLimit)
	}
	binary, command, err := findBinary(cfg.Binary)
	if err != nil {
		return nil, err
	}
	s := &Server{
		binary:       binary,
		command:      command,
		socket:       cfg.Socket,
		timeout:      cfg.Timeout,
		historyLimit: cfg.HistoryLimit,
		clientEnv:    clientEnvironment(os.Environ()),
		serverEnv:    serverEnvironment(os.Environ(), cfg.PassEnv),
		watchers:     map[*watcher]struct{}{},
		typing:       map[string]*typing{},
		refused:      map[string]bool{},
	}
	if s.timeout == 0 {
		s.timeout = defaultTimeout
	}
	if s.historyLimit == 0 {
		s.historyLimit = defaultHistoryLimit
	}
	if s.client, err = s.clientVersion(); err != nil {
		return nil, err
	}
	if err := checkVersion("client", s.client); err != nil {
		return nil, err
	}
	s.warn(versionWarning("client", s.client))
	return s, nil
}

// DefaultSocket is the socket that "tmux -L name" uses in this environment:
// <TMUX_TMPDIR or /tmp>/tmux-<uid>/<name>. Like tmux it falls back to /tmp when
// TMUX_TMPDIR does not exist. A name that is empty, "." or ".." or holds "/" is refused.
func DefaultSocket(name string) (string, error) {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return "", fmt.Errorf("tmux: %q is no socket name: give one without %q, like the-loop", name, "/")
	}
	for _, dir := range []string{os.Getenv("TMUX_TMPDIR"), "/tmp"} {
		if dir == "" {
			continue
		}
		abs, err := filepath.Abs(dir)
		if err != nil {
			continue
		}
		if abs, err = filepath.EvalSymlinks(abs); err == nil {
			return filepath.Join(abs, "tmux-"+strconv.Itoa(os.Getuid()), name), nil
		}
	}
	return "", errors.New("tmux: neither TMUX_TMPDIR nor /tmp exists: create one of them")
}

// Socket is the absolute path of the server's socket.
func (s *Server) Socket() string { return s.socket }

// Environ is the environment of a server that is started now, and so of every pane.
func (s *Server) Environ() []string { return slices.Clone(s.serverEnv) }

// Version is the version of the tmux client, as in "3.3a".
func (s *Server) Version() string { return s.client.text }

// Warnings says what works but should be changed, as in a tmux older than 3.4. It
// grows when Ensure finds more.
func (s *Server) Warnings() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.warnings...)
}

func (s *Server) warn(text string) {
	if text == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.warnings {
		if w == text {
			return
		}
	}
	s.warnings = append(s.warnings, text)
}

func checkSocket(path string) error {
	switch {
	case path == "":
		return errors.New("tmux: the socket path is empty: give an absolute path, like /run/the-loop/tmux.sock")
	case strings.IndexByte(path, 0) >= 0 || strings.ContainsAny(path, "\n\r"):
		return fmt.Errorf("tmux: the socket path %q holds a control character: give a plain one", path)
	case !filepath.IsAbs(path):
		return fmt.Errorf("tmux: the socket path %q is relative: give an absolute path", path)
	case filepath.Clean(path) != path:
		return fmt.Errorf("tmux: the socket path %q is not in its shortest form: give %q", path, filepath.Clean(path))
	case len(path) > MaxSocketBytes:
		return fmt.Errorf("tmux: the socket path is %d bytes long, but the limit is %d: choose a shorter directory: %s",
			len(path), MaxSocketBytes, path)
	}
	return nil
}

// findBinary resolves the tmux program, and says how a person calls the same one.
func findBinary(binary string) (path, command string, err error) {
	name := binary
	if name == "" {
		name = "tmux"
	}
	path, err = exec.LookPath(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		osRelease, _ := os.ReadFile("/etc/os-release")
		return "", "", fmt.Errorf("tmux is needed to host sessions, but %w: %s", err, installHint(runtime.GOOS, string(osRelease)))
	}
	if onPath, err := exec.LookPath("tmux"); err == nil && onPath == path {
		return path, "tmux", nil
	}
	return path, shellQuote(path), nil
}

// installHint is the command that installs tmux on this platform.
func installHint(goos, osRelease string) string {
	if goos == "darwin" {
		return "install it with: brew install tmux"
	}
	for _, line := range strings.Split(osRelease, "\n") {
		key, value, _ := strings.Cut(line, "=")
		if key != "ID" && key != "ID_LIKE" {
			continue
		}
		for _, id := range strings.Fields(strings.Trim(value, `"'`)) {
			switch id {
			case "debian", "ubuntu":
				return "install it with: apt-get install tmux"
			case "fedora", "rhel", "centos", "amzn":
				return "install it with: dnf install tmux"
			case "alpine":
				return "install it with: apk add tmux"
			case "arch":
				return "install it with: pacman -S tmux"
			case "suse", "opensuse":
				return "install it with: zypper install tmux"
			case "nixos":
				return "install it with: nix-env -iA nixos.tmux"
			}
		}
	}
	return "install the package tmux, 3.4 or newer if there is one"
}

func (s *Server) clientVersion() (version, error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.binary, "-V")
	cmd.Env = s.clientEnv
	cmd.WaitDelay = drainDelay
	out, err := cmd.Output()
	if err != nil {
		return version{}, fmt.Errorf("tmux: %s -V does not work: %w: is this tmux?", s.binary, err)
	}
	if !strings.HasPrefix(string(out), "tmux ") {
		return version{}, fmt.Errorf("tmux: %s -V says %.100q: this is not tmux", s.binary, out)
	}
	return parseVersion(string(out)), nil
}

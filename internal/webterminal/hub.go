package webterminal

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
)

const (
	// oldestTTYD is read-only unless told otherwise (1.7.0); an older one lets everybody type.
	oldestTTYDMajor, oldestTTYDMinor = 1, 7
	// versionWithin bounds the question for ttyd's version.
	versionWithin = 5 * time.Second
	// ttydGrace is how long a ttyd may take to end when it is asked to.
	ttydGrace = time.Second
	// A ttyd that ends by itself is started again after firstAgain, twice that and so on up to
	// lastAgain; one that ran for steady begins anew.
	firstAgain, lastAgain, steady = time.Second, time.Minute, time.Minute
	// maxSocket is the longest path of a socket, in bytes.
	maxSocket = 107
)

// hub is a ttyd child that shows the shared session.
type hub struct {
	argv, env []string
	socket    string
	end       func(context.Context) error
	proxy     *httputil.ReverseProxy
	log       logr.Logger
}

// newHub checks ttyd before anything is started (the preflight of the specification) and
// says how to install it.
func newHub(o Options, dir string, t Terminal, log logr.Logger) (*hub, error) {
	ttyd, err := findTTYD(o.TTYD)
	if err != nil {
		return nil, err
	}
	h := &hub{socket: filepath.Join(dir, "ttyd.sock"), end: t.EndHub, log: log}
	if len(h.socket) > maxSocket {
		return nil, fmt.Errorf("the socket path %s has %d bytes, and at most %d are possible: choose a shorter --state-dir", h.socket, len(h.socket), maxSocket)
	}
	argv, env := t.HubCommand(o.Writable)
	h.env = env
	// A socket in our own directory: nobody comes to ttyd but through our checks (U04).
	h.argv = []string{ttyd, "-i", h.socket, "-b", strings.TrimSuffix(hubPath, "/"), "-O", "-m", strconv.Itoa(o.MaxClients), "-P", strconv.Itoa(int(pingEvery.Seconds())),
		"-t", "titleFixed=the-loop", "-t", "disableLeaveAlert=true", "-t", "enableZmodem=false", "-t", "enableSixel=false"}
	if o.Writable {
		h.argv = append(h.argv, "-W")
	}
	h.argv = append(h.argv, argv...)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", h.socket)
	}
	h.proxy = &httputil.ReverseProxy{
		Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = "http", "ttyd"
			r.Out.Host = r.In.Host // which ttyd compares with the origin
			r.Out.Header.Del("Cookie")
		},
		ModifyResponse: func(r *http.Response) error {
			// Our own headers hold.
			for _, name := range []string{"Content-Security-Policy", "X-Frame-Options", "Cache-Control", "Set-Cookie"} {
				r.Header.Del(name)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			log.V(1).Info("web terminal: ttyd did not answer", "error", err.Error())
			http.Error(w, "ttyd does not answer; it is started again by itself. Try again in a moment; the agent's log says more.", http.StatusBadGateway)
		},
	}
	return h, nil
}

var ttydVersion = regexp.MustCompile(`(?m)^ttyd version ([0-9]{1,4})\.([0-9]{1,4})`)

// findTTYD resolves ttyd and refuses one that is too old.
func findTTYD(name string) (string, error) {
	if name == "" {
		name = "ttyd"
	}
	path, err := exec.LookPath(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", fmt.Errorf("the web terminal's provider ttyd needs ttyd %d.%d or newer, but %w: %s, or choose --web-terminal-provider builtin, which needs nothing", oldestTTYDMajor, oldestTTYDMinor, err, ttydHint())
	}
	ctx, cancel := context.WithTimeout(context.Background(), versionWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--version")
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	m := ttydVersion.FindSubmatch(out)
	if m == nil {
		return "", errors.Join(fmt.Errorf("%s --version says %.100q: is this ttyd? Name it with --web-terminal-ttyd", path, bytes.TrimSpace(out)), err)
	}
	major, _ := strconv.Atoi(string(m[1]))
	minor, _ := strconv.Atoi(string(m[2]))
	if major < oldestTTYDMajor || major == oldestTTYDMajor && minor < oldestTTYDMinor {
		return "", fmt.Errorf("ttyd is version %d.%d, but %d.%d is the oldest that can be kept read-only: upgrade it, or choose --web-terminal-provider builtin", major, minor, oldestTTYDMajor, oldestTTYDMinor)
	}
	return path, nil
}

// ttydHint says how ttyd is installed on this platform.
func ttydHint() string {
	if runtime.GOOS == "darwin" {
		return "install it with: brew install ttyd"
	}
	release, _ := os.ReadFile("/etc/os-release")
	for _, id := range regexp.MustCompile(`(?m)^ID(?:_LIKE)?=(.*)$`).FindAllStringSubmatch(string(release), -1) {
		for _, word := range strings.Fields(strings.Trim(id[1], `"'`)) {
			switch word {
			case "debian", "ubuntu":
				return "install it with: apt-get install ttyd, where the release has it"
			case "fedora", "rhel", "centos":
				return "install it with: dnf install ttyd"
			case "alpine":
				return "install it with: apk add ttyd"
			case "arch":
				return "install it with: pacman -S ttyd"
			}
		}
	}
	return "install the package ttyd"
}

// run keeps ttyd running until ctx ends, and then ends it and the shared session.
func (h *hub) run(ctx context.Context) {
	wait := firstAgain
	for ctx.Err() == nil {
		began := time.Now()
		err := h.once(ctx)
		if ctx.Err() != nil {
			break
		}
		if time.Since(began) > steady {
			wait = firstAgain
		}
		h.log.Error(err, "web terminal: ttyd ended by itself; it is started again", "in", wait.String())
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		wait = min(2*wait, lastAgain)
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = h.end(ending)
	_ = os.Remove(h.socket)
}

// once runs ttyd until it ends or ctx does.
func (h *hub) once(ctx context.Context) error {
	if err := os.Remove(h.socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	cmd := exec.CommandContext(ctx, h.argv[0], h.argv[1:]...)
	cmd.Env, cmd.Dir = h.env, "/"
	cmd.SysProcAttr = childAttr()
	// The whole group: what ttyd started for a browser is a tmux client, and no session.
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = ttydGrace
	last := &lastLine{}
	cmd.Stdout, cmd.Stderr = last, last
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("ttyd cannot be started: %w", err)
	}
	err := cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	return fmt.Errorf("%w: it said last: %s", errors.Join(errors.New("ttyd ended"), err), last.text)
}

// lastLine keeps the last line of what is written into it.
type lastLine struct{ text string }

func (l *lastLine) Write(p []byte) (int, error) {
	for scan := bufio.NewScanner(bytes.NewReader(p)); scan.Scan(); {
		if line := strings.TrimSpace(scan.Text()); line != "" {
			l.text = strconv.Quote(clip(line))
		}
	}
	return len(p), nil
}

// hubPolicy lets ttyd's page work, which is one file with its script in it.
const hubPolicy = "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; " +
	"media-src 'self'; connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

// serveHub hands a request of a person who is in over to ttyd.
func (s *Server) serveHub(w http.ResponseWriter, r *http.Request) {
	upgrade := r.Header.Get("Upgrade") != ""
	if (upgrade || r.Method != http.MethodGet) && !s.ours(r) {
		s.Log.Info("web terminal: a request of another page was refused", "origin", clip(r.Header.Get("Origin")), "from", r.RemoteAddr)
		http.Error(w, "Only pages of this web terminal may do that.", http.StatusForbidden)
		return
	}
	w.Header().Set("Content-Security-Policy", hubPolicy)
	if upgrade {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		go s.whileLoggedIn(ctx, cancel, s.cookie(r))
		r = r.WithContext(ctx)
	}
	s.hub.proxy.ServeHTTP(w, r)
}

// whileLoggedIn ends a connection whose login has ended.
func (s *Server) whileLoggedIn(ctx context.Context, end func(), cookie string) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for s.logins.valid(cookie) {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
	end()
}

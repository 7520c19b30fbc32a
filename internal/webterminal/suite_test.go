//go:build linux

package webterminal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/go-logr/logr/funcr"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.uber.org/goleak"

	"github.com/theloop-dev/the-loop/internal/tmux"
	"github.com/theloop-dev/the-loop/internal/webterminal"
)

func TestMain(m *testing.M) {
	if os.Getenv(standInVariable) != "" {
		os.Exit(standIn())
	}
	os.Exit(m.Run())
}

func TestWebTerminal(t *testing.T) {
	RegisterFailHandler(Fail)
	suite, reporter := GinkgoConfiguration()
	suite.Timeout = 10 * time.Minute
	RunSpecs(t, "web terminal", suite, reporter)
}

// Each spec ends with as many goroutines as it began with. This is registered first, so
// that its cleanup comes last.
var _ = BeforeEach(func() {
	ignore := goleak.IgnoreCurrent()
	DeferCleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		Eventually(func() error { return goleak.Find(ignore) }).WithTimeout(10 * time.Second).Should(Succeed())
	})
	SetDefaultEventuallyTimeout(15 * time.Second)
	SetDefaultEventuallyPollingInterval(10 * time.Millisecond)
})

// sessions are what a web terminal is told that there is.
type sessions struct {
	mu  sync.Mutex
	all map[webterminal.Ref]webterminal.Session
}

// Find implements webterminal.Sessions.
func (s *sessions) Find(_ context.Context, ref webterminal.Ref) (webterminal.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if found, ok := s.all[ref]; ok {
		return found, nil
	}
	return webterminal.Session{}, &webterminal.ProblemError{Status: http.StatusNotFound, What: "There is no session " + ref.String(), Do: "Look at <the> list."}
}

// List implements webterminal.Sessions.
func (s *sessions) List(context.Context) (out []webterminal.Session, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.all {
		out = append(out, v)
	}
	return out, nil
}

// change changes what is told of a session.
func (s *sessions) change(ref webterminal.Ref, f func(*webterminal.Session)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.all[ref]
	f(&v)
	s.all[ref] = v
}

func (s *sessions) remove(ref webterminal.Ref) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, ref)
}

// stage is a web terminal on a terminal server of its own.
type stage struct {
	*sessions
	dir    string
	tmux   *tmux.Server
	epoch  tmux.Epoch
	web    *webterminal.Server
	socket string
	log    *logged
	stop   func()
	uids   []string
}

// logged is what was logged.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

var serial atomic.Int64

// newStage serves the web terminal on a free port. change adapts the options.
func newStage(change ...func(*webterminal.Options)) *stage {
	GinkgoHelper()
	return newStageBy("", change...)
}

// newStageBy does so with another program as tmux.
func newStageBy(tmuxBinary string, change ...func(*webterminal.Options)) *stage {
	GinkgoHelper()
	s := &stage{sessions: &sessions{all: map[webterminal.Ref]webterminal.Session{}}, log: &logged{}}
	var err error
	s.dir, err = os.MkdirTemp("/tmp", "lw")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(os.RemoveAll, s.dir)
	Expect(os.Mkdir(filepath.Join(s.dir, "t"), 0o700)).To(Succeed())
	s.socket = filepath.Join(s.dir, "t", "s")
	s.tmux, err = tmux.New(tmux.Config{Socket: s.socket, Binary: tmuxBinary, Timeout: 20 * time.Second})
	Expect(err).NotTo(HaveOccurred())
	s.epoch, err = s.tmux.Ensure(context.Background())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() {
		Expect(s.tmux.Shutdown(context.Background(), s.epoch)).To(Succeed())
		for _, uid := range s.uids {
			_, err := tmux.EndProcesses(context.Background(), uid, 0)
			Expect(err).NotTo(HaveOccurred())
		}
	})
	o := webterminal.Options{Enabled: true}
	for _, c := range change {
		c(&o)
	}
	Expect(o.Complete()).To(Succeed())
	log := funcr.New(func(_, args string) {
		s.log.mu.Lock()
		defer s.log.mu.Unlock()
		fmt.Fprintln(io.MultiWriter(&s.log.b, GinkgoWriter), args)
	}, funcr.Options{Verbosity: 1})
	s.web = &webterminal.Server{Options: o, Dir: filepath.Join(s.dir, "web-terminal"), Sessions: s.sessions, Terminal: s.tmux, Log: log, LookEvery: 50 * time.Millisecond}
	Expect(s.web.Open()).To(Succeed())
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.web.Start(ctx) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		var err error
		Eventually(ended).WithTimeout(4 * time.Second).Should(Receive(&err))
		Expect(err).NotTo(HaveOccurred())
	})
	DeferCleanup(s.stop)
	return s
}

func writable(o *webterminal.Options) { o.Writable = true }

// standing makes a session that runs a shell command.
func (s *stage) standing(name, script string, args ...string) webterminal.Session {
	GinkgoHelper()
	uid := fmt.Sprintf("w%d-%d", os.Getpid(), serial.Add(1))
	s.uids = append(s.uids, uid)
	spawned, err := s.tmux.Spawn(context.Background(), tmux.SpawnRequest{
		Name: "loop-standing-" + name, UID: uid, Generation: "1", Object: "standingsession/default/" + name, Dir: s.dir,
		Argv: append([]string{"/bin/sh", "-c", script}, args...), Width: 80, Height: 24,
	})
	Expect(err).NotTo(HaveOccurred())
	v := webterminal.Session{
		Ref: webterminal.Ref{Kind: "standingsession", Namespace: "default", Name: name}, UID: uid,
		Target: tmux.Target{UID: uid, SessionID: spawned.SessionID, PaneID: spawned.PaneID, Epoch: spawned.Epoch},
	}
	s.change(v.Ref, func(to *webterminal.Session) { *to = v })
	return v
}

// reader makes a session whose program asks for framed pastes, says READY and its name, and
// keeps every byte that it gets.
func (s *stage) reader(name string) (webterminal.Session, func() string) {
	GinkgoHelper()
	file := filepath.Join(s.dir, name+".got")
	v := s.standing(name, `stty raw -echo; : >"$0"; printf '\033[?2004hREADY-%s.' "$1"; exec cat >>"$0"`, file, name)
	s.shows(v, "READY-"+name+".")
	return v, func() string {
		b, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		return string(b)
	}
}

func (s *stage) shows(v webterminal.Session, text string) {
	GinkgoHelper()
	Eventually(func() (string, error) { return s.tmux.Capture(context.Background(), v.Target, 0) }).Should(ContainSubstring(text))
}

// clients are the tmux clients of a session.
func (s *stage) clients(v webterminal.Session) []int {
	GinkgoHelper()
	l, err := s.tmux.Look(context.Background(), v.Target)
	Expect(err).NotTo(HaveOccurred())
	return l.Clients
}

func (s *stage) token() string {
	GinkgoHelper()
	token, err := webterminal.ReadToken(s.web.Dir)
	Expect(err).NotTo(HaveOccurred())
	return token
}

func (s *stage) ticket() string { return webterminal.NewTicket(s.token(), time.Now()) }

func (s *stage) origin() string { return strings.TrimSuffix(s.web.URL(), "/") }

// someone is a program that asks like a browser.
type someone struct {
	*stage
	http *http.Client
}

// visitor has not logged in.
func (s *stage) visitor() *someone {
	GinkgoHelper()
	jar, err := cookiejar.New(nil)
	Expect(err).NotTo(HaveOccurred())
	transport := &http.Transport{}
	DeferCleanup(transport.CloseIdleConnections)
	return &someone{s, &http.Client{Jar: jar, Transport: transport, Timeout: 10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// person has logged in.
func (s *stage) person() *someone {
	GinkgoHelper()
	p := s.visitor()
	Expect(p.login(s.ticket())).To(Equal(http.StatusNoContent))
	return p
}

// login logs in with a token or a ticket, and returns the status.
func (p *someone) login(credential string) int {
	GinkgoHelper()
	b, err := json.Marshal(map[string]string{"credential": credential})
	Expect(err).NotTo(HaveOccurred())
	r, _ := p.ask(http.MethodPost, "/login", string(b), "Origin", p.origin()) //nolint:bodyclose // ask has closed it
	return r.StatusCode
}

// ask asks with headers, of which Host is the name that is asked for.
func (p *someone) ask(method, path, body string, headers ...string) (*http.Response, string) {
	GinkgoHelper()
	r, err := http.NewRequest(method, p.origin()+path, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		} else {
			r.Header.Add(headers[i], headers[i+1])
		}
	}
	answer, err := p.http.Do(r)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	Expect(err).NotTo(HaveOccurred())
	return answer, string(text)
}

// page is what a websocket of a session's page got.
type page struct {
	conn *websocket.Conn

	mu      sync.Mutex
	drawn   strings.Builder
	state   map[string]any
	notices []string
	end     *websocket.CloseError
	over    chan struct{}
}

// open opens the websocket of a session.
func (p *someone) open(v webterminal.Session) *page {
	GinkgoHelper()
	g, status, err := p.dial(v.Ref.String(), p.origin())
	Expect(err).NotTo(HaveOccurred(), "%d", status)
	return g
}

// dial is open for what may be refused, with the status of the answer.
func (p *someone) dial(ref, origin string) (*page, int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	header := http.Header{}
	if origin != "" {
		header.Set("Origin", origin)
	}
	conn, answer, err := websocket.Dial(ctx, strings.Replace(p.origin(), "http", "ws", 1)+"/terminal/"+ref, &websocket.DialOptions{HTTPClient: p.http, HTTPHeader: header}) //nolint:bodyclose // the answer to a websocket needs no close
	status := 0
	if answer != nil {
		status = answer.StatusCode
	}
	if err != nil {
		return nil, status, err
	}
	conn.SetReadLimit(-1)
	g := &page{conn: conn, over: make(chan struct{})}
	go g.listen()
	DeferCleanup(func() {
		_ = conn.CloseNow()
		<-g.over
	})
	return g, status, nil
}

func (g *page) listen() {
	defer close(g.over)
	for {
		kind, data, err := g.conn.Read(context.Background())
		g.mu.Lock()
		if err != nil {
			if c, ok := errors.AsType[websocket.CloseError](err); ok {
				g.end = &c
			}
			g.mu.Unlock()
			return
		}
		if kind == websocket.MessageBinary {
			g.drawn.Write(data)
		} else {
			var m map[string]any
			if json.Unmarshal(data, &m) == nil && m["type"] == "notice" {
				g.notices = append(g.notices, m["text"].(string))
			} else {
				g.state = m
			}
		}
		g.mu.Unlock()
	}
}

func (g *page) says(kind, text string) {
	GinkgoHelper()
	b, err := json.Marshal(map[string]string{"type": kind, "text": text})
	Expect(err).NotTo(HaveOccurred())
	Expect(g.conn.Write(context.Background(), websocket.MessageText, b)).To(Succeed())
}

func (g *page) shown() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.drawn.String()
}

// told is a field of the newest state.
func (g *page) told(field string) func() any {
	return func() any {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.state[field]
	}
}

func (g *page) noticed() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return strings.Join(g.notices, "\n")
}

// ended is the code and the reason with which the server closed it.
func (g *page) ended() string {
	select {
	case <-g.over:
	default:
		return ""
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.end == nil {
		return "broken"
	}
	return fmt.Sprintf("%d %s", g.end.Code, g.end.Reason)
}

// alive reports whether a process lives.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(b), ") Z ") && syscall.Kill(pid, 0) == nil
}

// tmuxAs runs tmux as a person at the host would.
func tmuxAs(args ...string) error {
	out, err := exec.Command("tmux", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

func fileOf(path string) string {
	GinkgoHelper()
	b, err := os.ReadFile(path)
	Expect(err).NotTo(HaveOccurred())
	return string(b)
}

package webterminal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

const (
	// stopWithin bounds how long requests are waited for at the end. Browsers hold connections
	// open that they may never use.
	stopWithin = 500 * time.Millisecond
	// lookEvery is the default of LookEvery.
	lookEvery = time.Second
	// maxHeader and maxBody bound a request, in bytes.
	maxHeader = 16 << 10
	maxBody   = 4 << 10
)

// Server serves the web terminal of one host.
type Server struct {
	// Options must have been completed.
	Options
	// Dir keeps the token, the address and ttyd's socket; only we can enter it. See Dir.
	Dir      string
	Sessions Sessions
	Terminal Terminal
	Log      logr.Logger
	// LookEvery is how often the session of each viewer is looked at. 0 is a second.
	LookEvery time.Duration

	listener net.Listener
	base     string
	allowed  map[string]bool
	logins   *logins
	writers  writers
	hub      *hub

	// The viewers, which end before Start does.
	viewers sync.WaitGroup
	seats   chan struct{}
	running context.Context
}

// Open checks what is needed, makes the token and listens, so that what cannot work is
// told before anything else runs.
func (s *Server) Open() error {
	token, err := makeToken(s.Dir)
	if err != nil {
		return err
	}
	if s.Provider == ProviderTTYD {
		if s.hub, err = newHub(s.Options, s.Dir, s.Terminal, s.Log); err != nil {
			return err
		}
	}
	address := net.JoinHostPort(s.Host, strconv.Itoa(s.Port))
	if s.listener, err = net.Listen("tcp", address); err != nil {
		return fmt.Errorf("the web terminal cannot listen on %s: %w: free the port, choose another with --web-terminal-port (webTerminal.port), or leave the web terminal out", address, err)
	}
	port := s.listener.Addr().(*net.TCPAddr).Port
	s.base = "http://" + net.JoinHostPort(s.reached(), strconv.Itoa(port)) + "/"
	s.allowed = s.hosts(port)
	s.logins = newLogins(token, time.Now)
	s.seats = make(chan struct{}, s.MaxClients)
	s.LookEvery = cmp.Or(s.LookEvery, lookEvery)
	if err := os.WriteFile(urlFile(s.Dir), []byte(s.base+"\n"), 0o600); err != nil {
		return errors.Join(fmt.Errorf("the web terminal's address cannot be written: %w", err), s.listener.Close())
	}
	return nil
}

// URL is where it listens. It holds no secret.
func (s *Server) URL() string { return s.base }

// Start serves until ctx ends. Then every browser is disconnected, with the tmux clients
// that it had; no session ends. It is a manager's Runnable, after Open.
func (s *Server) Start(ctx context.Context) error {
	defer func() { _ = os.Remove(urlFile(s.Dir)) }()
	s.Log.Info("web terminal", "url", s.base, "provider", s.Provider, "writable", s.Writable, "tokenFile", tokenFile(s.Dir))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.running = ctx
	web := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(s.listener) }()
	var child sync.WaitGroup
	if s.hub != nil {
		child.Go(func() { s.hub.run(ctx) })
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
		err = fmt.Errorf("serving the web terminal on %s: %w", s.base, err)
	}
	cancel()
	ending, stop := context.WithTimeout(context.Background(), stopWithin)
	defer stop()
	if web.Shutdown(ending) != nil {
		_ = web.Close()
	}
	s.viewers.Wait()
	child.Wait()
	return err
}

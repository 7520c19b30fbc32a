package webterminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/sync/errgroup"

	"github.com/theloop-dev/the-loop/internal/text"
	"github.com/theloop-dev/the-loop/internal/tmux"
)

const (
	// pingEvery is how often a browser must show that it is there, pingWithin how fast.
	pingEvery  = 30 * time.Second
	pingWithin = 15 * time.Second
	// closeWithin bounds how long a browser may take to answer its dismissal.
	closeWithin = time.Second
	// writeWithin bounds how long a browser may take to take what is drawn.
	writeWithin = 20 * time.Second
	// maxMessage bounds what a browser sends at a time, in bytes: a paste of 64 KiB, every
	// byte of it escaped.
	maxMessage = 512 << 10
	// maxPaste is the longest text that is pasted, in bytes.
	maxPaste = 64 << 10
	// maxKeys is how much of a person's keys is typed at a time, in bytes.
	maxKeys = 4096
)

// What a browser is told at the end, as close codes of the websocket.
const (
	closeEnded  websocket.StatusCode = 4000 // and it is not to come back by itself
	closeAnew   websocket.StatusCode = 4001 // the session is another one now: come back
	closeIdle   websocket.StatusCode = 4002
	closeLogin  websocket.StatusCode = 4003
	closeServer websocket.StatusCode = 4004 // the agent stops
)

// ending is why a viewer ends.
type ending struct {
	code websocket.StatusCode
	why  string
}

func (e *ending) Error() string { return e.why }

// viewer is one browser that is shown one session.
type viewer struct {
	server  *Server
	conn    *websocket.Conn
	login   string
	session Session
	view    *tmux.View
	look    tmux.Look
	person  atomic.Int64 // when the person was last noticed, in nanoseconds
	drawn   atomic.Bool  // the terminal has shown something: the client of view is attached

	telling sync.Mutex // one state at a time
	mu      sync.Mutex // what was last told
	told    []byte
}

// request is what a browser sends.
type request struct {
	// Type is keys, paste, take, takeover, release or here.
	Type string `json:"type"`
	Text string `json:"text"`
}

// state is what a browser is told, whenever it changes.
type state struct {
	Type    string `json:"type"` // state
	Columns int    `json:"columns"`
	Rows    int    `json:"rows"`
	// Live: the harness runs. Ended says why it does not, or why it is not to.
	Live  bool   `json:"live"`
	Ended string `json:"ended,omitempty"`
	// Writable: this host lets people in browsers type.
	Writable bool `json:"writable"`
	// Writer is who has the keys: you, other or nobody.
	Writer string `json:"writer"`
	// InFront: what is typed would reach what is seen.
	InFront bool `json:"inFront"`
	// Framed: the program is known to take a paste as one.
	Framed bool `json:"framed"`
}

// terminal is the websocket of one session.
func (s *Server) terminal(w http.ResponseWriter, r *http.Request) {
	if !s.ours(r) {
		s.Log.Info("web terminal: a websocket of another page was refused", "origin", clip(r.Header.Get("Origin")), "from", r.RemoteAddr)
		http.Error(w, "Only pages of this web terminal may do that.", http.StatusForbidden)
		return
	}
	found, err := s.find(r, terminalPath)
	if err != nil {
		s.problem(w, err)
		return
	}
	select {
	case s.seats <- struct{}{}:
		defer func() { <-s.seats }()
	default:
		http.Error(w, fmt.Sprintf("%d browsers are served already, which is the limit (--web-terminal-max-clients): close one.", s.MaxClients), http.StatusServiceUnavailable)
		return
	}
	s.viewers.Add(1)
	defer s.viewers.Done()
	look, err := s.Terminal.Look(r.Context(), found.Target)
	if err != nil {
		s.problem(w, &ProblemError{http.StatusServiceUnavailable, "The terminal of " + found.Ref.String() + " cannot be looked at", err.Error()})
		return
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{OriginPatterns: []string{r.Host}})
	if err != nil {
		return // it has been answered
	}
	conn.SetReadLimit(maxMessage)
	v := &viewer{server: s, conn: conn, login: s.cookie(r), session: found, look: look}
	log := s.Log.WithValues("session", found.Ref.String(), "from", r.RemoteAddr)
	log.Info("web terminal: somebody watches")
	why := v.run(s.running)
	log.Info("web terminal: somebody watches no more", "why", why)
}

// run serves the browser until it, the session or the server ends, and says why.
func (v *viewer) run(ctx context.Context) string {
	defer func() { _ = v.conn.CloseNow() }()
	var err error
	if v.view, err = v.server.Terminal.View(v.session.Target, v.look.Size); err != nil {
		_ = v.conn.Close(closeEnded, "the terminal cannot be shown")
		return err.Error()
	}
	v.noticed()
	if err := v.tell(ctx); err != nil {
		v.view.Close()
		return err.Error()
	}
	group, inner := errgroup.WithContext(ctx)
	group.Go(func() error { return v.draw(inner) })
	group.Go(func() error { return v.listen(inner) })
	group.Go(func() error { return v.watch(inner) })
	group.Go(func() error { return v.ping(inner) })
	// What waits for the terminal or the browser waits no longer.
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		<-inner.Done()
		v.view.Close()
		end := &ending{closeServer, "the agent stops"}
		if ctx.Err() == nil {
			end, _ = errors.AsType[*ending](context.Cause(inner))
		}
		if end == nil {
			_ = v.conn.CloseNow()
			return
		}
		// The browser's answer is not waited for long.
		impatient := time.AfterFunc(closeWithin, func() { _ = v.conn.CloseNow() })
		defer impatient.Stop()
		_ = v.conn.Close(end.code, end.why)
	}()
	err = group.Wait()
	<-ended
	v.server.writers.release(v)
	if ctx.Err() != nil {
		return "the agent stops"
	}
	return err.Error()
}

// draw sends what the terminal shows.
func (v *viewer) draw(ctx context.Context) error {
	buf := make([]byte, 32<<10)
	for {
		n, err := v.view.Read(buf)
		if n > 0 {
			v.drawn.Store(true)
			if err := v.send(ctx, websocket.MessageBinary, buf[:n]); err != nil {
				return err
			}
		}
		if err != nil {
			return &ending{closeAnew, "the terminal was closed"}
		}
	}
}

func (v *viewer) send(ctx context.Context, kind websocket.MessageType, data []byte) error {
	// A context that ends breaks the connection; it is to end with a reason.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeWithin)
	defer cancel()
	return v.conn.Write(ctx, kind, data)
}

// ping drops a browser that is gone without a word.
func (v *viewer) ping(ctx context.Context) error {
	tick := time.NewTicker(pingEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		answer, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingWithin)
		err := v.conn.Ping(answer)
		cancel()
		if err != nil {
			return fmt.Errorf("the browser does not answer: %w", err)
		}
	}
}

// watch looks at the session again and again, and tells what changed.
func (v *viewer) watch(ctx context.Context) error {
	tick := time.NewTicker(v.server.LookEvery)
	defer tick.Stop()
	for {
		if err := v.tell(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if err := v.lookAgain(ctx); err != nil {
			return err
		}
	}
}

// lookAgain refreshes what is known, and ends what must end.
func (v *viewer) lookAgain(ctx context.Context) error {
	s := v.server
	if !s.logins.valid(v.login) {
		return &ending{closeLogin, "you are logged out"}
	}
	if time.Since(time.Unix(0, v.person.Load())) > s.Idle {
		return &ending{closeIdle, "nobody was seen here for " + s.Idle.String()}
	}
	found, err := s.Sessions.Find(ctx, v.session.Ref)
	if p, ok := errors.AsType[*ProblemError](err); ok {
		return &ending{closeEnded, firstBytes(p.What, 120)}
	}
	if err != nil {
		// Nothing is known now: what is shown goes on.
		s.Log.V(1).Info("web terminal: the session is not known", "session", v.session.Ref.String(), "error", err.Error())
		return nil
	}
	if found.UID != v.session.UID || found.Target != v.session.Target {
		return &ending{closeAnew, "the session was started anew"}
	}
	attached := v.drawn.Load()
	look, err := s.Terminal.Look(ctx, found.Target)
	switch {
	case errors.Is(err, tmux.ErrAbsent), errors.Is(err, tmux.ErrRefused):
		return &ending{closeAnew, "the terminal was closed"}
	case err != nil:
		s.Log.V(1).Info("web terminal: the terminal is not known", "session", v.session.Ref.String(), "error", err.Error())
		return nil
	case attached && !slices.Contains(look.Clients, v.view.PID()):
		// Somebody at the terminal server led our client elsewhere.
		return &ending{closeAnew, "the view left the session"}
	}
	v.mu.Lock()
	resized := look.Size != v.look.Size
	v.look, v.session.Ended = look, found.Ended
	v.mu.Unlock()
	if !v.mayWrite() {
		s.writers.release(v)
	}
	if resized {
		// The page first: what is drawn for a size that it has not scrolls out of it.
		if err := v.tell(ctx); err != nil {
			return err
		}
		_ = v.view.Resize(look.Size)
	}
	return nil
}

// mayWrite reports whether anybody may type into the session from a browser.
func (v *viewer) mayWrite() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.server.Writable && v.session.Ended == "" && v.look.Live
}

// tell sends the state when it differs from what was told.
func (v *viewer) tell(ctx context.Context) error {
	v.telling.Lock() // an older state must not come behind a newer one
	defer v.telling.Unlock()
	v.mu.Lock()
	now := state{Type: "state", Columns: v.look.Size.Columns, Rows: v.look.Size.Rows, Live: v.look.Live, Ended: v.session.Ended,
		Writable: v.server.Writable, Writer: v.server.writers.of(v), InFront: v.look.InFront, Framed: v.look.Framed}
	if !now.Live && now.Ended == "" {
		now.Ended = "its harness has ended"
	}
	b, err := json.Marshal(now)
	same := string(b) == string(v.told)
	v.told = b
	v.mu.Unlock()
	if err != nil || same {
		return err
	}
	return v.send(ctx, websocket.MessageText, b)
}

// notice shows the person a line.
func (v *viewer) notice(ctx context.Context, format string, args ...any) error {
	b, err := json.Marshal(map[string]string{"type": "notice", "text": fmt.Sprintf(format, args...)})
	if err != nil {
		return err
	}
	return v.send(ctx, websocket.MessageText, b)
}

// noticed: the person is there.
func (v *viewer) noticed() { v.person.Store(time.Now().UnixNano()) }

// listen does what the browser asks for.
func (v *viewer) listen(ctx context.Context) error {
	for {
		kind, data, err := v.conn.Read(context.WithoutCancel(ctx)) // its close ends it
		if err != nil {
			if websocket.CloseStatus(err) != -1 {
				return errors.New("the browser left")
			}
			return err
		}
		var r request
		if kind != websocket.MessageText || json.Unmarshal(data, &r) != nil {
			return &ending{websocket.StatusPolicyViolation, "that was no message of the page"}
		}
		v.noticed()
		if err := v.do(ctx, r); err != nil {
			return err
		}
	}
}

func (v *viewer) do(ctx context.Context, r request) error {
	switch r.Type {
	case "here":
		return nil
	case "keys", "paste":
		return v.typed(ctx, r)
	case "take", "takeover":
		if err := v.take(ctx, r.Type == "takeover"); err != nil {
			return err
		}
	case "release":
		v.server.writers.release(v)
	default:
		return &ending{websocket.StatusPolicyViolation, "that was no message of the page"}
	}
	return v.tell(ctx)
}

// take takes the keys. Somebody else's are taken over only when that is said.
func (v *viewer) take(ctx context.Context, over bool) error {
	switch {
	case !v.server.Writable:
		return v.notice(ctx, "This web terminal is read-only: its operator allows typing with webTerminal.writable (--web-terminal-writable).")
	case !v.mayWrite():
		return v.notice(ctx, "The session has ended: its terminal is a record, and read-only.")
	}
	ok, lost := v.server.writers.take(v, over)
	if !ok {
		return v.notice(ctx, "Somebody else types here now. One at a time: wait, or take the keys over.")
	}
	v.server.Log.Info("web terminal: somebody took the keys", "session", v.session.Ref.String(), "over", lost != nil)
	if lost != nil {
		// Best effort: that one is told again soon.
		_ = lost.notice(ctx, "Somebody else took the keys over: you watch now.")
		_ = lost.tell(ctx)
	}
	return nil
}

// typed types what the person typed or pasted, if he has the keys.
func (v *viewer) typed(ctx context.Context, r request) error {
	if v.server.writers.of(v) != "you" || !v.mayWrite() {
		return v.notice(ctx, "What you typed went nowhere: you only watch.")
	}
	if len(r.Text) > maxPaste {
		return v.notice(ctx, "That is too long to paste: %d bytes, and at most %d are taken. Nothing was typed.", len(r.Text), maxPaste)
	}
	t := v.session.Target
	if r.Type == "paste" {
		// What ends the frame, or is a key, is not a text (P01).
		clean, report := text.Sanitize(r.Text)
		if clean == "" {
			return v.notice(ctx, "There is nothing in it to paste.")
		}
		if report.Total(text.Replaced)+report.Total(text.Removed) > 0 {
			if err := v.notice(ctx, "Control characters were left out of what you pasted."); err != nil {
				return err
			}
		}
		result, err := v.server.Terminal.PasteKeys(ctx, t, clean)
		return v.outcome(ctx, result, err)
	}
	for keys := []byte(r.Text); len(keys) > 0; keys = keys[min(len(keys), maxKeys):] {
		result, err := v.server.Terminal.Keys(ctx, t, keys[:min(len(keys), maxKeys)])
		if err != nil || result.Outcome != tmux.Done {
			return v.outcome(ctx, result, err)
		}
	}
	return nil
}

// outcome tells the person when what he typed did not arrive, or may not have.
func (v *viewer) outcome(ctx context.Context, r tmux.Result, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		v.server.Log.Info("web terminal: keys may not have arrived", "session", v.session.Ref.String(), "error", err.Error())
		return v.notice(ctx, "The terminal server did not answer: what you typed may not have arrived.")
	case r.Outcome == tmux.Done:
		return nil
	}
	return v.notice(ctx, "What you typed did not arrive: the session's own pane is not the one that is shown, has ended, or takes no input.")
}

// firstBytes cuts a text to what a close frame holds.
func firstBytes(s string, most int) string {
	for i := range s {
		if i > most-4 {
			return s[:i] + "…"
		}
	}
	return s
}

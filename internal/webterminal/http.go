package webterminal

import (
	"embed"
	"encoding/json"
	"errors"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

//go:embed assets
var files embed.FS

// pages are our own HTML. What they show of a session is escaped.
var pages = template.Must(template.ParseFS(files, "assets/*.html"))

// cookieName is the login's cookie. Cookies know no ports, so it has the port in it.
func (s *Server) cookieName() string {
	u, err := url.Parse(s.base)
	if err != nil {
		return "the-loop-web"
	}
	return "the-loop-web-" + u.Port()
}

// contentPolicy lets a page load what is ours, run no script that stands in it, talk to us
// alone, and be framed by nobody. xterm.js writes its styles into the page.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func (s *Server) handler() http.Handler {
	assets, err := fs.Sub(files, "assets")
	if err != nil { // it is embedded
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /assets/", http.StripPrefix("/assets/", noListing(http.FileServerFS(assets))))
	mux.HandleFunc("GET /login", func(w http.ResponseWriter, _ *http.Request) { s.page(w, http.StatusOK, "login.html", nil) })
	mux.Handle("POST /login", s.sameOrigin(http.HandlerFunc(s.login)))
	mux.Handle("POST /logout", s.sameOrigin(http.HandlerFunc(s.logout)))
	if s.hub != nil {
		mux.Handle("GET /{$}", s.loggedIn(http.RedirectHandler(hubPath, http.StatusSeeOther)))
		mux.Handle(hubPath, s.loggedIn(http.HandlerFunc(s.serveHub)))
	} else {
		mux.Handle("GET /{$}", s.loggedIn(http.HandlerFunc(s.list)))
		mux.Handle("GET "+sessionsPath, s.loggedIn(http.HandlerFunc(s.session)))
		mux.Handle("GET "+terminalPath, s.loggedIn(http.HandlerFunc(s.terminal)))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.problem(w, notFound("There is no page "+r.URL.Path, "The list of sessions is at /."))
	})
	return s.guarded(mux)
}

// guarded refuses what a browser was led here with by another name (DNS rebinding), and
// sets the headers of every answer (U02).
func (s *Server) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		if !s.allowed[strings.ToLower(r.Host)] {
			s.Log.Info("web terminal: a request under a name that is not ours was refused", "host", clip(r.Host), "from", r.RemoteAddr)
			http.Error(w, "This web terminal is not served under that name. Use the address that the agent's log says, or add the name to webTerminal.allowedHosts (--web-terminal-allowed-hosts).", http.StatusMisdirectedRequest)
			return
		}
		if r.Body != nil {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		}
		next.ServeHTTP(w, r)
	})
}

// sameOrigin lets through what a page of ours sent, and nothing else: no other page of the
// person's browser, and no program without an Origin (U02).
func (s *Server) sameOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.ours(r) {
			s.Log.Info("web terminal: a request of another page was refused", "origin", clip(r.Header.Get("Origin")), "from", r.RemoteAddr)
			http.Error(w, "Only pages of this web terminal may do that.", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ours reports whether a request comes from a page of this very server.
func (s *Server) ours(r *http.Request) bool {
	o, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && len(r.Header.Values("Origin")) == 1 && (o.Scheme == "http" || o.Scheme == "https") &&
		o.User == nil && o.Path == "" && o.RawQuery == "" && strings.EqualFold(o.Host, r.Host) && s.allowed[strings.ToLower(o.Host)]
}

// cookie is the login of a request, "" when it has none that lasts.
func (s *Server) cookie(r *http.Request) string {
	c, err := r.Cookie(s.cookieName())
	if err != nil || !s.logins.valid(c.Value) {
		return ""
	}
	return c.Value
}

// loggedIn leads who is not in to the login, and back afterwards.
func (s *Server) loggedIn(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.cookie(r) != "":
			next.ServeHTTP(w, r)
		case r.Method == http.MethodGet && r.Header.Get("Upgrade") == "":
			http.Redirect(w, r, "/login?next="+url.QueryEscape(r.URL.Path), http.StatusSeeOther)
		default:
			http.Error(w, "You are not logged in, or no more: open / and log in.", http.StatusUnauthorized)
		}
	})
}

// login takes a token or a ticket in a body, where no log and no history sees it.
func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	var in struct{ Credential string }
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, "Send {\"credential\": TOKEN OR TICKET}.", http.StatusBadRequest)
		return
	}
	cookie, ok := s.logins.admit(strings.TrimSpace(in.Credential))
	if !ok {
		s.Log.Info("web terminal: a login was refused", "from", r.RemoteAddr)
		http.Error(w, "That lets nobody in. A ticket is good once, for two minutes: make a new one with `attach --web`, or paste the token.", http.StatusUnauthorized)
		return
	}
	s.Log.Info("web terminal: somebody logged in", "from", r.RemoteAddr)
	http.SetCookie(w, s.setCookie(r, cookie, int(loginLife.Seconds())))
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(s.cookieName()); err == nil {
		s.logins.end(c.Value)
	}
	http.SetCookie(w, s.setCookie(r, "", -1))
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) setCookie(r *http.Request, value string, seconds int) *http.Cookie {
	return &http.Cookie{
		Name: s.cookieName(), Value: value, Path: "/", MaxAge: seconds, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		// Behind a proxy with TLS the browser says so by the page's origin.
		Secure: strings.HasPrefix(r.Header.Get("Origin"), "https://"),
	}
}

// list shows what there is.
func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	all, err := s.Sessions.List(r.Context())
	if err != nil {
		s.problem(w, err)
		return
	}
	s.page(w, http.StatusOK, "list.html", all)
}

// session is the page of one session.
func (s *Server) session(w http.ResponseWriter, r *http.Request) {
	found, err := s.find(r, sessionsPath)
	if err != nil {
		s.problem(w, err)
		return
	}
	s.page(w, http.StatusOK, "session.html", map[string]any{
		"Ref": found.Ref.String(), "Socket": terminalPath + found.Ref.String(), "Ended": found.Ended, "Writable": s.Writable && found.Ended == "",
	})
}

// find finds the session of a path below prefix.
func (s *Server) find(r *http.Request, prefix string) (Session, error) {
	// As it was sent: what is escaped is no name.
	ref, err := ParseRef(strings.TrimPrefix(r.URL.EscapedPath(), prefix))
	if err != nil {
		return Session{}, &ProblemError{http.StatusBadRequest, "That is no address of a session", err.Error()}
	}
	return s.Sessions.Find(r.Context(), ref)
}

func (s *Server) page(w http.ResponseWriter, status int, name string, data any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if err := pages.ExecuteTemplate(w, name, data); err != nil {
		s.Log.V(1).Info("web terminal: a page was not sent whole", "page", name, "error", err.Error())
	}
}

// problem tells a person why something is not shown.
func (s *Server) problem(w http.ResponseWriter, err error) {
	p, ok := errors.AsType[*ProblemError](err)
	if !ok {
		s.Log.Error(err, "web terminal")
		p = &ProblemError{http.StatusServiceUnavailable, "The host does not answer", "Nothing is known of the session now: " + err.Error()}
	}
	s.page(w, p.Status, "problem.html", p)
}

// noListing serves files and lists no directory.
func noListing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/") || !slices.Contains([]string{".js", ".css"}, r.URL.Path[max(0, strings.LastIndex(r.URL.Path, ".")):]) {
			http.NotFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// clip bounds what a stranger's request puts into the log.
func clip(s string) string { return s[:min(len(s), 200)] }

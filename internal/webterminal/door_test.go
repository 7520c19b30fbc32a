//go:build linux

package webterminal_test

import (
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/webterminal"
)

var _ = Describe("who wants in", func() {
	port := func(s *stage) string { return s.origin()[strings.LastIndex(s.origin(), ":"):] }

	It("U02: is answered under a name of ours alone", func() {
		s := newStage(func(o *webterminal.Options) { o.AllowedHosts = []string{"term.example.org"} })
		p := s.visitor()
		for host, want := range map[string]int{
			"127.0.0.1" + port(s):             http.StatusOK,
			"localhost" + port(s):             http.StatusOK,
			"LOCALHOST" + port(s):             http.StatusOK,
			"[::1]" + port(s):                 http.StatusOK,
			"term.example.org":                http.StatusOK,
			"evil.example" + port(s):          http.StatusMisdirectedRequest,
			"127.0.0.1.evil.example":          http.StatusMisdirectedRequest,
			"localhost":                       http.StatusMisdirectedRequest,
			"term.example.org.evil" + port(s): http.StatusMisdirectedRequest,
		} {
			r, _ := p.ask(http.MethodGet, "/login", "", "Host", host)
			Expect(r.StatusCode).To(Equal(want), host)
		}
	})

	It("U02: needs a login on loopback too, for every page and every websocket", func() {
		s := newStage()
		v, _ := s.reader("a")
		p := s.visitor()
		for _, path := range []string{"/", v.Ref.Path()} {
			r, body := p.ask(http.MethodGet, path, "")
			Expect(r.StatusCode).To(Equal(http.StatusSeeOther))
			Expect(r.Header.Get("Location")).To(HavePrefix("/login?next=%2F"))
			Expect(body).NotTo(ContainSubstring("READY"))
		}
		_, status, err := p.dial(v.Ref.String(), p.origin())
		Expect(err).To(HaveOccurred())
		Expect(status).To(Equal(http.StatusUnauthorized))
	})

	It("U04: lets nobody in for a header that says who he is", func() {
		s := newStage()
		p := s.visitor()
		for _, h := range []string{"X-User", "X-Forwarded-User", "X-Remote-User", "X-Webauth-User", "Remote-User", "Authorization", "X-Forwarded-For", "Forwarded"} {
			r, _ := p.ask(http.MethodGet, "/", "", h, "root")
			Expect(r.StatusCode).To(Equal(http.StatusSeeOther), h)
		}
		// Nor is the name taken from one.
		r, _ := p.ask(http.MethodGet, "/login", "", "Host", "evil.example", "X-Forwarded-Host", "127.0.0.1"+port(s))
		Expect(r.StatusCode).To(Equal(http.StatusMisdirectedRequest))
	})

	It("U02: opens no websocket from another page, or from none, with the login's cookie", func() {
		s := newStage(writable)
		v, _ := s.reader("a")
		p := s.person()
		for _, origin := range []string{"https://evil.example", "http://127.0.0.1:1", "http://localhost" + port(s), "null", "", "file://", "http://127.0.0.1" + port(s) + "/x", "http://u@127.0.0.1" + port(s)} {
			_, status, err := p.dial(v.Ref.String(), origin)
			Expect(err).To(HaveOccurred(), origin)
			Expect(status).To(Equal(http.StatusForbidden), origin)
		}
		Expect(s.clients(v)).To(BeEmpty())
		p.open(v)
	})

	It("U02: logs nobody in or out from another page", func() {
		s := newStage()
		p := s.person()
		for _, path := range []string{"/login", "/logout"} {
			for _, origin := range []string{"https://evil.example", ""} {
				r, _ := p.ask(http.MethodPost, path, `{"credential":"`+s.token()+`"}`, "Origin", origin)
				Expect(r.StatusCode).To(Equal(http.StatusForbidden))
			}
		}
		r, _ := p.ask(http.MethodGet, "/", "")
		Expect(r.StatusCode).To(Equal(http.StatusOK))
	})

	It("U05: is let in by the token, and by a ticket once and in time", func() {
		s := newStage()
		Expect(s.visitor().login(s.token())).To(Equal(http.StatusNoContent))
		ticket := s.ticket()
		Expect(s.visitor().login(ticket)).To(Equal(http.StatusNoContent))
		Expect(s.visitor().login(ticket)).To(Equal(http.StatusUnauthorized))
		Expect(s.visitor().login(webterminal.NewTicket(s.token(), time.Now().Add(-2*time.Minute)))).To(Equal(http.StatusUnauthorized))
		Expect(s.visitor().login(webterminal.NewTicket("another", time.Now()))).To(Equal(http.StatusUnauthorized))
		for _, wrong := range []string{"", "t1.", "t1.AAAA", s.token()[1:], s.token() + "A", strings.ToLower(s.token())} {
			Expect(s.visitor().login(wrong)).To(Equal(http.StatusUnauthorized), wrong)
		}
		// A ticket whose time was changed is none.
		forged := []byte(webterminal.NewTicket(s.token(), time.Now().Add(-time.Hour)))
		forged[9] ^= 1
		Expect(s.visitor().login(string(forged))).To(Equal(http.StatusUnauthorized))
		r, _ := s.visitor().ask(http.MethodPost, "/login", `{"credential":"`+strings.Repeat("x", 5000)+`"}`, "Origin", s.origin())
		Expect(r.StatusCode).To(Equal(http.StatusBadRequest))
	})

	It("U05: leaves no secret in the log, in an address, or with scripts", func() {
		s := newStage()
		p := s.visitor()
		ticket := s.ticket()
		link := webterminal.LoginURL(s.web.URL(), "/sessions/standingsession/default/a", ticket)
		Expect(link).To(Equal(s.origin() + "/login?next=%2Fsessions%2Fstandingsession%2Fdefault%2Fa#" + ticket))
		Expect(ticket).NotTo(ContainSubstring(s.token()))
		Expect(p.login(ticket)).To(Equal(http.StatusNoContent))
		Expect(p.login("wrong-" + s.token())).To(Equal(http.StatusUnauthorized))
		r, _ := p.ask(http.MethodPost, "/login", `{"credential":"`+s.token()+`"}`, "Origin", p.origin())
		Expect(r.Header.Get("Set-Cookie")).To(And(ContainSubstring("HttpOnly"), ContainSubstring("SameSite=Strict"), Not(ContainSubstring(s.token()))))
		cookie := r.Cookies()[0].Value
		// A token in a query lets nobody in.
		r, _ = s.visitor().ask(http.MethodGet, "/?token="+s.token()+"&credential="+s.token(), "")
		Expect(r.StatusCode).To(Equal(http.StatusSeeOther))
		Expect(r.Header.Get("Location")).NotTo(ContainSubstring(s.token()))
		s.stop()
		Expect(s.log.String()).To(ContainSubstring("somebody logged in"))
		for _, secret := range []string{s.token(), ticket, cookie} {
			Expect(s.log.String()).NotTo(ContainSubstring(secret))
		}
	})

	It("gets pages that run no script of their text, are framed by nobody, and are kept nowhere", func() {
		s := newStage()
		v := s.standing("a", "sleep 1000")
		s.change(v.Ref, func(v *webterminal.Session) { v.Ended = `<script>alert(1)</script>` })
		p := s.person()
		for _, path := range []string{"/login", "/", v.Ref.Path(), "/nowhere", "/assets/session.js"} {
			r, body := p.ask(http.MethodGet, path, "")
			policy := r.Header.Get("Content-Security-Policy")
			Expect(policy).To(And(ContainSubstring("script-src 'self';"), ContainSubstring("default-src 'none'"), ContainSubstring("frame-ancestors 'none'")), path)
			Expect(r.Header.Get("X-Frame-Options")).To(Equal("DENY"))
			Expect(r.Header.Get("Cache-Control")).To(Equal("no-store"))
			Expect(r.Header.Get("Referrer-Policy")).To(Equal("no-referrer"))
			Expect(r.Header.Get("X-Content-Type-Options")).To(Equal("nosniff"))
			Expect(body).NotTo(ContainSubstring("<script>"))
		}
		r, _ := p.ask(http.MethodGet, "/assets/", "")
		Expect(r.StatusCode).To(Equal(http.StatusNotFound))
		r, _ = p.ask(http.MethodGet, "/assets/session.html", "")
		Expect(r.StatusCode).To(Equal(http.StatusNotFound))
	})

	It("is out after the logout, on every page at once", func() {
		s := newStage()
		v, _ := s.reader("a")
		p := s.person()
		g := p.open(v)
		Eventually(g.shown).Should(ContainSubstring("READY-a."))
		r, _ := p.ask(http.MethodPost, "/logout", "", "Origin", p.origin())
		Expect(r.StatusCode).To(Equal(http.StatusNoContent))
		Eventually(g.ended).Should(Equal("4003 you are logged out"))
		r, _ = p.ask(http.MethodGet, "/", "")
		Expect(r.StatusCode).To(Equal(http.StatusSeeOther))
	})

	It("says what there is, and of what there is not why", func() {
		s := newStage()
		v, _ := s.reader("x-1")
		p := s.person()
		_, body := p.ask(http.MethodGet, "/", "")
		Expect(body).To(ContainSubstring(`<a href="/sessions/standingsession/default/x-1">standingsession/default/x-1</a>`))
		r, body := p.ask(http.MethodGet, v.Ref.Path()+"2", "")
		Expect(r.StatusCode).To(Equal(http.StatusNotFound))
		Expect(body).To(And(ContainSubstring("There is no session standingsession/default/x-12"), ContainSubstring("Look at &lt;the&gt; list.")))
		_, status, err := p.dial("standingsession/default/x-12", p.origin())
		Expect(err).To(HaveOccurred())
		Expect(status).To(Equal(http.StatusNotFound))
		r, body = p.ask(http.MethodGet, "/sessions/standingsession/default/x%2D1", "")
		Expect(r.StatusCode).To(Equal(http.StatusBadRequest))
		Expect(body).To(ContainSubstring("KIND/NAMESPACE/NAME"))
	})
})

//go:build linux

package webterminal_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/theloop-dev/the-loop/internal/webterminal"
	"github.com/theloop-dev/the-loop/test/browser"
)

// screen is what the page's terminal shows.
func screen(t *browser.Tab) func() (string, error) {
	return func() (string, error) {
		return browser.Eval[string](t, `(() => {
			const b = window.theLoopTerminal?.buffer.active;
			if (!b) return "";
			let out = "";
			for (let i = 0; i < b.length; i++) out += b.getLine(i).translateToString(true) + "\n";
			return out;
		})()`)
	}
}

// said is the text of an element of the page.
func said(t *browser.Tab, id string) func() (string, error) {
	return func() (string, error) {
		return browser.Eval[string](t, fmt.Sprintf(`(document.getElementById(%q)?.innerText || "").trim()`, id))
	}
}

var _ = Describe("the page in Chromium", func() {
	var chromium *browser.Browser
	var s *stage
	var one, twelve webterminal.Session
	var got, gotTwelve func() string

	enter := func(v webterminal.Session) *browser.Tab {
		GinkgoHelper()
		t := chromium.Tab()
		t.Go(webterminal.LoginURL(s.web.URL(), v.Ref.Path(), s.ticket()))
		Eventually(screen(t)).Should(ContainSubstring("READY-" + v.Ref.Name + "."))
		return t
	}
	taken := func(t *browser.Tab) {
		GinkgoHelper()
		t.Click("#take")
		Eventually(said(t, "state")).Should(Equal("you type"))
	}

	BeforeEach(func() {
		chromium = browser.Start()
		s = newStage(writable)
		one, got = s.reader("x-1")
		twelve, gotTwelve = s.reader("x-12")
	})

	It("logs in by a link that is worth nothing afterwards, and shows exactly its session", func() {
		t := chromium.Tab()
		link := webterminal.LoginURL(s.web.URL(), one.Ref.Path(), s.ticket())
		t.Go(link)
		Eventually(screen(t)).Should(ContainSubstring("READY-x-1."))
		Expect(screen(t)()).NotTo(ContainSubstring("READY-x-12."))
		Expect(t.URL()).To(Equal(s.origin() + one.Ref.Path()))
		Expect(said(t, "state")()).To(Equal("read-only"))
		// Its size is that of the session, status line included.
		Expect(browser.Eval[string](t, `theLoopTerminal.cols + "x" + theLoopTerminal.rows`)).To(Equal("80x25"))
		Expect(browser.Eval[string](t, `document.cookie`)).To(BeEmpty())

		other := browser.Start().Tab()
		other.Go(link)
		Eventually(said(other, "said")).Should(ContainSubstring("That lets nobody in"))
		other.Go(s.origin() + one.Ref.Path())
		Eventually(other.URL).Should(HavePrefix(s.origin() + "/login"))
	})

	It("refuses a wrong token, and takes the right one", func() {
		t := chromium.Tab()
		t.Go(s.origin() + "/")
		t.Click("#credential")
		t.Type("wrong")
		t.Click("#login button")
		Eventually(said(t, "said")).Should(ContainSubstring("That lets nobody in"))
		t.Click("#credential")
		t.Type(s.token())
		t.Click("#login button")
		Eventually(t.Text).Should(ContainSubstring("Sessions of this host"))
		t.Click(`a[href$="/x-12"]`)
		Eventually(screen(t)).Should(ContainSubstring("READY-x-12."))
	})

	It("types nothing while it is read-only, and each key when a person takes the keys", func() {
		t := enter(one)
		t.Click("#terminal")
		t.Type("nothing of this")
		Expect(got()).To(BeEmpty())
		taken(t)
		t.Type("echo hé")
		t.Type("\r")
		Eventually(got).Should(Equal("echo hé\r"))
		Expect(browser.Eval[bool](t, `(theLoopTerminal.input("\x02s\x03"), true)`)).To(BeTrue())
		Eventually(got).Should(Equal("echo hé\r\x02s\x03"))
		Expect(gotTwelve()).To(BeEmpty())
		Eventually(screen(t)).Should(ContainSubstring("READY-x-1."))
		t.Click("#release")
		Eventually(said(t, "state")).Should(Equal("read-only"))
	})

	It("refuses a second writer visibly, who can take over in so many words", func() {
		first, second := enter(one), enter(one)
		taken(first)
		Eventually(said(second, "state")).Should(Equal("read-only: somebody else types"))
		second.Click("#terminal")
		second.Type("refused")
		Expect(got()).To(BeEmpty())
		second.Click("#takeover")
		Eventually(said(second, "state")).Should(Equal("you type"))
		Eventually(said(first, "state")).Should(Equal("read-only: somebody else types"))
		Eventually(said(first, "notice")).Should(ContainSubstring("took the keys over"))
		second.Type("mine")
		Eventually(got).Should(Equal("mine"))
	})

	It("N11: never mixes up two sessions whose names begin alike", func() {
		a, b := enter(one), enter(twelve)
		taken(b)
		b.Type("for twelve")
		Eventually(gotTwelve).Should(Equal("for twelve"))
		Expect(got()).To(BeEmpty())
		Expect(screen(a)()).NotTo(ContainSubstring("x-12"))
		a.Go(s.origin() + "/sessions/standingsession/default/x-123")
		Eventually(a.Text).Should(ContainSubstring("There is no session standingsession/default/x-123"))
	})

	It("U02: gives another page of the same browser nothing", func() {
		t := enter(one)
		taken(t)
		evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, "<html><body>evil</body></html>")
		}))
		defer evil.Close()
		e := chromium.Tab()
		// The same site to the browser: its cookies of 127.0.0.1 are sent.
		e.Go(evil.URL)
		opened := fmt.Sprintf(`new Promise((done) => {
			const ws = new WebSocket(%q);
			ws.onopen = () => done("open");
			ws.onclose = () => done("closed");
		})`, strings.Replace(s.origin(), "http", "ws", 1)+"/terminal/"+one.Ref.String())
		Expect(browser.Eval[string](e, opened)).To(Equal("closed"))
		Expect(browser.Eval[string](e, fmt.Sprintf(`fetch(%q, {credentials: "include"}).then((r) => r.text(), () => "refused")`, s.web.URL()))).To(Equal("refused"))
		framed := fmt.Sprintf(`new Promise((done) => {
			const f = document.createElement("iframe");
			f.onload = () => { try { done(f.contentDocument ? "own" : "foreign"); } catch { done("foreign"); } };
			f.src = %q;
			document.body.append(f);
			setTimeout(() => done("nothing"), 5000);
		}).then(() => window.frames.length ? String(window.frames[0].length) : "")`, s.origin()+one.Ref.Path())
		Expect(browser.Eval[string](e, framed)).To(Equal("0"))
		Expect(s.clients(one)).To(HaveLen(1))
		Eventually(s.log.String).Should(ContainSubstring("a websocket of another page was refused"))
		Expect(got()).To(BeEmpty())
	})

	It("U08: pastes twenty lines in one frame, and asks first where the program may take lines", func() {
		t := enter(one)
		taken(t)
		paste := func(t *browser.Tab, text string) {
			GinkgoHelper()
			_, err := browser.Eval[bool](t, fmt.Sprintf(`(() => {
				const d = new DataTransfer();
				d.setData("text/plain", %q);
				return document.querySelector(".xterm-helper-textarea").dispatchEvent(new ClipboardEvent("paste", {clipboardData: d, bubbles: true, cancelable: true}));
			})()`, text))
			Expect(err).NotTo(HaveOccurred())
		}
		asked := func(t *browser.Tab, yes bool) {
			GinkgoHelper()
			Expect(browser.Eval[bool](t, fmt.Sprintf(`(window.confirm = (q) => { window.asked = q; return %t; }, true)`, yes))).To(BeTrue())
		}
		asked(t, true)
		lines := strings.TrimSuffix(strings.Repeat("a line\r\n", 20), "\r\n")
		paste(t, lines)
		Eventually(got).Should(Equal("\x1b[200~" + strings.ReplaceAll(lines, "\r\n", "\n") + "\x1b[201~"))

		plain := s.standing("plain", `stty raw -echo; : >"$0"; printf 'READY-plain.'; exec cat >>"$0"`, s.dir+"/plain.got")
		u := enter(plain)
		taken(u)
		asked(u, false)
		paste(u, "one\ntwo")
		Expect(browser.Eval[string](u, `window.asked`)).To(ContainSubstring("Paste 2 lines?"))
		paste(u, "one line")
		Eventually(func() string { return fileOf(s.dir + "/plain.got") }).Should(Equal("one line"))
		asked(u, true)
		paste(u, "three\nfour")
		Eventually(func() string { return fileOf(s.dir + "/plain.got") }).Should(Equal("one linethree\nfour"))
	})

	It("U09: what a harness prints names no window, reaches no clipboard, answers nothing and runs nothing", func() {
		v := s.standing("loud", `stty raw -echo; : >"$0"
printf '\033]0;SPOOFED\007\033]2;SPOOFED\007\033]52;c;c3Bvb2Y=\007\033[c\033[6n\033[>q\033]11;?\007'
printf '\033]8;;javascript:document.title="RUN"\033\\link\033]8;;\033\\ <img src=x onerror=document.title=1> \033[41mREADY-loud.'
exec cat >>"$0"`, s.dir+"/loud.got")
		t := enter(v)
		taken(t)
		Expect(browser.Eval[string](t, `document.title`)).To(Equal(v.Ref.String()))
		Expect(screen(t)()).To(ContainSubstring("<img src=x onerror=document.title=1>"))
		// The same, had it come to the page: nothing but text is left of it.
		Expect(browser.Eval[bool](t, `new Promise((done) => theLoopTerminal.write("\x1b]0;SPOOFED\x07\x1b]52;c;c3Bvb2Y=\x07\x1b[c\x1b[6n\x1b[>q\x1b[?2026$p\x1bP$qm\x1b\\\x1b]11;?\x07\x1b[?1000h\x1b[?1006h", () => done(true)))`)).To(BeTrue())
		t.Type("x")
		Eventually(func() string { return fileOf(s.dir + "/loud.got") }).Should(ContainSubstring("x"))
		Expect(browser.Eval[string](t, `document.title`)).To(Equal(v.Ref.String()))
		Expect(browser.Eval[string](t, `theLoopTerminal.modes.mouseTrackingMode`)).To(Equal("none"))
		Expect(browser.Eval[string](t, `getComputedStyle(document.querySelector("header")).backgroundColor`)).To(Equal("rgb(34, 34, 34)"))
		// What tmux itself answered its program is all that came besides.
		Expect(fileOf(s.dir + "/loud.got")).NotTo(ContainSubstring("rgb:"))
		Expect(strings.Count(fileOf(s.dir+"/loud.got"), "R")).To(BeNumerically("<=", 1))
	})

	It("U10: shows what has ended read-only, with why", func() {
		t := enter(one)
		taken(t)
		s.change(one.Ref, func(v *webterminal.Session) { v.Ended = "it is stopped" })
		Eventually(said(t, "state")).Should(Equal("read-only: it is stopped"))
		t.Type("x")
		Expect(browser.Eval[bool](t, `document.getElementById("take").hidden && document.getElementById("takeover").hidden`)).To(BeTrue())
		Expect(got()).To(BeEmpty())
		s.remove(one.Ref)
		Eventually(said(t, "state")).Should(ContainSubstring("disconnected: There is no session"))
	})
})

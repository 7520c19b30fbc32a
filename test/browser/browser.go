// Package browser runs a real Chromium for tests. Without one a test is skipped, with the
// reason; hack/install-chromium.sh installs one.
package browser

import (
	"context"
	"io"
	"iter"
	"os/exec"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// names of the program, the smallest first.
var names = []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"}

const (
	// startWithin bounds how long a browser may take to start on a busy machine.
	startWithin = time.Minute
	actWithin   = 20 * time.Second
)

// Browser is a running Chromium with a profile of its own.
type Browser struct{ ctx context.Context }

// Start starts one. It ends with the test that asked for it.
func Start() *Browser {
	GinkgoHelper()
	path := ""
	for _, n := range names {
		if p, err := exec.LookPath(n); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		Skip("there is no Chromium here: hack/install-chromium.sh installs one")
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.UserDataDir(GinkgoT().TempDir()), chromedp.WindowSize(1280, 900), chromedp.WSURLReadTimeout(startWithin),
		chromedp.CombinedOutput(io.Discard), chromedp.Flag("disable-gpu", true))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, cancel := chromedp.NewContext(alloc)
	b := &Browser{ctx: ctx}
	DeferCleanup(func() {
		// Cancel ends it gently, and is nil when it has ended.
		_ = chromedp.Cancel(ctx)
		cancel()
		stop()
	})
	Expect(chromedp.Do(ctx)).To(Succeed(), "starting %s", path)
	return b
}

// Tab is one page of a browser. All tabs share its cookies.
type Tab struct{ ctx context.Context }

// Tab opens a tab, which ends with the test. What its pages ask is confirmed.
func (b *Browser) Tab() *Tab {
	GinkgoHelper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	DeferCleanup(cancel)
	t := &Tab{ctx: ctx}
	// The first action makes the tab, and ends it with its context.
	Expect(chromedp.Do(ctx)).To(Succeed())
	go t.confirm(chromedp.Events(ctx, page.JavascriptDialogOpening))
	return t
}

// confirm answers what pages ask, until the tab ends.
func (t *Tab) confirm(asked iter.Seq2[page.EventJavascriptDialogOpening, error]) {
	yes := chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true})
		return err
	})
	for _, err := range asked {
		if err != nil || chromedp.Do(t.ctx, yes) != nil {
			return
		}
	}
}

// Do runs actions, which must succeed within 20 seconds.
func (t *Tab) Do(actions ...chromedp.Action[chromedp.Void]) {
	GinkgoHelper()
	ctx, cancel := context.WithTimeout(t.ctx, actWithin)
	defer cancel()
	Expect(chromedp.Do(ctx, actions...)).To(Succeed())
}

// Go loads an address.
func (t *Tab) Go(url string) {
	GinkgoHelper()
	t.Do(chromedp.Navigate(url))
}

// Type types keys into what has the focus, as a keyboard does: the character of a key comes
// with its press, and a page that takes the press gets no character besides.
// chromedp.KeyEvent sends the two apart.
func (t *Tab) Type(keys string) {
	GinkgoHelper()
	t.Do(chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		for _, r := range keys {
			events := kb.Encode(r)
			down, up := *events[0], *events[len(events)-1]
			if len(events) == 3 {
				down.Text, down.UnmodifiedText = events[1].Text, events[1].UnmodifiedText
			}
			if down.Key == "Unidentified" {
				down.Key, up.Key = string(r), string(r)
			}
			for _, e := range []input.DispatchKeyEventParams{down, up} {
				if _, err := cdp.Call(ctx, target, input.DispatchKeyEvent, e); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

// Click clicks what the selector finds, once it is visible.
func (t *Tab) Click(selector string) {
	GinkgoHelper()
	t.Do(chromedp.WaitVisible(chromedp.CSS(selector)), chromedp.Click(chromedp.CSS(selector)))
}

// Eval is the value of a JavaScript expression, of a promise too.
func Eval[T any](t *Tab, js string) (T, error) {
	ctx, cancel := context.WithTimeout(t.ctx, actWithin)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](js, chromedp.EvalAwaitPromise))
}

// Text is the visible text of the page.
func (t *Tab) Text() (string, error) { return Eval[string](t, `document.body.innerText`) }

// URL is the page's address.
func (t *Tab) URL() (string, error) { return Eval[string](t, `location.href`) }

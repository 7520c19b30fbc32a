package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/theloop-dev/the-loop/internal/core"
	"github.com/theloop-dev/the-loop/internal/webterminal"
)

// webTerminal completes the options of the web terminal: a flag wins over the configuration
// file, which wins over the default.
func (o *upOptions) webTerminal() error {
	w, f := &o.agent.WebTerminal, o.file.Routing.WebTerminal
	set(&w.Enabled, f.Enabled, o.given("web-terminal"))
	set(&w.Port, f.Port, o.given("web-terminal-port"))
	set(&w.Exposed, f.Exposed, o.given("web-terminal-exposed"))
	set(&w.Writable, f.Writable, o.given("web-terminal-writable"))
	set(&w.MaxClients, f.MaxClients, o.given("web-terminal-max-clients"))
	if f.IdleSeconds != nil && !o.given("web-terminal-idle") {
		w.Idle = time.Duration(*f.IdleSeconds) * time.Second
	}
	if f.AllowedHosts != nil && !o.given("web-terminal-allowed-hosts") {
		w.AllowedHosts = f.AllowedHosts
	}
	if !o.given("web-terminal-provider") {
		w.Provider = cmp.Or(f.Provider, w.Provider)
	}
	if !o.given("web-terminal-host") {
		w.Host = cmp.Or(f.Host, w.Host)
	}
	return w.Complete()
}

// set takes what the file says, unless a flag says it.
func set[T any](to *T, from *T, given bool) {
	if from != nil && !given {
		*to = *from
	}
}

// webLink is an address that lets a browser in, once and soon, and shows it a session. The
// token is read from the state directory of the agent, or of `up`, on its own host.
func webLink(dir string, s core.Session) (string, error) {
	for _, d := range []string{webterminal.Dir(dir), webterminal.Dir(state(dir).agent())} {
		base, err := webterminal.ReadURL(d)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", err
		}
		token, err := webterminal.ReadToken(d)
		if err != nil {
			return "", fmt.Errorf("the web terminal's token cannot be read: %w", err)
		}
		ref := webterminal.RefOf(s.SessionKind(), s.GetNamespace(), s.GetName())
		return webterminal.LoginURL(base, ref.Path(), webterminal.NewTicket(token, time.Now())), nil
	}
	return "", refusal("no web terminal is served from the state directory %s: start one with the-loop up --web-terminal (routing.webTerminal.enabled), or name the agent's directory with --state-dir", absolute(dir))
}

func absolute(dir string) string {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return dir
	}
	return abs
}

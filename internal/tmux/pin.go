package tmux

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// pin is one option or hook of the server that we depend on.
type pin struct {
	// scope is the flag of set-option: -s server, -g session, -gw window.
	scope, name, value string
	hook               bool
	// without says what is missing on a server that refuses the option; sessions run all the
	// same. "" is an option that we cannot do without.
	without string
}

// remainOnExit is the option that keeps a dead pane.
const remainOnExit = "remain-on-exit"

// pins are set by every Ensure, but for those that the server refuses. Whoever changes one of them on our server could make
// it end sessions, or lose what a dead one left (T11, T12, T13, T34).
func (s *Server) pins() []pin {
	signal := "wait-for -S " + eventChannel
	all := []pin{
		// Nothing ends the server or a session but we.
		{scope: "-s", name: "exit-empty", value: "off"},
		{scope: "-s", name: "exit-unattached", value: "off"},
		{scope: "-g", name: "destroy-unattached", value: "off"},
		// A client whose session ends is not shown another one (U12).
		{scope: "-g", name: "detach-on-destroy", value: "on"},
		// A pane whose program ended stays, with its exit status and its last lines.
		{scope: "-gw", name: remainOnExit, value: "on",
			without: "a terminal is gone with its harness, without exit status and last words"},
		{scope: "-g", name: "history-limit", value: strconv.Itoa(s.historyLimit)},
		// A client's environment never gets into a session.
		{scope: "-g", name: "update-environment", value: ""},
		// No program in a pane reaches a person's clipboard or renames windows.
		{scope: "-s", name: "set-clipboard", value: "off"},
		{scope: "-gw", name: "allow-rename", value: "off"},
		{scope: "-gw", name: "automatic-rename", value: "off"},
		// Something changed: relist early.
		{name: "pane-died", value: signal, hook: true},
		{name: "pane-exited", value: signal, hook: true},
		{name: "session-closed", value: signal, hook: true},
	}
	return slices.DeleteFunc(all, func(p pin) bool { return s.refuses(p.name) })
}

// refuses reports that the server does not take an option.
func (s *Server) refuses(option string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refused[option]
}

// optionPattern is how tmux 3.2 to 3.8 refuse an option, which they name.
var optionPattern = regexp.MustCompile(`^(?:invalid|unknown|ambiguous) option: ([a-z-]+)`)

// doWithout notes that the server refuses an option, as err says, where we can do without it.
func (s *Server) doWithout(err error) bool {
	var u *UnknownError
	if !errors.As(err, &u) {
		return false
	}
	m := optionPattern.FindStringSubmatch(u.Stderr)
	if m == nil {
		return false
	}
	for _, p := range s.pins() {
		if p.name == m[1] && p.without != "" {
			s.mu.Lock()
			s.refused[p.name] = true
			s.mu.Unlock()
			s.warn("the tmux server refuses the option " + p.name + ": " + p.without + "; use tmux 3.2 or newer, unchanged")
			return true
		}
	}
	return false
}

const pinMark = "LOOP-PIN"

func (p pin) set() command {
	if p.hook {
		return command{"set-hook", "-g", p.name, p.value}
	}
	return command{"set-option", p.scope, p.name, p.value}
}

// show prints a line that names the pin, then its value: nothing at all for an empty list.
func (p pin) show() []command {
	name := command{"display-message", "-p", pinMark + "|" + p.name}
	if p.hook {
		return []command{name, {"show-hooks", "-g", p.name}}
	}
	return []command{name, {"show-options", p.scope + "v", p.name}}
}

// pin sets the options, the hooks and the anchor session, with all that the server takes.
// Another server is asked for all of them again.
func (s *Server) pin(ctx context.Context) (Epoch, error) {
	s.mu.Lock()
	if s.pinned != s.seen.epoch {
		s.refused = map[string]bool{}
	}
	s.mu.Unlock()
	for {
		epoch, err := s.pinOnce(ctx)
		if err == nil || !s.doWithout(err) {
			return epoch, err
		}
	}
}

// pinOnce sets them and reads them back, in one invocation: nothing comes in between.
func (s *Server) pinOnce(ctx context.Context) (Epoch, error) {
	const op = "pin"
	cmds := []command{sentinel(beginMark)}
	for _, p := range s.pins() {
		cmds = append(cmds, p.show()...)
	}
	cmds = append(cmds, command{"display-message", "-p", pinMark})
	// A stamp on the server itself would shine through in every session without one.
	for _, scope := range []string{"-su", "-gu", "-gwu"} {
		for _, name := range stampNames {
			cmds = append(cmds, command{"set-option", scope, name})
		}
	}
	for _, p := range s.pins() {
		cmds = append(cmds, p.set())
	}
	cmds = append(cmds, command{"if-shell", "-F", "-t", "=" + AnchorName + ":", "#{==:#{session_name}," + AnchorName + "}", "",
		"new-session -d -s " + AnchorName + " -x 10 -y 5 -- /bin/sleep infinity"})
	for _, p := range s.pins() {
		cmds = append(cmds, p.show()...)
	}
	cmds = append(cmds, sentinel(endMark))

	a, err := s.ask(ctx, op, cmds...)
	if err != nil {
		return Epoch{}, err
	}
	before, after, epoch, v, ok := parsePins(a.stdout)
	if !ok {
		return Epoch{}, s.failure(op, a)
	}
	s.observe(epoch, v)
	var drift []string
	for _, p := range s.pins() {
		if after[p.name] != p.value {
			return Epoch{}, fmt.Errorf("tmux: the server (%s) does not keep the option %s: %q was set, %q is read", v, p.name, p.value, after[p.name])
		}
		if before[p.name] != p.value {
			drift = append(drift, p.name+"="+before[p.name])
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pinned != epoch {
		drift = nil // a server that we had not set up before has not drifted
	}
	s.pinned, s.drift = epoch, drift
	return epoch, nil
}

// parsePins reads what the pins were before and are after.
func parsePins(out string) (before, after map[string]string, epoch Epoch, v version, ok bool) {
	before, after = map[string]string{}, map[string]string{}
	into, name := before, ""
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if _, _, ok = parseSentinel(beginMark, lines[0]); !ok || len(lines) < 2 {
		return nil, nil, Epoch{}, version{}, false
	}
	last := len(lines) - 1
	for _, line := range lines[1:last] {
		if mark, rest, found := strings.Cut(line, "|"); mark == pinMark {
			if name = rest; !found {
				into = after
			}
			continue
		}
		value := strings.TrimPrefix(line, name+"[0] ") // a hook is shown with its index,
		if value == name {                             // and one that is not set with its name
			value = ""
		}
		if old, again := into[name]; again {
			value = old + "\n" + value
		}
		into[name] = value
	}
	epoch, v, ok = parseSentinel(endMark, lines[last])
	return before, after, epoch, v, ok
}

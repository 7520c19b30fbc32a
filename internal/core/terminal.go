package core

import (
	"context"
	"fmt"
	"os"
	"strings"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/tmux"
)

// Terminal is the terminal session of a session, as it was found on this machine.
type Terminal struct {
	// Argv attaches a terminal to exactly this session.
	Argv []string
	// Socket of its terminal server.
	Socket string
	// ReadOnly: what is typed reaches nothing.
	ReadOnly bool
	// Note says why it is read-only although that was not asked for.
	Note string

	server *tmux.Server
	target tmux.Target
}

// Machine is what tells one machine from another.
type Machine struct {
	// BootID is the kernel's, from /proc/sys/kernel/random/boot_id.
	BootID string
}

// ThisMachine is the one on which this program runs; its BootID is "" where the kernel tells
// none.
func ThisMachine() Machine {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return Machine{}
	}
	return Machine{BootID: strings.TrimSpace(string(b))}
}

// hostHere is the host of a session, which is this very machine; another one is refused with
// what fix says.
func (c *Core) hostHere(ctx context.Context, s Session, on Machine, fix func(host string) string) (*api.SessionHost, error) {
	host, err := c.Host(ctx, s.Placement().HostName)
	if err != nil {
		return nil, err
	}
	if on.BootID == "" || host.Status.BootID != on.BootID {
		return nil, refuse(ErrElsewhere, fmt.Sprintf("%s is on host %s, and this is another machine", s.GetName(), host.Name), fix(host.Name))
	}
	return host, nil
}

// FindTerminal finds the terminal session of a session on this machine. An ended one is
// attached read-only, whatever was asked for: what is typed into it could only be lost. A
// session of another host is refused with ErrElsewhere and the ssh command to it.
func (c *Core) FindTerminal(ctx context.Context, s Session, on Machine, readOnly bool) (*Terminal, error) {
	st := s.HostedStatus()
	if st.TmuxTarget == "" {
		if st.Launch == nil && st.ConversationID == "" {
			return nil, notFound("no tmux session is recorded yet for "+s.GetName()+": it was never started", command(s, "start"))
		}
		return nil, notFound("there is no tmux session of "+s.GetName()+": its terminal was closed", command(s, "start"))
	}
	why := ended(s)
	readOnly = readOnly || why != ""
	host, err := c.hostHere(ctx, s, on, func(host string) string { return sshCommand(host, st.AttachCommand, readOnly) })
	if err != nil {
		return nil, err
	}
	config := tmux.Config{Socket: host.Status.Tmux.Socket}
	if words := lineWords(st.AttachCommand); len(words) > 0 && words[0] != "tmux" {
		config.Binary = words[0]
	}
	server, err := tmux.New(config)
	if err != nil {
		return nil, err
	}
	snap, err := server.Snapshot(ctx)
	if err != nil {
		return nil, refuse(ErrFailed, fmt.Sprintf("the terminal server on %s did not answer, so it is not known whether %s runs: %v", server.Socket(), s.GetName(), err), "the-loop doctor")
	}
	mine := snap.ByUID(string(s.GetUID()))
	if len(mine) == 0 {
		return nil, notFound(fmt.Sprintf("there is no tmux session of %s on %s any more", s.GetName(), server.Socket()), command(s, "start"))
	}
	found := mine[0]
	for _, m := range mine {
		if m.Live() {
			found = m
			break
		}
	}
	if why == "" && !found.Live() {
		why, readOnly = "its harness has ended", true
	}
	t := &Terminal{Socket: server.Socket(), ReadOnly: readOnly, server: server, target: tmux.Target{UID: found.UID, SessionID: found.ID, PaneID: paneOf(found, st.PaneID), Epoch: snap.Epoch}}
	if why != "" {
		t.Note = fmt.Sprintf("%s: %s, so its terminal is shown read-only", s.GetName(), why)
	}
	t.Argv = lineWords(server.AttachCommand(found.Name, readOnly))
	return t, nil
}

// Text is what the terminal shows, and before it history lines of what it showed.
func (t *Terminal) Text(ctx context.Context, history int) (string, error) {
	return t.server.Capture(ctx, t.target, history)
}

// ended says why a session's terminal is a record and no live one, "" when it is live.
func ended(s Session) string {
	switch s.WantedState() {
	case api.SessionStateStopped:
		return "it is stopped"
	case api.SessionStateCleanedUp:
		return "it is cleaned up"
	}
	if s.GetDeletionTimestamp() != nil {
		return "it is being deleted"
	}
	return ""
}

func paneOf(s tmux.Session, recorded string) string {
	if _, ok := s.Pane(recorded); ok || len(s.Panes) == 0 {
		return recorded
	}
	return s.Panes[0].ID
}

// sshCommand attaches from another machine.
func sshCommand(host, attach string, readOnly bool) string {
	words := lineWords(attach)
	if readOnly {
		for i, w := range words {
			if w == "attach" && (i+1 >= len(words) || words[i+1] != "-r") {
				words = append(words[:i+1], append([]string{"-r"}, words[i+1:]...)...)
				break
			}
		}
	}
	for i, w := range words {
		words[i] = shellWord(w)
	}
	return "ssh -t " + host + " " + `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(strings.Join(words, " ")) + `"`
}

// lineWords are the words of a command line as internal/tmux writes it for a person:
// plain ones, and ones in single quotes, with a quote by a backslash between two of them.
func lineWords(line string) []string {
	var out []string
	var word strings.Builder
	quoted, begun := false, false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\'':
			quoted, begun = !quoted, true
		case quoted:
			word.WriteByte(c)
		case c == '\\' && i+1 < len(line):
			i++
			begun = true
			word.WriteByte(line[i])
		case c == ' ':
			if begun {
				out = append(out, word.String())
			}
			word.Reset()
			begun = false
		default:
			begun = true
			word.WriteByte(c)
		}
	}
	if begun {
		out = append(out, word.String())
	}
	return out
}

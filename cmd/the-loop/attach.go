package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/theloop-dev/the-loop/internal/core"
	"github.com/theloop-dev/the-loop/internal/text"
	"github.com/theloop-dev/the-loop/internal/tmux"
)

func (c *cli) attachCommand(by finder, complete cobra.CompletionFunc) *cobra.Command {
	readOnly, printed, web, stateDir := false, false, false, ""
	cmd := &cobra.Command{
		Use: "attach SESSION", Short: "Attach this terminal to a session (leave with Ctrl-b d)",
		Long: `Attach this terminal to a session; Ctrl-b d leaves it running. --read-only watches. A
session that has ended is always shown read-only, with a note. A session of another host
is refused, with the ssh command that attaches to it. --web prints a link that shows it in
a browser: good once, for two minutes (docs/webterminal.md).`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: complete,
		RunE: func(cmd *cobra.Command, args []string) error {
			if web {
				return c.printLink(cmd.Context(), by, args[0], stateDir)
			}
			t, err := c.terminal(cmd.Context(), by, args[0], readOnly)
			if err != nil {
				return err
			}
			if printed {
				return c.printArgv(t)
			}
			if in, ok := c.In.(*os.File); !ok || !term.IsTerminal(int(in.Fd())) {
				return refusal("a session is attached to from a terminal, and this is none: the-loop sessions logs shows its screen")
			}
			if t.Note != "" {
				t.Argv = tmux.Announced(t.Argv, t.Note)
			}
			return replace(t)
		},
	}
	cmd.Flags().BoolVarP(&readOnly, "read-only", "r", false, "watch only: nothing that is typed reaches the session")
	cmd.Flags().BoolVar(&printed, "print", false, "print the command that attaches, and attach to nothing")
	cmd.Flags().BoolVar(&web, "web", false, "print a link to the session in the web terminal of this host")
	cmd.Flags().StringVar(&stateDir, "state-dir", defaultState(), "with --web: state directory of the-loop up, or of the agent")
	return cmd
}

func (c *cli) terminal(ctx context.Context, by finder, arg string, readOnly bool) (*core.Terminal, error) {
	k, s, err := c.find(ctx, by, arg)
	if err != nil {
		return nil, err
	}
	return k.FindTerminal(ctx, s, core.ThisMachine(), readOnly)
}

// printLink prints a link to a session in the web terminal.
func (c *cli) printLink(ctx context.Context, by finder, arg, stateDir string) error {
	_, s, err := c.find(ctx, by, arg)
	if err != nil {
		return err
	}
	link, err := webLink(stateDir, s)
	if err != nil {
		return err
	}
	fmt.Fprintln(c.Out, link)
	return nil
}

// printArgv prints a command line for a shell.
func (c *cli) printArgv(t *core.Terminal) error {
	if t.Note != "" {
		c.note("%s", t.Note)
	}
	words := make([]string, len(t.Argv))
	for i, w := range t.Argv {
		if words[i] = w; strings.ContainsAny(w, " '\"=$`\\") {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	fmt.Fprintln(c.Out, strings.Join(words, " "))
	return nil
}

// replace makes this process the terminal's client, so that keys, signals and the size
// of the window are its own.
func replace(t *core.Terminal) error {
	path, err := exec.LookPath(t.Argv[0])
	if err != nil {
		return fmt.Errorf("%w: the-loop doctor says how to install it", err)
	}
	if inside, _, _ := strings.Cut(os.Getenv("TMUX"), ","); inside == t.Socket {
		return refusal("this terminal is inside of that very terminal server: leave it with Ctrl-b d first")
	}
	var env []string
	for _, v := range os.Environ() {
		// Within a tmux of the person's own, ours is another one.
		if !strings.HasPrefix(v, "TMUX=") && !strings.HasPrefix(v, "TMUX_PANE=") {
			env = append(env, v)
		}
	}
	return syscall.Exec(path, t.Argv, env)
}

// defaultHistory is how many lines of what was shown before logs show.
const defaultHistory = 200

func (c *cli) logsCommand(by finder, complete cobra.CompletionFunc) *cobra.Command {
	history := defaultHistory
	cmd := &cobra.Command{
		Use: "logs SESSION", Short: "Show the screen of a session, and what it showed before", Args: cobra.ExactArgs(1), ValidArgsFunction: complete,
		Long: `Show the screen of a session, live or ended, and --tail lines of what it showed before.
It is read from the terminal itself, on its own host: a session is a terminal, not a log.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if history < 0 {
				return refusal("--tail must not be negative")
			}
			t, err := c.terminal(cmd.Context(), by, args[0], true)
			if err != nil {
				return err
			}
			shown, err := t.Text(cmd.Context(), history)
			if err != nil {
				return err
			}
			// What an agent shows is not to steer this terminal.
			clean, _ := text.Sanitize(shown)
			fmt.Fprintln(c.Out, clean)
			return nil
		},
	}
	cmd.Flags().IntVar(&history, "tail", history, "lines before what is on the screen")
	return cmd
}

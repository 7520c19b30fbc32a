package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/core"
	"github.com/theloop-dev/the-loop/internal/text"
)

func isNotFound(err error) bool { return errors.Is(err, core.ErrNotFound) }

// sayFlags are those of say.
type sayFlags struct {
	text, file, key string
	files           []string
	wait            bool
	expires         time.Duration
}

func (c *cli) sayCommand(by finder, complete cobra.CompletionFunc) *cobra.Command {
	s := sayFlags{}
	cmd := &cobra.Command{
		Use: "say SESSION [TEXT...]", Short: "Say something to a session that runs", ValidArgsFunction: complete,
		Long: `Say something to a session that runs. The text is given behind the name, by --text, or
by --file (- is the standard input). --attach copies a file into the directory of a
session on this machine, and says where it is: also a text of more than 256 KiB. It is
stored, and typed into the session in order and once. With --wait the exit code is 0 only when the harness itself said that it took
it; 1 when it ended otherwise, 3 when it still waits after --timeout. A session that does
not run is refused: a message starts none.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.say(cmd, by, args, s) },
	}
	f := cmd.Flags()
	f.StringVar(&s.text, "text", "", "what to say")
	f.StringVar(&s.file, "file", "", "file with what to say; - is the standard input")
	f.StringArrayVar(&s.files, "attach", nil, "file to hand over, which the text then refers to; may be given again")
	f.StringVar(&s.key, "key", "", "what has the same key is said to a session once")
	f.BoolVar(&s.wait, "wait", false, "wait until the harness took it")
	f.DurationVar(&s.expires, "expires", 0, "give it up when it cannot be typed in this time")
	f.StringVar(&c.actor, "actor", "", "who says it (default: the user of the kubeconfig, else $USER)")
	c.changeFlags(cmd, "")
	f.DurationVar(&c.timeout, "timeout", time.Minute, "how long --wait waits")
	return cmd
}

func (c *cli) say(cmd *cobra.Command, by finder, args []string, s sayFlags) error {
	text, err := c.textOf(args[1:], s)
	if err != nil {
		return err
	}
	if s.expires < 0 || s.expires > 0 && s.expires < time.Second {
		return refusal("--expires must be a second or more")
	}
	k, obj, err := c.find(cmd.Context(), by, args[0])
	if err != nil {
		return err
	}
	saying := core.Saying{Text: text, Files: s.files, Key: s.key}
	if s.expires > 0 {
		saying.ExpiresAfterSeconds = new(int32(s.expires / time.Second))
	}
	m, err := k.Say(cmd.Context(), obj, saying)
	if err != nil {
		return err
	}
	if _, off := obj.GetAnnotations()[api.PausedAnnotation]; off {
		c.note("%s has the annotation %s: it is typed when that is removed", obj.GetName(), api.PausedAnnotation)
	}
	if s.wait && !k.DryRun {
		stop := c.progress(k)
		err = k.AwaitMessage(cmd.Context(), m)
		stop()
	}
	if printErr := c.printMessage(m, k.DryRun, err == nil); printErr != nil {
		return printErr
	}
	return err
}

// printMessage prints a message that was said. One that came to nothing is told by its
// error.
func (c *cli) printMessage(m *api.SessionMessage, dryRun, well bool) error {
	if done, err := c.printObjects(true, m); done || !well {
		return err
	}
	word := "accepted"
	if m.Status.Outcome == api.OutcomeSubmitted {
		word = "submitted"
	}
	if dryRun {
		word += " (server dry run)"
	}
	fmt.Fprintf(c.Out, "message %s %s\n", m.Name, word)
	return nil
}

// textOf is what is to be said, from the one place that is named.
func (c *cli) textOf(words []string, s sayFlags) (string, error) {
	given := 0
	for _, is := range []bool{len(words) > 0, s.text != "", s.file != ""} {
		if is {
			given++
		}
	}
	if given == 0 && len(s.files) > 0 {
		return "", nil
	}
	if given != 1 {
		return "", refusal("what is to be said? give it behind the name, by --text, or by --file (- is the standard input): one of them")
	}
	switch {
	case s.file == "-":
		b, err := io.ReadAll(c.In)
		return string(b), err
	case s.file != "":
		b, err := os.ReadFile(s.file)
		if err != nil {
			return "", refusal("--file: %w", err)
		}
		return string(b), nil
	case s.text != "":
		return s.text, nil
	}
	return strings.Join(words, " "), nil
}

func (c *cli) messagesCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "messages", Aliases: []string{"message"}, Short: "What was said to sessions, and what became of it"}
	cmd.AddCommand(c.messagesList(), c.messagesGet(), c.messagesRecall())
	return c.clusterFlags(cmd)
}

var messageColumns = []column{
	{head: "NAME", flex: 1, least: 24}, {head: "SESSION", flex: 2}, {head: "SEQ"}, {head: "OUTCOME", state: true}, {head: "REASON", flex: 3}, {head: "SOURCE"}, {head: "AGE"},
	{head: "ACTOR", wide: true}, {head: "TEXT", wide: true},
}

// wideText bounds a text in a table.
const wideText = 60

func (c *cli) messageRow(m *api.SessionMessage) []string {
	seq := "-"
	if m.Status.Sequence != 0 {
		seq = fmt.Sprint(m.Status.Sequence)
	}
	return []string{
		m.Name, m.Spec.SessionRef.Name, seq, dash(string(m.Status.Outcome)), dash(m.Status.Reason), string(m.Spec.Source.Type), c.age(m.CreationTimestamp.Time),
		dash(m.Spec.Source.Actor), fit(dash(m.Spec.Text), wideText),
	}
}

func (c *cli) messagesList() *cobra.Command {
	l, pending, name := listFlags{}, false, ""
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List messages", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			k, err := c.core()
			if err != nil {
				return err
			}
			o := core.MessageOptions{AllNamespaces: l.all, Pending: pending}
			if name != "" {
				if o.Session, err = c.anySession(cmd.Context(), k, name); err != nil {
					return err
				}
			}
			items, err := k.ListMessages(cmd.Context(), o)
			if err != nil {
				return err
			}
			return list(cmd.Context(), c, k, l, messageColumns, items, c.messageRow, &api.SessionMessageList{}, "No message in namespace "+k.Namespace+".")
		},
	}
	c.listFlags(cmd, &l, true)
	cmd.Flags().BoolVar(&pending, "pending", false, "only those whose outcome is not final")
	cmd.Flags().StringVar(&name, "session", "", "those for this session, by its reference or name")
	_ = cmd.RegisterFlagCompletionFunc("session", c.completeSessions)
	return cmd
}

// anySession finds a session of either kind. A name that both have is refused.
func (c *cli) anySession(ctx context.Context, k *core.Core, arg string) (core.Session, error) {
	if name, ok := strings.CutPrefix(arg, "standing/"); ok {
		return k.Standing(ctx, name)
	}
	if name, ok := strings.CutPrefix(arg, "session/"); ok {
		return k.WorkItem(ctx, name)
	}
	if core.IsRef(arg) {
		return k.WorkItem(ctx, arg)
	}
	w, errW := k.WorkItem(ctx, arg)
	if errW != nil && !isNotFound(errW) {
		return nil, errW
	}
	s, errS := k.Standing(ctx, arg)
	switch {
	case errW == nil && errS == nil:
		return nil, refusal("%s is the name of a work item's session and of a standing one: write session/%s or standing/%s", arg, arg, arg)
	case errW == nil:
		return w, nil
	case errS == nil:
		return s, nil
	case isNotFound(errS) || errors.Is(errS, core.ErrInvalid):
		return nil, errW
	}
	return nil, errS
}

func (c *cli) messagesGet() *cobra.Command {
	cmd := &cobra.Command{
		Use: "get NAME", Short: "Show one message and what became of it", Args: cobra.ExactArgs(1), ValidArgsFunction: c.completeMessages,
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := c.core()
			if err != nil {
				return err
			}
			m, err := k.Message(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			if done, err := c.printObjects(true, m); done {
				return err
			}
			for _, f := range [][2]string{
				{"Name", m.Namespace + "/" + m.Name}, {"Session", m.Spec.SessionRef.Kind + " " + m.Spec.SessionRef.Name},
				{"Source", strings.TrimSuffix(string(m.Spec.Source.Type)+", "+m.Spec.Source.Actor, ", ")}, {"Sequence", fmt.Sprint(m.Status.Sequence)},
				{"Outcome", core.Fate(m)}, {"Age", c.age(m.CreationTimestamp.Time)},
			} {
				fmt.Fprintf(c.Out, "%-10s %s\n", f[0]+":", wrapped(dash(f[1]), tableWidth-11, strings.Repeat(" ", 11)))
			}
			// What a stranger wrote is not to steer a person's terminal.
			clean, _ := text.Sanitize(m.Spec.Text)
			fmt.Fprintf(c.Out, "Text:\n%s\n", clean)
			return nil
		},
	}
	c.outputFlag(cmd.Flags(), "wide", "json", "yaml", "name")
	return cmd
}

func (c *cli) messagesRecall() *cobra.Command {
	cmd := &cobra.Command{
		Use: "recall NAME", Short: "Take back a message that was not typed yet", Args: cobra.ExactArgs(1), ValidArgsFunction: c.completePending,
		RunE: func(cmd *cobra.Command, args []string) error {
			k, err := c.core()
			if err != nil {
				return err
			}
			m, err := k.Recall(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			switch {
			case c.output == "name":
				if err := c.withKind(m); err != nil {
					return err
				}
				if err := (&printers.NamePrinter{}).PrintObj(m, c.Out); err != nil {
					return err
				}
			case k.DryRun:
				fmt.Fprintf(c.Out, "message %s recalled (server dry run)\n", m.Name)
			default:
				fmt.Fprintf(c.Out, "message %s recalled\n", m.Name)
			}
			return nil
		},
	}
	c.changeFlags(cmd, "")
	return cmd
}

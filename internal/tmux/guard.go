package tmux

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// What a guarded command prints first.
const (
	doneMark     = "LOOP-DONE"
	notReadyMark = "LOOP-NOTREADY"
	refusedMark  = "LOOP-REFUSED"
	stillMark    = "LOOP-STILL"
	waitMark     = "LOOP-WAITING" // the client waits for more
)

var (
	sessionIDRegexp = regexp.MustCompile(`^\$[0-9]{1,10}$`)
	windowIDRegexp  = regexp.MustCompile(`^@[0-9]{1,10}$`)
	paneIDRegexp    = regexp.MustCompile(`^%[0-9]{1,10}$`)
	// uidRegexp is what stamps and delivery ids consist of: nothing that tmux or its
	// command parser could read in another way.
	uidRegexp = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
)

// fields are the epoch as #{pid} and #{start_time} print it.
func (e Epoch) fields() []string {
	return []string{strconv.Itoa(e.PID), strconv.FormatInt(e.StartTime, 10)}
}

// equal is a tmux condition: all of these formats have exactly these values. It
// compares the joined text once. Values hold no "|", so that a format that does
// (somebody set a stamp) can only make it false. It is flat because old versions limit how
// deep formats nest.
func equal(formats, values []string) string {
	return "#{==:" + strings.Join(formats, "|") + "," + strings.Join(values, "|") + "}"
}

// both is a tmux condition.
func both(a, b string) string { return "#{&&:" + a + "," + b + "}" }

// validate refuses a target that could not have come from a listing.
func (t Target) validate(op string, needPane bool) error {
	switch {
	case !uidRegexp.MatchString(t.UID):
		return fmt.Errorf("tmux %s: the target's UID %q is not of the form %s", op, t.UID, uidRegexp)
	case !sessionIDRegexp.MatchString(t.SessionID):
		return fmt.Errorf("tmux %s: the target's session id %q is not of the form $7", op, t.SessionID)
	case (needPane || t.PaneID != "") && !paneIDRegexp.MatchString(t.PaneID):
		return fmt.Errorf("tmux %s: the target's pane id %q is not of the form %%7", op, t.PaneID)
	case t.Epoch.PID <= 0 || t.Epoch.StartTime <= 0:
		return fmt.Errorf("tmux %s: the target's epoch %s says no server", op, t.Epoch)
	}
	return nil
}

// pane addresses the pane inside of its session: exact on every version, and right
// even when a person links the window into a session of his own ("%7" alone would then
// stand for whichever session was used last).
func (t Target) pane() string { return t.SessionID + ":." + t.PaneID }

// session addresses the session.
func (t Target) session() string { return t.SessionID + ":" }

// paneGuard holds for exactly this pane of exactly this server, stamped as ours. The ids
// are part of it because a target that is gone makes if-shell look at whatever
// session a person is attached to.
func (t Target) paneGuard(formats, values []string) string {
	f := append([]string{"#{session_id}", "#{pane_id}", "#{pid}", "#{start_time}"}, formats...)
	v := append(append([]string{t.SessionID, t.PaneID}, t.Epoch.fields()...), values...)
	return equal(append(f, "#{"+uidOption+"}"), append(v, t.UID))
}

// sessionGuard is paneGuard for the session as a whole.
func (t Target) sessionGuard(formats, values []string) string {
	f := append([]string{"#{session_id}", "#{pid}", "#{start_time}"}, formats...)
	v := append(append([]string{t.SessionID}, t.Epoch.fields()...), values...)
	return equal(append(f, "#{"+uidOption+"}"), append(v, t.UID))
}

// refusal is the command that says what a guard saw. Comparisons with values that a
// person may have set are made by the server; the values themselves come last.
func (t Target) refusal(target, delivery string) string {
	is := func(option, want string) string { return "#{==:#{" + option + "}," + want + "}" }
	return "display-message -p -t '" + target + "' '" + strings.Join([]string{refusedMark,
		"#{session_id}", "#{pane_id}", "#{pid}", "#{start_time}", "#{pane_dead}", "#{pane_input_off}",
		is(uidOption, t.UID), is(pastedOption, delivery), is(submittedOption, delivery),
		"#{" + uidOption + "}", "#{" + pastedOption + "}",
		"#{W:#{P:#{?pane_dead,D,L}}}", // ends the expansion when there is no session
	}, "|") + "'"
}

// refused is what a guard saw.
type refused struct {
	sessionID, paneID            string
	epoch                        Epoch
	dead, inputOff               bool
	stamped, pasted, submitted   bool
	seenUID, seenPasted, problem string
	panes                        string // a letter for each, Dead or Live
}

// parseRefusal reads what refusal printed, after its mark.
func parseRefusal(rest string) (refused, error) {
	f := strings.SplitN(strings.TrimSuffix(rest, "\n"), "|", 12)
	if len(f) < 10 {
		return refused{}, fmt.Errorf("%.200q says nothing", rest)
	}
	pid, err1 := strconv.Atoi(f[2])
	start, err2 := strconv.ParseInt(f[3], 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return refused{}, err
	}
	f = append(f, "", "")
	return refused{
		sessionID: f[0], paneID: f[1], epoch: Epoch{PID: pid, StartTime: start},
		dead: f[4] == "1", inputOff: f[5] == "1",
		stamped: f[6] == "1", pasted: f[7] == "1", submitted: f[8] == "1",
		seenUID: f[9], seenPasted: f[10], panes: f[11],
	}, nil
}

func (r refused) String() string {
	return fmt.Sprintf("%sepoch=%s session=%s pane=%s uid=%.80q dead=%t inputOff=%t pasted=%.80q panes=%.80q",
		r.problem, r.epoch, r.sessionID, r.paneID, r.seenUID, r.dead, r.inputOff, r.seenPasted, r.panes)
}

// outcome says what a refusal means for the target; already tells whether its marker
// shows that the operation ran before.
func (t Target) outcome(r refused, already func(refused) bool) Result {
	switch {
	case r.epoch != t.Epoch:
		r.problem = "another server: "
		return Result{Outcome: Refused, Detail: r.String()}
	case r.sessionID != t.SessionID || t.PaneID != "" && r.paneID != t.PaneID:
		return Result{Outcome: Gone, Detail: "no such pane in that session"}
	case !r.stamped:
		r.problem = "not ours: "
	case already != nil && already(r):
		return Result{Outcome: Already, Detail: r.String()}
	}
	return Result{Outcome: Refused, Detail: r.String()}
}

// guarded runs an invocation whose last word is the server's: done, refused, not
// ready. A target or a server that authoritatively does not exist is Gone.
func (s *Server) guarded(ctx context.Context, op string, t Target, cmds ...command) (Result, error) {
	a, err := s.ask(ctx, op, cmds...)
	if err != nil {
		return Result{}, err
	}
	return s.read(op, a, t, nil)
}

// read is what the answer of a guarded invocation means.
func (s *Server) read(op string, a answer, t Target, already func(refused) bool) (Result, error) {
	mark, rest, _ := strings.Cut(strings.TrimSuffix(a.stdout, "\n"), "|")
	switch mark {
	case doneMark:
		return Result{Outcome: Done}, nil
	case notReadyMark:
		return Result{Outcome: NotReady, Detail: "the application has not enabled bracketed paste"}, nil
	case stillMark:
		return Result{}, unknown(op, ReasonFailed, "the session exists still", nil)
	case refusedMark:
		r, err := parseRefusal(rest)
		if err != nil {
			return Result{}, unknown(op, ReasonMalformed, a.stderr, err)
		}
		return t.outcome(r, already), nil
	}
	if err := s.failure(op, a); !errors.Is(err, ErrAbsent) {
		return Result{}, err
	}
	return Result{Outcome: Gone, Detail: a.stderr}, nil
}

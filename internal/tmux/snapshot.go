package tmux

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The first word of every line that we make the server print.
const (
	beginMark = "LOOP-BEGIN"
	endMark   = "LOOP-END"
	paneMark  = "LOOP-PANE"
)

// The stamps, as session options. stampNames is their order in a listing.
const (
	uidOption        = "@loop_uid"
	generationOption = "@loop_gen"
	pastedOption     = "@loop_pasted"
	submittedOption  = "@loop_submitted"
	// resubmittedOption is the delivery that got a second carriage return.
	resubmittedOption = "@loop_resubmitted"
	objectOption      = "@loop_object"
	noticeOption      = "@loop_notice"
	// scrollOption is how far a person had scrolled up in a pane before a paste, in lines.
	scrollOption = "@loop_scroll"
)

var stampNames = []string{uidOption, generationOption, pastedOption, submittedOption, objectOption, noticeOption}

// paneFormat prints one pane. First what the server alone decides; then the stamps,
// "!" for one with a character that we never write (it could hold a separator or a line
// break); the name, which may hold any printable character, last.
var paneFormat = buildPaneFormat()

const (
	paneFields  = 11 // from the mark to bracket_paste_flag
	junkStamp   = "!"
	strangeText = "?"
)

func buildPaneFormat() string {
	fixed := paneMark + "|#{session_id}|#{window_id}|#{pane_id}|#{pane_pid}|#{pane_dead}|#{pane_dead_status}|#{pane_dead_signal}" +
		"|#{pane_in_mode}|#{pane_input_off}|#{bracket_paste_flag}|"
	var all, plain, each []string
	for _, n := range stampNames {
		value := "#{" + n + "}"
		all = append(all, value)
		plain = append(plain, value)
		each = append(each, "#{?#{m:*[!-A-Za-z0-9._/]*,"+value+"},"+junkStamp+","+value+"}")
	}
	// One look at all of them; one by one only when it finds something.
	stamps := "#{?#{m:*[!-A-Za-z0-9._/]*," + strings.Join(all, "") + "}," + strings.Join(each, "|") + "," + strings.Join(plain, "|") + "}"
	return fixed + stamps + "|#{session_name}"
}

// sentinel prints who answers. Only the server can.
func sentinel(mark string) command {
	return command{"display-message", "-p", mark + "|#{pid}|#{start_time}|#{version}"}
}

// parseSentinel reads a line of sentinel.
func parseSentinel(mark, line string) (Epoch, version, bool) {
	f := strings.Split(line, "|")
	if len(f) != 4 || f[0] != mark {
		return Epoch{}, version{}, false
	}
	pid, err1 := strconv.Atoi(f[1])
	start, err2 := strconv.ParseInt(f[2], 10, 64)
	if err1 != nil || err2 != nil || pid <= 0 || start <= 0 || f[3] == "" {
		return Epoch{}, version{}, false
	}
	return Epoch{PID: pid, StartTime: start}, parseVersion(f[3]), true
}

// Snapshot lists every session of the server with every pane, in one invocation. No
// server at all is an empty snapshot with a zero Epoch, unless the process of our server
// is known to live. The error is an *UnknownError: nothing is known then.
func (s *Server) Snapshot(ctx context.Context) (Snapshot, error) {
	taken := time.Now()
	snap, err := s.list(ctx, "snapshot", command{"list-panes", "-a", "-F", paneFormat})
	if errors.Is(err, ErrAbsent) {
		return Snapshot{Taken: taken}, nil
	}
	if err != nil {
		return Snapshot{}, err
	}
	snap.Taken = taken
	s.remind(ctx, snap)
	return snap, nil
}

// list runs one list-panes between two sentinels. The closing one proves that the
// listing is whole; the opening one names the server that has nothing to list.
func (s *Server) list(ctx context.Context, op string, listing command) (Snapshot, error) {
	a, err := s.ask(ctx, op, sentinel(beginMark), listing, sentinel(endMark))
	if err != nil {
		return Snapshot{}, err
	}
	snap, v, err := parseListing(a.stdout)
	if err == nil {
		s.observe(snap.Epoch, v)
		return snap, nil
	}
	first, _, _ := strings.Cut(a.stdout, "\n")
	epoch, v, begun := parseSentinel(beginMark, first)
	switch {
	case begun && classify(s.socket, a) == noSessions:
		s.observe(epoch, v)
		return Snapshot{Epoch: epoch}, nil
	case begun && classify(s.socket, a) == noTarget:
		s.observe(epoch, v)
		return Snapshot{Epoch: epoch}, s.failure(op, a)
	case begun && a.code == 0, classify(s.socket, a) == noSessions:
		return Snapshot{}, unknown(op, ReasonMalformed, a.stderr, err)
	}
	return Snapshot{}, s.failure(op, a)
}

// parseListing reads what list printed.
func parseListing(out string) (Snapshot, version, error) {
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	last := len(lines) - 1
	begin, _, ok := parseSentinel(beginMark, lines[0])
	if !ok || last == 0 {
		return Snapshot{}, version{}, errors.New("the opening line is missing")
	}
	end, v, ok := parseSentinel(endMark, lines[last])
	if !ok || end != begin {
		return Snapshot{}, version{}, errors.New("the closing line is missing")
	}
	snap := Snapshot{Epoch: end}
	index := map[string]int{}
	for _, line := range lines[1:last] {
		session, pane, err := parsePane(line, v)
		if err != nil {
			return Snapshot{}, version{}, err
		}
		if session.Name == AnchorName || session.Name == HubName {
			continue
		}
		i, seen := index[session.ID]
		if !seen {
			i = len(snap.Sessions)
			index[session.ID] = i
			snap.Sessions = append(snap.Sessions, session)
		}
		snap.Sessions[i].Panes = append(snap.Sessions[i].Panes, pane)
	}
	return snap, v, nil
}

// parsePane reads one line of paneFormat.
func parsePane(line string, v version) (Session, Pane, error) {
	f := strings.SplitN(line, "|", paneFields+len(stampNames)+1)
	if len(f) != paneFields+len(stampNames)+1 || f[0] != paneMark {
		return Session{}, Pane{}, fmt.Errorf("%.200q is no pane", line)
	}
	stamps, name := f[paneFields:paneFields+len(stampNames)], f[paneFields+len(stampNames)]
	session := Session{ID: f[1], Name: name,
		UID: stamps[0], Generation: strange(stamps[1]), Pasted: strange(stamps[2]), Submitted: strange(stamps[3]), Object: strange(stamps[4]), Notice: strange(stamps[5])}
	if !uidRegexp.MatchString(session.UID) {
		session.UID = ""
	}
	if !sessionIDRegexp.MatchString(f[1]) || !windowIDRegexp.MatchString(f[2]) || !paneIDRegexp.MatchString(f[3]) {
		return Session{}, Pane{}, fmt.Errorf("%.200q holds no ids", line)
	}
	pane := Pane{ID: f[3], WindowID: f[2], InMode: f[8] != "" && f[8] != "0", ExitSignal: signalText(f[7])}
	var err error
	if f[4] != "" { // none for a dead pane since 3.8
		if pane.PID, err = strconv.Atoi(f[4]); err != nil || pane.PID < 0 {
			return Session{}, Pane{}, fmt.Errorf("%.200q holds no pid", line)
		}
	}
	if pane.Dead, err = parseFlag(f[5]); err != nil {
		return Session{}, Pane{}, fmt.Errorf("%.200q: pane_dead: %w", line, err)
	}
	if pane.InputOff, err = parseFlag(f[9]); err != nil {
		return Session{}, Pane{}, fmt.Errorf("%.200q: pane_input_off: %w", line, err)
	}
	if f[6] != "" {
		status, err := strconv.Atoi(f[6])
		if err != nil {
			return Session{}, Pane{}, fmt.Errorf("%.200q: pane_dead_status: %w", line, err)
		}
		pane.ExitStatus = &status
	}
	if f[10] != "" { // unknown to tmux before 3.7
		on := f[10] != "0"
		pane.BracketPaste = &on
	}
	pane.Dying = pane.Dead && pane.ExitStatus == nil && pane.ExitSignal == "" && !v.before(v33)
	return session, pane, nil
}

func parseFlag(s string) (bool, error) {
	switch s {
	case "", "0":
		return false, nil
	case "1":
		return true, nil
	}
	return false, fmt.Errorf("%q is neither 0 nor 1", s)
}

func strange(stamp string) string {
	if stamp == junkStamp {
		return strangeText
	}
	return stamp
}

// signalText makes "SIGTERM" of what a build of tmux says, a number or a name.
func signalText(s string) string {
	if s == "" || strings.HasPrefix(s, "SIG") {
		return s
	}
	if n, err := strconv.Atoi(s); err == nil {
		s = signalName(syscall.Signal(n))
	}
	return "SIG" + s
}

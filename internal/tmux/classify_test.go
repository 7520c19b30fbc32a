//go:build linux

package tmux

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

var _ = Describe("The classification of an answer", func() {
	const socket = "/run/loop/tmux.sock"
	s := &Server{socket: socket, client: parseVersion("3.6b")}

	// Every message was printed by some tmux between 3.0a and 3.8.
	DescribeTable("T08: never reads silence as absence",
		func(code int, stderr string, want error, reason string) {
			err := s.failure("op", answer{code: code, stderr: stderr})
			Expect(err).To(MatchError(want))
			var u *UnknownError
			Expect(errors.As(err, &u)).To(Equal(reason != ""))
			if u != nil {
				Expect(u.Reason).To(Equal(reason))
				Expect(u.Op).To(Equal("op"))
				Expect(errors.Is(err, ErrAbsent)).To(BeFalse())
			}
		},
		Entry(nil, 1, "no server running on "+socket, ErrAbsent, ""),
		Entry(nil, 1, "error connecting to "+socket+" (No such file or directory)", ErrAbsent, ""),
		Entry(nil, 1, "can't find session: x", ErrAbsent, ""),
		Entry(nil, 1, "can't find window: @9", ErrAbsent, ""),
		Entry(nil, 1, "can't find pane: %9", ErrAbsent, ""),
		Entry(nil, 1, "no such session: =x:", ErrAbsent, ""),
		Entry(nil, 1, "no current target", ErrAbsent, ""),
		Entry(nil, 1, "duplicate session: x", ErrDuplicate, ""),

		Entry("another socket", 1, "no server running on /tmp/tmux-0/default", ErrUnknown, ReasonFailed),
		Entry("another socket", 1, "error connecting to /tmp/x (No such file or directory)", ErrUnknown, ReasonFailed),
		Entry("two lines", 1, "no server running on "+socket+"\nand more", ErrUnknown, ReasonFailed),
		Entry("two lines", 1, "can't find session: x\nlost server", ErrUnknown, ReasonFailed),
		Entry("exit 0", 0, "can't find session: x", ErrUnknown, ReasonNoSentinel),
		Entry("exit 0", 0, "", ErrUnknown, ReasonNoSentinel),
		Entry("exit 2", 2, "no server running on "+socket, ErrUnknown, ReasonFailed),
		Entry(nil, 1, "", ErrUnknown, ReasonFailed),
		Entry(nil, 1, "error connecting to "+socket+" (Permission denied)", ErrUnknown, ReasonPermission),
		Entry(nil, 1, "error connecting to "+socket+" (Connection refused)", ErrUnknown, ReasonFailed),
		Entry(nil, 1, "error connecting to "+socket+" (File name too long)", ErrUnknown, ReasonFailed),
		Entry("3.3a to 3.7c", 0, "access not allowed", ErrUnknown, ReasonPermission),
		Entry("3.8", 1, "access not allowed", ErrUnknown, ReasonPermission),
		Entry(nil, 1, "client is read-only", ErrUnknown, ReasonPermission),
		Entry(nil, 1, "server exited unexpectedly", ErrUnknown, ReasonServerLost),
		Entry(nil, 1, "lost server", ErrUnknown, ReasonServerLost),
		Entry(nil, 0, "server version is too old for client", ErrUnknown, ReasonVersionMismatch),
		Entry(nil, 1, "protocol version mismatch (client 8, server 7)", ErrUnknown, ReasonVersionMismatch),
		Entry(nil, 1, "command too long", ErrUnknown, ReasonFailed),
		Entry(nil, 1, "create window failed: fork failed: Too many open files", ErrUnknown, ReasonFailed),
		Entry(nil, 0, "error creating "+socket+" (No such file or directory)", ErrUnknown, ReasonNoSentinel),
	)

	It("T24, T37: hands on what tmux said, in bounds", func() {
		err := s.failure("spawn", answer{code: 1, stderr: "create session failed: fork failed: No space left on device"})
		Expect(err).To(MatchError(And(ContainSubstring("tmux spawn: no authoritative answer (failed)"), ContainSubstring("No space left on device"))))
		long := s.failure("spawn", answer{code: 1, stderr: strings.Repeat("x", 5000)})
		Expect(len(long.Error())).To(BeNumerically("<", 1200))
	})

	It("says that a client could not be run, or was killed", func() {
		dir := shortDir()
		fake := script(dir, "tmux", `case "$*" in -V) echo tmux 3.4;; *) kill -KILL $$;; esac`)
		s, err := New(Config{Socket: dir + "/s", Binary: fake})
		Expect(err).NotTo(HaveOccurred())
		_, err = s.Snapshot(context.Background())
		Expect(err.(*UnknownError).Reason).To(Equal(ReasonKilled))
		s.binary = dir + "/gone"
		_, err = s.Snapshot(context.Background())
		Expect(err.(*UnknownError).Reason).To(Equal(ReasonExec))
	})

	It("does not believe an answer that breaks off, or one of two servers", func() {
		pane := "LOOP-PANE|$1|@1|%1|77|0|||0|0||u1|1|||obj|name\n"
		for _, out := range []string{
			"", "LOOP-BEGIN|1|2|3.4\n", "LOOP-END|1|2|3.4\n", "LOOP-BEGIN|1|2|3.4\n" + pane,
			pane + "LOOP-END|1|2|3.4\n", "LOOP-BEGIN|1|2|3.4\n" + pane + "LOOP-END|1|3|3.4\n",
			"LOOP-BEGIN|1|2|3.4\n" + pane + "junk\nLOOP-END|1|2|3.4\n",
			"LOOP-BEGIN|1|2|3.4\n" + pane + "LOOP-END|1|2|3.4\nmore\n",
			"LOOP-BEGIN|-1|2|3.4\nLOOP-END|-1|2|3.4\n", "LOOP-BEGIN||2|3.4\nLOOP-END||2|3.4\n"} {
			fake := script(shortDir(), "tmux", `case "$*" in -V) echo tmux 3.4;; *) printf %s "`+strings.ReplaceAll(out, "$", `\$`)+`";; esac`)
			s, err := New(Config{Socket: socket, Binary: fake})
			Expect(err).NotTo(HaveOccurred())
			_, err = s.Snapshot(context.Background())
			Expect(err).To(MatchError(ErrUnknown), "%q", out)
		}
	})
})

var _ = Describe("The parser of a listing", func() {
	const begin, end = "LOOP-BEGIN|12|1700000000|3.3a\n", "LOOP-END|12|1700000000|3.3a\n"

	parse := func(rows ...string) ([]Session, error) {
		snap, _, err := parseListing(begin + strings.Join(rows, "") + end)
		return snap.Sessions, err
	}

	It("reads live, dead and dying panes of every tmux", func() {
		sessions, err := parse(
			"LOOP-PANE|$1|@1|%1|77|0|||0|0||u1|2|p|s|a/b/c|draft-2|name\n",
			"LOOP-PANE|$1|@2|%2|78|1|7||0|1||u1|2|p|s|a/b/c|draft-2|name\n",
			"LOOP-PANE|$2|@3|%3||1||15|1|0|0||||||||a|b\n",
			"LOOP-PANE|$3|@4|%4|80|1||TERM|2|0|1|!|!|!|!|!|!|\n",
			"LOOP-PANE|$4|@5|%5|81|1|||0|0||not_a_uid||||||x\n",
			"LOOP-PANE|$5|@6|%6|82|0|||0|0||||||||loop_anchor\n")
		Expect(err).NotTo(HaveOccurred())
		seven := 7
		yes, no := true, false
		Expect(sessions).To(Equal([]Session{
			{ID: "$1", Name: "name", UID: "u1", Generation: "2", Pasted: "p", Submitted: "s", Object: "a/b/c", Notice: "draft-2", Panes: []Pane{
				{ID: "%1", WindowID: "@1", PID: 77},
				{ID: "%2", WindowID: "@2", PID: 78, Dead: true, ExitStatus: &seven, InputOff: true}}},
			{ID: "$2", Name: "|a|b", Panes: []Pane{{ID: "%3", WindowID: "@3", Dead: true, ExitSignal: "SIGTERM", InMode: true, BracketPaste: &no}}},
			{ID: "$3", Name: "", Generation: "?", Pasted: "?", Submitted: "?", Object: "?", Notice: "?", Panes: []Pane{
				{ID: "%4", WindowID: "@4", PID: 80, Dead: true, ExitSignal: "SIGTERM", InMode: true, BracketPaste: &yes}}},
			{ID: "$4", Name: "x", Panes: []Pane{{ID: "%5", WindowID: "@5", PID: 81, Dead: true, Dying: true}}},
		}))
	})

	DescribeTable("refuses what is no pane",
		func(row string) {
			_, err := parse(row)
			Expect(err).To(HaveOccurred())
		},
		Entry(nil, "\n"),
		Entry(nil, "LOOP-PANE\n"),
		Entry(nil, "LOOP-PANE|$1|@1|%1|77|0|||0|0||u1|2|p|s|no name\n"),
		Entry(nil, "LOOP-PANE|1|@1|%1|77|0|||0|0||u1|2|p|s|o|n\n"),
		Entry(nil, "LOOP-PANE|$1|@|%1|77|0|||0|0||u1|2|p|s|o|n\n"),
		Entry(nil, "LOOP-PANE|$1|@1|%x|77|0|||0|0||u1|2|p|s|o|n\n"),
		Entry(nil, "LOOP-PANE|$1|@1|%1|-7|0|||0|0||u1|2|p|s|o|n\n"),
		Entry(nil, "LOOP-PANE|$1|@1|%1|77|2|||0|0||u1|2|p|s|o|n\n"),
		Entry(nil, "LOOP-PANE|$1|@1|%1|77|0|||0|x||u1|2|p|s|o|n\n"),
		Entry(nil, "LOOP-PANE|$1|@1|%1|77|1|x||0|0||u1|2|p|s|o|n\n"),
		Entry(nil, "LOOP-FAKE|$1|@1|%1|77|0|||0|0||u1|2|p|s|o|n\n"),
	)

	It("T26: knows that tmux 3.2 cannot say that a pane is dying", func() {
		_, pane, err := parsePane("LOOP-PANE|$4|@5|%5|81|1|||0|0||u||||||x", parseVersion("3.2a"))
		Expect(err).NotTo(HaveOccurred())
		Expect(pane.Dying).To(BeFalse())
	})
})

// listenAndClose is a listener that hangs up on everybody.
func listenAndClose(socket string) (stop func()) {
	l, err := net.Listen("unix", socket)
	Expect(err).NotTo(HaveOccurred())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	return func() {
		_ = l.Close()
		<-done
	}
}

// FuzzParseListing: whatever is printed, a listing is read whole and with sound ids, or refused.
func FuzzParseListing(f *testing.F) {
	f.Add("LOOP-BEGIN|1|2|3.4\nLOOP-END|1|2|3.4\n")
	f.Add("LOOP-BEGIN|1|2|3.4\nLOOP-PANE|$1|@1|%1|77|0|||0|0||u1|2|p|s|a/b/c|na|me\nLOOP-END|1|2|3.4\n")
	f.Add("LOOP-BEGIN|1|2|3.4\nLOOP-PANE|$1|@1|%1||1||15|0|0|1|!|!|!|!|!|x\nLOOP-END|1|2|3.4\n")
	f.Add("LOOP-BEGIN|1|2|3.4\nLOOP-PANE|$5|@6|%6|82|0|||0|0|||||||loop_anchor\nLOOP-END|1|2|3.4")
	f.Fuzz(func(t *testing.T, out string) {
		snap, _, err := parseListing(out)
		if err != nil {
			if snap.Sessions != nil || !snap.Epoch.IsZero() {
				t.Fatalf("%q: a refused listing says something: %+v", out, snap)
			}
			return
		}
		if snap.Epoch.PID <= 0 || snap.Epoch.StartTime <= 0 {
			t.Fatalf("%q: no server said that: %+v", out, snap)
		}
		rows, seen, panes := strings.Count(out, "\n"+paneMark+"|"), map[string]bool{}, 0
		for _, s := range snap.Sessions {
			if seen[s.ID] || !sessionIDRegexp.MatchString(s.ID) || s.Name == AnchorName || len(s.Panes) == 0 || strings.Contains(s.Name, "\n") ||
				s.UID != "" && !uidRegexp.MatchString(s.UID) {
				t.Fatalf("%q: %+v", out, s)
			}
			seen[s.ID] = true
			panes += len(s.Panes)
			for _, p := range s.Panes {
				if !paneIDRegexp.MatchString(p.ID) || !windowIDRegexp.MatchString(p.WindowID) || p.PID < 0 || p.Dying && !p.Dead {
					t.Fatalf("%q: %+v", out, p)
				}
			}
		}
		if panes > rows {
			t.Fatalf("%q: %d panes out of %d rows", out, panes, rows)
		}
	})
}

package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	api "github.com/theloop-dev/the-loop/api/v1alpha1"
	"github.com/theloop-dev/the-loop/internal/harness"
	"github.com/theloop-dev/the-loop/internal/harness/seal"
	"github.com/theloop-dev/the-loop/internal/text"
)

const (
	// sealStep and compareStep bound what is read of a conversation at a time, in bytes; the
	// next look goes on at once.
	sealStep    = 4 << 20
	compareStep = 16 << 20
	atOnceAgain = time.Millisecond
	// settleFor is how long after its end the last write of a harness may still come where
	// nothing that it left behind was looked for: its pane process gives it and what it
	// started that long to end.
	settleFor = 10 * time.Second
	// sealAgain is how old the record may become while one message follows another.
	sealAgain = time.Minute
)

// sealPath is where the seal of a conversation is: with the agent, and so where no harness
// has anything to write. It is one for all sessions of the host, because a conversation can be
// handed from one to another.
func (e *Engine) sealPath(conversation string) string {
	return filepath.Join(e.Dir, "conversations", conversation+".json")
}

// sealOf is what is on record of a conversation's file, nil for nothing. A record that cannot
// be read is none: who could have broken it could have made another.
func (t *turn) sealOf(conversation string) *seal.Seal {
	if !harness.ValidConversationID(conversation) {
		return nil
	}
	s, err := seal.Load(t.sealPath(conversation))
	if err != nil {
		t.Log.Error(err, "what the conversation's file was is not known: it is not compared before a resume")
	}
	return s
}

// dropSeals removes what is on record of the conversations of a session that is let go.
func (t *turn) dropSeals() {
	names, _ := filepath.Glob(t.sealPath("*"))
	for _, name := range names {
		if s, err := seal.Load(name); err == nil && s != nil && s.Owner == string(t.Object.GetUID()) {
			_ = os.Remove(name)
		}
	}
}

// seal brings the record of the conversation's file up to date, and says when to go on. What
// a turn under way wrote is left out, because the harness may take it back, until the harness
// has ended: what comes then is somebody else's (R14).
func (t *turn) seal() time.Duration {
	due, wait := t.sealDue()
	if !due {
		return wait
	}
	t.mem.sealedAt = t.now()
	s, ended := t.sealOf(t.status.ConversationID), t.sight.Holder != HolderLiveOurs
	next := seal.Seal{Path: t.state.TranscriptPath}
	switch {
	case s != nil && (s.Path == next.Path || ended):
		next = *s
	case s != nil && next.Path != "":
		t.Log.Info("the harness keeps the conversation in another file: its record begins anew", "file", next.Path, "before", s.Path)
	}
	next.Owner = string(t.Object.GetUID())
	if next.Path == "" {
		return 0
	}
	more, err := next.Extend(sealStep, t.now())
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	if s != nil && s.Closed && !ended && next.Size > s.Size {
		t.Log.Info("the harness goes on with a conversation that was ended, and that grew since; whether all of that is its own is not known",
			"file", next.Path, "bytes", next.Size-s.Size)
	}
	next.Closed = ended && !more
	if err == nil && (s == nil || s.Brief() != next.Brief()) {
		err = t.saveSeal(t.status.ConversationID, s, &next)
	}
	return t.sealed(ended, more, err)
}

// sealed says when to go on after a step, and once why it failed.
func (t *turn) sealed(ended, more bool, err error) time.Duration {
	switch {
	case errors.Is(err, errSealChanged), err == nil && more:
		return atOnceAgain
	case err == nil:
		t.mem.sealFailed = ""
	case t.mem.sealFailed != err.Error():
		t.mem.sealFailed = err.Error()
		t.Log.Info("what the conversation's file is could not be recorded, so it is not told whether somebody else writes to it", "reason", err.Error())
	}
	if err != nil && ended {
		return unknownRequeue
	}
	return 0
}

// errSealChanged: another session wrote to the record meanwhile.
var errSealChanged = errors.New("the record of the conversation has changed meanwhile")

// saveSeal replaces what is on record of the conversation, if that is still what it was.
func (t *turn) saveSeal(id string, was, next *seal.Seal) error {
	t.sealing.Lock()
	defer t.sealing.Unlock()
	if now := t.sealOf(id); (now == nil) != (was == nil) || now != nil && now.Brief() != was.Brief() {
		return errSealChanged
	}
	return next.Save(t.sealPath(id))
}

// sealEnd closes the record before the session forgets its launch.
func (t *turn) sealEnd() {
	s := t.sealOf(t.status.ConversationID)
	if s == nil || s.Closed || s.Owner != string(t.Object.GetUID()) || t.mem.comparison != nil && t.mem.comparison.Altered != "" {
		return
	}
	next, more, err := *s, true, error(nil)
	for more && err == nil {
		more, err = next.Extend(compareStep, t.now())
	}
	if next.Closed = true; err == nil {
		err = t.saveSeal(t.status.ConversationID, s, &next)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Log.Info("that the conversation has ended could not be recorded", "reason", err.Error())
	}
}

// unseal lets what the harness left behind have written until it was ended just now.
func (t *turn) unseal() {
	s := t.sealOf(t.status.ConversationID)
	if s == nil || !s.Closed || s.Owner != string(t.Object.GetUID()) {
		return
	}
	next := *s
	next.Closed = false
	if err := t.saveSeal(t.status.ConversationID, s, &next); err != nil {
		t.Log.Info("that the conversation was written to until now could not be recorded", "reason", err.Error())
	}
}

// reapSeals removes what is on record of files that are gone, of sessions that are too.
func (e *Engine) reapSeals() error {
	names, err := filepath.Glob(e.sealPath("*"))
	for _, name := range names {
		s, loadErr := seal.Load(name)
		if loadErr != nil || s == nil || e.KnownUID == nil || e.KnownUID(s.Owner) {
			continue
		}
		if _, statErr := os.Lstat(s.Path); errors.Is(statErr, fs.ErrNotExist) {
			err = errors.Join(err, os.Remove(name))
		}
	}
	return err
}

// sealDue reports that the conversation's file has just been left alone by its harness, or
// when that is to be looked for.
func (t *turn) sealDue() (due bool, wait time.Duration) {
	id, l := t.status.ConversationID, t.status.Launch
	if l == nil || !l.Confirmed || !t.traits().Appends || !harness.ValidConversationID(id) || t.sight.Holder == HolderUnknown || t.sight.Pane.Dying {
		return false, 0
	}
	if t.sight.Holder == HolderLiveOurs {
		return t.state.Ready && t.state.Activity == harness.ActivityIdle && t.mem.progress.Pasted.IsZero() && t.state.ConversationID == id, 0
	}
	// What another session goes on with by now is not ours to close.
	if s := t.sealOf(id); s != nil && (s.Closed || s.Owner != string(t.Object.GetUID())) || t.mem.comparison != nil && t.mem.comparison.Altered != "" {
		return false, 0
	}
	if left := settleFor - t.now().Sub(t.mem.endedSince); t.mem.swept != l.ID && left > 0 {
		return false, left
	}
	return true, 0
}

// reopen lets a harness that is about to be started write to its conversation.
func (t *turn) reopen() error {
	t.mem.comparison = nil
	for {
		s := t.sealOf(t.status.ConversationID)
		if s == nil {
			return nil
		}
		next := *s
		next.Closed, next.Owner = false, string(t.Object.GetUID())
		if err := t.saveSeal(t.status.ConversationID, s, &next); !errors.Is(err, errSealChanged) {
			return err
		}
	}
}

// comparedAs says whether the conversation that would be resumed is to be compared first, and
// how it is not what its harness left. What was found counts until the file changes.
func (t *turn) comparedAs(resumes bool) (uncompared bool, altered string) {
	if !resumes {
		return false, ""
	}
	s, c := t.sealOf(t.conversationToResume()), t.mem.comparison
	switch {
	case s == nil:
		return false, ""
	case c == nil || !c.Of(*s) || !c.Done || !t.compared && !c.Stands(), t.accepts(c):
		return true, ""
	case c.Altered != "":
		return false, t.tellAltered(s, c)
	}
	return false, ""
}

// accepts reports that a person accepted the file as it was compared.
func (t *turn) accepts(c *seal.Check) bool {
	return c.Altered != "" && c.Whole != "" && t.Object.GetAnnotations()[api.AcceptConversationAnnotation] == c.Whole
}

// tellAltered says what a person does first, and last the path, which may be long.
func (t *turn) tellAltered(s *seal.Seal, c *seal.Check) string {
	if c.Unread {
		return "whether the conversation that is to be resumed is as the harness left it is not known: make it readable for the agent, which looks again by itself; " +
			text.OneLine(c.Path) + ": " + text.OneLine(c.Altered)
	}
	said := "somebody else wrote to the conversation that is to be resumed: look at it, "
	if c.Whole != "" {
		said += fmt.Sprintf("and accept it as it is with: kubectl annotate --overwrite %s %s -n %s %s=%s ; or ", strings.ToLower(t.Object.SessionKind()),
			t.Object.GetName(), t.Object.GetNamespace(), api.AcceptConversationAnnotation, c.Whole)
	}
	return said + fmt.Sprintf("move it away, and a fresh conversation is begun. It is not as the harness left it at %s: %s: %s",
		s.At.UTC().Format(time.RFC3339), text.OneLine(c.Altered), text.OneLine(c.Path))
}

// compareConversation compares the conversation's file with its seal, a step at a time. One
// that another session writes just now is not looked at.
func (t *turn) compareConversation(ctx context.Context) (again bool, wait time.Duration, err error) {
	id := t.conversationToResume()
	if problem, err := t.claim(ctx); problem != nil || err != nil {
		t.inTheWay(problem)
		return false, unknownRequeue, err
	}
	s, c := t.sealOf(id), t.mem.comparison
	if s == nil {
		return true, 0, nil
	}
	if c != nil && c.Of(*s) && c.Done && c.Stands() && t.accepts(c) {
		next, err := c.Accept(t.now())
		if err == nil {
			err = t.saveSeal(id, s, next)
		}
		if err != nil {
			return false, time.Second, t.fail("recording that the conversation is accepted", err)
		}
		t.Log.Info("a conversation that somebody else wrote to is accepted", "file", c.Path, "digest", c.Whole)
		s, c = next, nil // and compared with what was accepted
	}
	if c == nil || !c.Of(*s) || c.Done && !t.compared || !c.Stands() {
		path := s.Path
		if a, ok := t.launch.adapter.(harness.Transcripts); ok {
			path = a.Found(path, id)
		}
		c = seal.Compare(*s, path)
		t.mem.comparison = c
	}
	if c.Step(compareStep); !c.Done {
		return false, atOnceAgain, nil
	}
	t.compared = true
	return true, 0, nil
}

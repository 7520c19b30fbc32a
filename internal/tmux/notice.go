package tmux

import (
	"context"
	"fmt"
	"regexp"
)

var (
	noticeCode = regexp.MustCompile(`^[a-z0-9-]{0,40}$`)
	noticeText = regexp.MustCompile(`^[A-Za-z0-9 ,:()-]{0,100}$`)
)

// Notice shows text at the right end of the session's status line, to whoever is attached,
// until another one takes its place; "" takes it away, and what the server's own options say
// is back: an option that a person has set on that very session is lost. code names it in Session.Notice: lower-case letters, digits and "-", at most 40. text
// holds letters, digits, blanks and ",:()-", at most 100 characters: nothing that tmux could
// take for a format. Errors of the server are *UnknownError; showing it twice is no harm.
func (s *Server) Notice(ctx context.Context, t Target, code, text string) (Result, error) {
	const op = "notice"
	if err := t.validate(op, false); err != nil {
		return Result{}, err
	}
	if !noticeCode.MatchString(code) || !noticeText.MatchString(text) || (code == "") != (text == "") {
		return Result{}, fmt.Errorf("tmux %s: the code %q must match %s, and its text %q %s, both or neither empty", op, code, noticeCode, text, noticeText)
	}
	set := func(name, value string) string {
		if code == "" {
			return "set-option -u -t '" + t.session() + "' " + name + " ; "
		}
		return "set-option -t '" + t.session() + "' " + name + " '" + value + "' ; "
	}
	then := set("status-right-length", "102") + set("status-right", " "+text+" ") + set(noticeOption, code) + "display-message -p " + doneMark
	return s.guarded(ctx, op, t, command{"if-shell", "-F", "-t", t.session(), t.sessionGuard(nil, nil), then, t.refusal(t.session(), "-")})
}

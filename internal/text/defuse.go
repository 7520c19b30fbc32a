package text

import (
	"regexp"
	"strings"
)

// What Claude Code 2.1.332 was seen to do because of words anywhere in a text, also in a
// paste that it folds:
//
//   - lookedUp: it reads the file that a word with @ names, wherever it is and without a
//     question, and puts it into the conversation.
//   - keyword: ultrathink tells the model that its user asks for more effort, ultracode
//     that he wants many agents. Two more words of the kind open something at once where
//     they are typed.
//   - picture: a line that is the path of a picture is taken out of the text, together with
//     the empty lines, and the picture is put into the conversation instead, wherever
//     it is and without a question. The carriage return that comes meanwhile is lost.
//     The name of a picture behind other words does nothing, but nor is it worth a
//     more exact rule.
//
// An operator may want the first two, as at the terminal, and gets them.
var (
	lookedUp = strings.NewReplacer("@", `\@`)
	keyword  = regexp.MustCompile(`(?i)(ultra)(\\*(?:think|code|plan|review))`)
	picture  = regexp.MustCompile(`(?i)\.(?:png|jpe?g|gif|webp)[\p{Z}\s"']*(?:$| ["']?(?:/|[a-z]:))`)
	escapes  = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "@", `\@`)
)

// defused is a body in which nothing is looked up and no word is a keyword, and what its
// reader must know to see the body in it that was written.
func defused(body string) (safe, how string) {
	safe = lookedUp.Replace(body)
	var notes []string
	if safe != body {
		notes = append(notes, `\@ stands for an at sign`)
	}
	if keyword.MatchString(safe) {
		safe = keyword.ReplaceAllString(safe, `${1}\${2}`)
		notes = append(notes, `the first backslash behind "ultra" is not the writer's`)
	}
	if noPictures(safe) != safe {
		notes = append(notes, `the last full stop of a line that names a picture is not the writer's`)
	}
	if notes == nil {
		return safe, ""
	}
	return safe, " In it, " + strings.Join(notes, ", and ") + "."
}

// noPictures keeps each line from being the path of a picture, or several paths of which
// one is.
func noPictures(body string) string {
	lines := strings.Split(body, "\n")
	for i, line := range lines {
		lines[i] += pictureEnd(line)
	}
	return strings.Join(lines, "\n")
}

// pictureEnd is what belongs behind a line so that it is no path of a picture, "" for
// nothing. Behind a backslash the first blank would still be part of a path. What looks like
// such an end already gets another one, so that the line can be told from its end.
func pictureEnd(line string) string {
	for strings.HasSuffix(line, " .") {
		line = strings.TrimSuffix(line, " .")
	}
	switch {
	case !picture.MatchString(strings.ReplaceAll(line, `\`, "")):
		return ""
	case strings.HasSuffix(line, `\`):
		return " . ."
	}
	return " ."
}

// quoted is a name or a link in an envelope.
func quoted(s string) string {
	return `"` + keyword.ReplaceAllString(escapes.Replace(s), `${1}\${2}`) + `"`
}

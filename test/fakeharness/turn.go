package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// turns is what the program is at.
type turns struct {
	// busy from the submission of a prompt on, running from the moment when its hook
	// has let it pass.
	busy, running bool
	begun         time.Time
	// asking are the prompts whose hooks have not answered, in order, with the commands
	// between them; the hook of the first one runs.
	asking []queued
	// seq counts turns and interruptions: what a timer of an earlier one brings is
	// dropped.
	seq   int
	queue []queued
	// user and reply are what is not on disk yet.
	user, reply *turn
}

// queued is a message that waits for the end of the turn.
type queued struct {
	text    string
	command bool
}

// submit takes a message from the box: a command, or a prompt.
func (a *app) submit(raw string) {
	text := strings.TrimSpace(raw)
	a.log.event("submit", fields{"text": text, "bytes": len(text), "sha256": sha(text), "busy": a.turns.busy})
	switch {
	case text == "exit" || text == "quit" || text == ":q":
		a.finish(0, "prompt_input_exit")
	case a.modes.has("memory") && strings.HasPrefix(raw, "#"):
		a.log.event("memory", fields{"text": text})
	case isCommand(raw, text):
		switch c := (queued{text, true}); {
		case len(a.turns.asking) > 0:
			a.turns.asking = append(a.turns.asking, c) // it does not overtake them
		case a.turns.busy:
			a.turns.queue = append(a.turns.queue, c)
		default:
			a.command(text)
		}
	case a.modes.has("discard"):
		a.log.event("discarded", nil)
		a.scr.add(entry{marker: "⚠ ", style: styleWarn, text: "You've hit your usage limit · the message was not sent"})
	default:
		a.prompt(text)
	}
}

// isCommand reports whether a message is a shell or a slash command. A blank in
// front protects from the one and not from the other; a second slash in the first
// word makes it text.
func isCommand(raw, text string) bool {
	if strings.HasPrefix(raw, "!") {
		return true
	}
	if !strings.HasPrefix(text, "/") {
		return false
	}
	word := strings.Fields(text)[0]
	return !strings.Contains(word[1:], "/")
}

// slashCommands are the known ones; an unambiguous beginning is completed.
var slashCommands = []string{"/clear", "/exit", "/help", "/quit", "/status"}

func (a *app) command(text string) {
	if strings.HasPrefix(text, "!") {
		a.log.event("shell", fields{"command": text[1:]})
		a.scr.add(entry{marker: "! ", style: styleWarn, text: text[1:] + "\n(a real harness would have run this; nothing was run)"})
		return
	}
	word := strings.Fields(text)[0]
	var matches []string
	for _, c := range slashCommands {
		if strings.HasPrefix(c, word) {
			matches = append(matches, c)
		}
	}
	if len(matches) == 1 {
		word = matches[0]
	}
	a.log.event("command", fields{"command": word})
	switch word {
	case "/exit", "/quit":
		a.finish(0, "prompt_input_exit")
	case "/clear":
		a.clearConversation()
	case "/help":
		a.openMenu("Help")
	case "/status":
		a.scr.add(entry{marker: "  ", style: styleDim, text: "conversation " + a.id + "\nbehaviour " + a.modes.String()})
	default:
		a.scr.add(entry{marker: "  ", style: styleWarn, text: "Unknown command: " + word})
	}
}

// clearConversation goes on with a new conversation under a new id.
func (a *app) clearConversation() {
	a.turns.flush(a)
	a.runHooks("SessionEnd", hookInput{"reason": "clear"}, func(hookResult) {
		a.id = newUUID()
		a.conv = a.store.open(a.cwd, a.id)
		a.log.event("new-id", fields{"id": a.id})
		a.scr.reset(a)
		a.runHooks("SessionStart", hookInput{"source": "clear", "model": a.opts.model}, func(hookResult) {
			a.statusTime = time.Now()
			a.writeSessionFile()
		})
	})
}

// prompt is a message for the agent. The hook runs at once, also when the message
// then waits for the end of the turn.
func (a *app) prompt(text string) {
	if code, ok := a.modes.number("exit-at-prompt"); ok {
		a.finish(code, "other")
		return
	}
	if a.modes.has("crash-at-prompt") {
		crash()
	}
	if a.turns.busy {
		a.conv.enqueue(text)
		a.notice = "queued: " + excerpt(text, 60)
	} else {
		a.beBusy()
	}
	a.turns.asking = append(a.turns.asking, queued{text, false})
	if len(a.turns.asking) == 1 {
		a.askHooks()
	}
}

// askHooks runs the hook of the first prompt that waits for it, and then of the
// next, so that prompts and commands keep their order.
func (a *app) askHooks() {
	for len(a.turns.asking) > 0 && a.turns.asking[0].command {
		a.turns.queue = append(a.turns.queue, a.turns.asking[0])
		a.turns.asking = a.turns.asking[1:]
		if !a.turns.running && len(a.turns.asking) == 0 {
			a.nextOrIdle()
		}
	}
	if len(a.turns.asking) == 0 {
		return
	}
	text := a.turns.asking[0].text
	a.runHooks("UserPromptSubmit", hookInput{"prompt": text}, func(r hookResult) {
		a.turns.asking = a.turns.asking[1:]
		switch {
		case r.blocked:
			a.scr.add(entry{marker: "  ", style: styleWarn, text: strings.TrimSpace("operation blocked by hook " + r.reason)})
			if !a.turns.running && len(a.turns.asking) == 0 {
				a.nextOrIdle()
			}
		case a.turns.running:
			a.turns.queue = append(a.turns.queue, queued{text, false})
		default:
			a.beBusy()
			a.startTurn(text)
		}
		a.askHooks()
	})
}

func (a *app) beBusy() {
	a.turns.busy, a.turns.begun = true, time.Now()
	a.turns.seq++
	a.showStatus()
	if d, ok := a.modes.numberOr("indicator-late", 20000); ok {
		a.after(time.Duration(d)*time.Millisecond, func() {})
	}
}

// userLate is when a user's line is on disk at the latest after its submission.
const userLate = 450 * time.Millisecond

// startTurn begins a turn with one user text.
func (a *app) startTurn(text string) {
	a.turns.running = true
	if _, ok := a.modes.take("new-id"); ok {
		a.mintID()
	}
	a.conv.title(text, a.cwd, a.opts.model, a.opts.effort)
	if a.modes.has("burnt-id") {
		crash()
	}
	a.conv.turns = append(a.conv.turns, turn{"user", text})
	a.turns.user = &turn{"user", text}
	a.scr.add(entry{})
	a.scr.add(userEntry(text))
	a.log.event("turn", fields{"text": text, "sha256": sha(text), "number": a.number()})
	a.after(userLate, func() { a.turns.flushUser(a) })
	failed := a.obey(text)
	if a.ending {
		return
	}
	seq := a.turns.seq
	a.callTools(func() {
		if seq != a.turns.seq {
			return
		}
		a.after(a.modes.millisOr("think", 150*time.Millisecond), func() {
			if seq == a.turns.seq {
				a.endTurn(text, failed)
			}
		})
	})
}

// mintID goes on under another id without telling anybody.
func (a *app) mintID() {
	a.turns.flush(a)
	a.id = newUUID()
	a.conv = a.store.open(a.cwd, a.id)
	a.log.event("new-id", fields{"id": a.id})
	a.writeSessionFile()
}

// number is the number of the turn that runs.
func (a *app) number() int {
	n := 0
	for _, t := range a.conv.turns {
		if t.role == "user" {
			n++
		}
	}
	return n
}

// obey applies the lines of a prompt that begin with "fake:". It returns what is
// wrong with them.
func (a *app) obey(text string) (wrong string) {
	for _, l := range strings.Split(text, "\n") {
		list, ok := strings.CutPrefix(strings.TrimSpace(l), "fake:")
		if !ok {
			continue
		}
		given, err := parseModes(list)
		if err != nil {
			return err.Error()
		}
		_ = a.modes.add(list)
		a.log.event("behaviour", fields{"behaviour": a.modes.String()})
		if given.has("no-framing") {
			a.framing, a.parser.framing = false, false
			a.scr.raw("\x1b[?2004l")
		}
		if given.has("crash") {
			crash()
		}
		if code, ok := given.number("exit"); ok && !given.has("exit-after") {
			a.finish(code, "other")
		}
		if given.has("alt-screen") {
			a.scr.enterAlt()
		}
		a.applyNow(given)
	}
	return ""
}

// callTools runs the tool or the question that the behaviours ask for, then then.
func (a *app) callTools(then func()) {
	if tool, ok := a.modes.take("permission-dialog"); ok {
		a.askPermission(firstOf(tool, "Bash"), func(goOn bool) {
			if goOn {
				then()
			}
		})
		return
	}
	if _, ok := a.modes.take("question-dialog"); ok {
		a.askQuestion(then)
		return
	}
	then()
}

// reply is what the program answers to a text: what it received, how long it was,
// and which turn this is.
func reply(text string, number int) string {
	lines := strings.Count(text, "\n") + 1
	unit := "line"
	if lines > 1 {
		unit = "lines"
	}
	return fmt.Sprintf("I received %d bytes in %d %s: “%s”. This is turn %d.", len(text), lines, unit, excerpt(text, 60), number)
}

// endTurn answers.
func (a *app) endTurn(text, wrong string) {
	answer := firstOf(wrong, reply(text, a.number()))
	event, extra := "Stop", hookInput{"last_assistant_message": answer, "stop_hook_active": false}
	if _, ok := a.modes.take("fail-turn"); ok {
		answer = "API Error: 400 the turn failed as asked"
		event, extra = "StopFailure", hookInput{"error": answer, "last_assistant_message": ""}
	} else if word, shown := a.refusal(); word != "" {
		answer = shown
		event, extra = "StopFailure", hookInput{"error": word, "last_assistant_message": shown}
	}
	a.conv.turns = append(a.conv.turns, turn{"assistant", answer})
	a.turns.reply = &turn{"assistant", answer}
	a.scr.add(entry{marker: "● ", markerStyle: styleAccent, text: answer})
	late := a.modes.millisOr("flush-late", 40*time.Millisecond)
	if late == 0 {
		a.turns.flush(a) // on disk by the time that it is told
	}
	a.log.event("reply", fields{"text": answer})
	seq := a.turns.seq
	a.after(late, func() {
		if seq == a.turns.seq || a.turns.reply != nil {
			a.turns.flush(a)
		}
	})
	a.runHooks(event, extra, func(hookResult) {
		if seq == a.turns.seq {
			a.nextOrIdle()
		}
	})
}

// refusal is why the vendor refuses the turn, as Claude Code 2.1.332 was seen to name it to
// its hook and to show it; "" when it does not. That it goes on by itself after the limit
// is not imitated.
func (a *app) refusal() (word, shown string) {
	switch {
	case a.modes.has("no-login"):
		return "authentication_failed", "Please run /login · API Error: 401 OAuth token has expired."
	case a.modes.has("usage-limit") && a.limitEnds.IsZero():
		return "rate_limit", "API Error: Request rejected (429) · This request would exceed your account's rate limit."
	case a.modes.has("usage-limit"):
		return "rate_limit", "You've hit your 5-hour limit · resets " + a.limitEnds.UTC().Format("3:04pm") + " (UTC)"
	}
	return "", ""
}

// flushUser writes the user's line.
func (t *turns) flushUser(a *app) {
	if t.user != nil {
		a.conv.save(*t.user)
		t.user = nil
	}
}

// flush writes everything that is not on disk yet.
func (t *turns) flush(a *app) {
	t.flushUser(a)
	if t.reply != nil {
		a.conv.save(*t.reply)
		t.reply = nil
	}
}

// nextOrIdle begins the turn with what was queued (all prompts up to the next
// command as one text, without a second hook), or goes idle.
func (a *app) nextOrIdle() {
	a.turns.running = false
	for len(a.turns.queue) > 0 && a.turns.queue[0].command {
		c := a.turns.queue[0]
		a.turns.queue = a.turns.queue[1:]
		a.command(c.text)
	}
	n := slices.IndexFunc(a.turns.queue, func(q queued) bool { return q.command })
	if n < 0 {
		n = len(a.turns.queue)
	}
	if n > 0 {
		var texts []string
		for _, q := range a.turns.queue[:n] {
			texts = append(texts, q.text)
		}
		a.turns.queue = a.turns.queue[n:]
		a.turns.flush(a)
		a.beBusy()
		a.startTurn(strings.Join(texts, "\n\n"))
		return
	}
	a.turns.busy = false
	a.showStatus()
	seq := a.turns.seq
	a.after(a.modes.millisOr("idle-after", time.Minute), func() {
		if seq == a.turns.seq && !a.turns.busy && a.dialog == nil && a.ready {
			a.runHooks("Notification", hookInput{"notification_type": "idle_prompt", "message": "The agent is waiting for your input"}, func(hookResult) {})
		}
	})
}

// interrupt ends the turn without a Stop hook.
func (a *app) interrupt() {
	a.log.event("interrupted", nil)
	a.turns.seq++
	a.turns.flush(a)
	a.scr.add(entry{marker: "  ", style: styleWarn, text: "Interrupted · what should be done instead?"})
	a.nextOrIdle()
}

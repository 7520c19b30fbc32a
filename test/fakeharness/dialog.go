package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// dialog is a question that takes all keys while it is open.
type dialog struct {
	kind, title string
	body        string
	options     []string
	selected    int
	// takesText: pasted and typed text becomes the answer.
	takesText bool
	text      string
	// choose is called with the option or, when there is one, the text.
	choose func(option int, text string)
	cancel func()
	// waitingFor is what the session file says while the dialog is open.
	waitingFor string
}

// open shows a dialog, or lets it wait for the one that is open.
func (a *app) open(d *dialog) {
	if a.dialog != nil {
		a.dialogs = append(a.dialogs, d)
		return
	}
	a.dialog = d
	a.showStatus()
	a.log.event("dialog", fields{"kind": d.kind})
}

// closeDialog takes the open dialog away and shows the next.
func (a *app) closeDialog() {
	a.dialog = nil
	if len(a.dialogs) > 0 {
		next := a.dialogs[0]
		a.dialogs = a.dialogs[1:]
		a.open(next)
		return
	}
	a.showStatus()
}

// dialogKey is a key for the open dialog. A carriage return takes what is selected,
// whoever sent it.
func (a *app) dialogKey(k key) {
	d := a.dialog
	if k.kind == keyInterrupt && a.modes.has("ctrl-c-is-yes") {
		a.answer(0)
		return
	}
	switch k.kind {
	case keyUp:
		d.selected = max(0, d.selected-1)
	case keyDown:
		d.selected = min(len(d.options)-1, d.selected+1)
	case keyEnter:
		a.answer(d.selected)
	case keyEscape, keyInterrupt:
		a.log.event("dialog-cancelled", fields{"kind": d.kind})
		a.closeDialog()
		if d.cancel != nil {
			d.cancel()
		}
	case keyPaste, keyRune:
		text := k.text
		if k.kind == keyRune {
			text = string(k.r)
		}
		switch n := int(k.r - '1'); {
		case d.takesText:
			text, _ = clean(text)
			d.text += text
		case k.kind == keyRune && n >= 0 && n < len(d.options):
			a.answer(n)
		default:
			a.log.event("dropped", fields{"kind": d.kind, "bytes": len(text)})
		}
	case keyBackspace:
		if r := []rune(d.text); len(r) > 0 {
			d.text = string(r[:len(r)-1])
		}
	}
}

func (a *app) answer(option int) {
	d := a.dialog
	text := ""
	if d.takesText {
		text = strings.TrimSpace(d.text)
	}
	a.log.event("dialog-answered", fields{"kind": d.kind, "option": d.options[option], "text": text})
	a.closeDialog()
	d.choose(option, text)
}

// openMenu opens a dialog that does nothing and stays until it is closed.
func (a *app) openMenu(title string) {
	a.open(&dialog{
		kind: "menu", title: title, body: "This dialog stays until it is closed with Esc or Enter.",
		options: []string{"Close"}, choose: func(int, string) {}, waitingFor: "dialog open",
	})
}

// startDialog is one of the dialogs that may stand between the start and the
// prompt. Options in ends end the program with the code.
type startDialog struct {
	title, body string
	options     []string
	def         int
	ends        map[int]int
}

var startDialogTable = map[string]startDialog{
	"trust": {
		"Do you trust the files in this folder?", "The agent may read, write and execute files here.",
		[]string{"Yes, I trust this folder", "No, exit"}, 1, map[int]int{1: 1},
	},
	"bypass": {
		"WARNING: running in bypass permissions mode", "The agent will not ask before it runs dangerous commands.",
		[]string{"No, exit", "Yes, I accept"}, 0, map[int]int{0: 1},
	},
	"theme":   {"Choose the text style", "", []string{"Auto", "Dark", "Light"}, 0, nil},
	"api-key": {"Detected a custom API key in your environment", "Do you want to use it?", []string{"Yes", "No (recommended)"}, 1, nil},
	"tools":   {"New tool server found in this project", "", []string{"Use this tool server", "Continue without it"}, 1, nil},
	"update":  {"Update available", "", []string{"Update now", "Skip", "Skip until the next version"}, 0, map[int]int{0: 0}},
	"hooks":   {"Hooks need review", "A hook changed since the last run.", []string{"Review", "Trust all", "Continue without hooks"}, 0, nil},
	"unknown": {"Try the new renderer?", "You can change this later.", []string{"Yes", "Not now"}, 0, nil},
}

func startDialogNames() []string { return slices.Sorted(maps.Keys(startDialogTable)) }

// startDialogs are the names of those that are due.
func (a *app) startDialogs() []string {
	names := a.modes.list("dialogs")
	if a.modes.has("trust-dialog") {
		names = append([]string{"trust"}, names...)
	}
	return slices.DeleteFunc(names, func(n string) bool {
		return n == "trust" && a.trusted() || n == "bypass" && a.settings.SkipDisclaimer
	})
}

// nextStartDialog opens the first of the dialogs, or makes the program ready.
func (a *app) nextStartDialog(names []string) {
	switch {
	case a.picker:
		return
	case len(names) == 0:
		a.becomeReady()
		return
	}
	name := names[0]
	s, ok := startDialogTable[name]
	if !ok {
		a.nextStartDialog(names[1:])
		return
	}
	a.open(&dialog{
		kind: name, title: s.title, body: s.body, options: s.options, selected: s.def,
		choose: func(option int, _ string) {
			if code, ends := s.ends[option]; ends {
				a.finish(code, "other")
				return
			}
			if name == "trust" {
				a.trust()
			}
			a.nextStartDialog(names[1:])
		},
		cancel: func() { a.finish(1, "other") },
	})
}

// pickerKey is a key for the picker of conversations, which waits for a person.
func (a *app) pickerKey(k key) {
	if k.kind == keyEscape || k.kind == keyInterrupt {
		a.finish(0, "other")
	}
}

// askPermission calls a tool: it asks the hooks, then a person, runs the tool and
// reports whether the turn goes on. A refusal by a person interrupts the turn, one by
// a hook does not.
func (a *app) askPermission(tool string, then func(goOn bool)) {
	if !a.opts.mayCall(tool) {
		a.scr.add(entry{marker: "  ", style: styleWarn, text: "No such tool available: " + tool})
		then(true)
		return
	}
	about := hookInput{"tool_name": tool, "tool_input": map[string]string{"command": "touch tool-ran"}, "tool_use_id": "toolu_" + newUUID()}
	run := func() {
		a.log.event("tool-ran", fields{"tool": tool})
		a.scr.add(entry{marker: "● ", markerStyle: styleAccent, text: tool + "(touch tool-ran)\nTOOL RAN"})
		a.runHooks("PostToolUse", about, func(hookResult) { then(true) })
	}
	if a.opts.bypass() {
		run()
		return
	}
	a.runHooks("PermissionRequest", about, func(r hookResult) {
		switch r.decision {
		case "allow":
			run()
			return
		case "deny":
			a.log.event("tool-denied", fields{"tool": tool, "message": r.message})
			a.scr.add(entry{marker: "● ", markerStyle: styleWarn, text: tool + "(touch tool-ran)\nDenied by hook: " + r.message})
			then(true)
			return
		}
		d := &dialog{
			kind: "permission", title: tool + " command", body: "touch tool-ran\n\nDo you want to proceed?",
			options:    []string{"Yes", "Yes, and don't ask again", "No, and tell the agent what to do differently"},
			waitingFor: "permission prompt",
			cancel:     a.interrupt,
		}
		d.choose = func(option int, _ string) {
			if option == len(d.options)-1 {
				a.interrupt()
				return
			}
			run()
		}
		a.open(d)
		a.notifyOf(d)
	})
}

// notifyOf sends the late notification of a dialog that is still open.
func (a *app) notifyOf(d *dialog) {
	a.after(a.modes.millisOr("notify-after", 6400*time.Millisecond), func() {
		if a.dialog == d && !a.ending {
			a.runHooks("Notification", hookInput{"notification_type": "permission_prompt", "message": "The agent needs your permission"}, func(hookResult) {})
		}
	})
}

// questionTool is the tool that asks a person to choose.
const questionTool = "AskUserQuestion"

// askQuestion asks; what is pasted becomes the answer.
func (a *app) askQuestion(then func()) {
	if !a.opts.mayCall(questionTool) {
		a.log.event("no-such-tool", fields{"tool": questionTool})
		a.scr.add(entry{marker: "  ", style: styleWarn, text: "No such tool available: " + questionTool})
		then()
		return
	}
	about := hookInput{"tool_name": questionTool, "tool_input": map[string]string{"question": "Which one?"}, "tool_use_id": "toolu_" + newUUID()}
	a.runHooks("PermissionRequest", about, func(r hookResult) {
		if r.decision == "deny" {
			a.log.event("tool-denied", fields{"tool": questionTool, "message": r.message})
			then()
			return
		}
		d := &dialog{
			kind: "question", title: "Which one?", options: []string{"This one", "That one"}, takesText: true,
			waitingFor: "input needed", cancel: a.interrupt,
		}
		d.choose = func(option int, text string) {
			answer := firstOf(text, d.options[option])
			a.scr.add(entry{marker: "● ", markerStyle: styleAccent, text: fmt.Sprintf("Which one? → %s", excerpt(answer, 100))})
			a.runHooks("PostToolUse", about, func(hookResult) { then() })
		}
		a.open(d)
		a.notifyOf(d)
	})
}

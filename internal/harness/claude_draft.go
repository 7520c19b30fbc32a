package harness

import "strings"

// Draft reads the input box, measured with Claude Code 2.1.332 on 80 by 24 and on 200 by
// 50: idle, busy and resumed. The box is between two rules at the left edge, the upper one
// sometimes with a word in it, and the cursor is in it. It begins with ❯ and a no-break
// space, in shell mode with !, or, when it is higher than there is room, not at all. The
// hint of an empty box is dim but for the character under the cursor. Dialogs, menus, the
// search in the history and the transcript have no such box.
func (claude) Draft(s Screen) Draft {
	rows := screenRows(s.Text)
	top, bottom := claudeBox(rows, s.CursorY)
	if top+1 >= bottom {
		return DraftUnknown
	}
	box := rows[top+1 : bottom]
	switch first := box[0]; {
	case first.at(0).r == '❯' && first.at(1).blank():
	case first.at(0).r == '!' && first.at(1).blank():
		return DraftTyped // what is pasted now would run in a shell
	case first.indented(claudeIndent) && strings.Contains(rows[top].String(), "↑"):
		return DraftTyped
	default:
		return DraftUnknown
	}
	for _, row := range box[1:] {
		if !row.indented(claudeIndent) {
			return DraftUnknown
		}
	}
	atStart := s.CursorX == claudeIndent && s.CursorY == top+1
	if atStart && len(box[0]) > claudeIndent+1 && box[0].at(claudeIndent).reverse {
		box[0][claudeIndent].r = ' ' // of a hint too, what the cursor covers is not dim
	}
	typed, hint := written(box, claudeIndent)
	if typed {
		return DraftTyped
	}
	if hint || atStart && len(box) == 1 {
		return DraftEmpty
	}
	return DraftTyped // blanks or empty lines
}

// Rows are those of the box that Draft reads.
func (claude) Rows(s Screen) []string {
	rows := screenRows(s.Text)
	top, bottom := claudeBox(rows, s.CursorY)
	if top+1 >= bottom || !rows[top+1].at(1).blank() {
		return nil
	}
	return boxRows(rows[top+1:bottom], "❯", 0, claudeIndent)
}

// claudeIndent is the width of the prompt, and the indentation of the box's other rows.
const claudeIndent = 2

// claudeBox are the rules around row y, -1 and -1 when there are none.
func claudeBox(rows []screenRow, y int) (top, bottom int) {
	if y >= len(rows) {
		return -1, -1
	}
	for top = y; top >= 0 && !claudeRule(rows[top]); {
		top--
	}
	for bottom = y; bottom < len(rows) && !claudeRule(rows[bottom]); {
		bottom++
	}
	if top < 0 || bottom == len(rows) {
		return -1, -1
	}
	return top, bottom
}

func claudeRule(r screenRow) bool {
	return r.at(0).r == '─' && r.at(1).r == '─' && r.at(2).r == '─'
}

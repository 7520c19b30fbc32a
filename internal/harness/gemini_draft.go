package harness

// geminiHint is what stands behind the cursor in an empty box. It is not dim, and its colour
// is the theme's.
const geminiHint = " Type your message or @path/to/file"

// Draft reads the input box, measured with Gemini CLI 0.61.0 on 80 by 24 and on 200 by 50:
// idle, busy and resumed. The box begins in the second column with >, in shell mode with !,
// its other rows are indented by three columns, and the cursor, a block that it draws, is
// in it. A dialog leaves the cursor below everything.
func (gemini) Draft(s Screen) Draft {
	const indent = geminiIndent
	rows := screenRows(s.Text)
	y := promptOver(rows, s.CursorY, indent)
	if y < 0 || s.CursorX < indent {
		return DraftUnknown
	}
	row := rows[y]
	if !row.at(0).blank() || !row.at(2).blank() {
		return DraftUnknown
	}
	switch row.at(1).r {
	case '>', '*': // the latter where nothing is asked for
	case '!':
		return DraftTyped // what is pasted now would run in a shell
	default:
		return DraftUnknown
	}
	text := row.from(indent)
	if s.CursorY > y || s.CursorX > indent || len(text) > 0 && !text[0].blank() {
		return DraftTyped
	}
	// The cursor stands on a blank at the beginning.
	if text.from(1).String() == geminiHint {
		return DraftEmpty
	}
	return DraftUnknown
}

// geminiIndent is the width of the prompt, and the indentation of the box's other rows.
const geminiIndent = 3

// Rows are those of the box that Draft reads.
func (gemini) Rows(s Screen) []string {
	rows := screenRows(s.Text)
	y := promptOver(rows, s.CursorY, geminiIndent)
	if y < 0 {
		return nil
	}
	return boxRows(rows[y:min(s.CursorY+1, len(rows))], ">*", 1, geminiIndent)
}

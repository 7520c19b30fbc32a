package harness

// Draft reads the input box, measured with Codex 0.171.0 on 80 by 24 and on 200 by 50:
// idle, busy and resumed. The box has no frame: it begins at the left edge with a bold ›, in
// shell mode with !, its other rows are indented, and the cursor is in it. The hint of an
// empty box is dim. The › of a dialog is drawn inverted, that of the transcript dim.
func (codex) Draft(s Screen) Draft {
	const indent = codexIndent
	rows, y := codexBox(s)
	if y < 0 {
		return DraftUnknown
	}
	prompt := rows[y].at(0)
	if !prompt.bold || prompt.dim || prompt.reverse || !rows[y].at(1).blank() || s.CursorX < indent {
		return DraftUnknown
	}
	switch prompt.r {
	case '›':
	case '!':
		return DraftTyped // what is pasted now would run in a shell
	default:
		return DraftUnknown
	}
	typed, hint := written(rows[y:min(s.CursorY+1, len(rows))], indent)
	if typed {
		return DraftTyped
	}
	switch atStart := s.CursorX == indent && s.CursorY == y; {
	case hint && atStart:
		return DraftEmpty
	case hint || atStart:
		return DraftUnknown
	}
	return DraftTyped // blanks or empty lines
}

// codexIndent is the width of the prompt, and the indentation of the box's other rows.
const codexIndent = 2

// Rows are those of the box that Draft reads.
func (codex) Rows(s Screen) []string {
	rows, y := codexBox(s)
	if y < 0 || !rows[y].at(0).bold {
		return nil
	}
	return boxRows(rows[y:min(s.CursorY+1, len(rows))], "›", 0, codexIndent)
}

// codexBox are the rows of a screen and the one in which the box begins, -1 where there is
// none. In a box that is higher than there is room, the prompt stands before the first row
// that is seen, and a dim arrow behind it.
func codexBox(s Screen) (rows []screenRow, y int) {
	rows = screenRows(s.Text)
	if y = promptOver(rows, s.CursorY, codexIndent); y < 0 {
		return nil, -1
	}
	if n := len(rows[y]) - 1; rows[y][n].r == '↑' && rows[y][n].dim {
		rows[y] = rows[y][:n].trimmed()
	}
	return rows, y
}

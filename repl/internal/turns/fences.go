package turns

import (
	"cmp"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/repl/internal/loopsession"
	"github.com/rlmhq/rlm/tiers"
)

// fenced is what the fences of a reply hold, and what stands outside of them.
type fenced struct {
	blocks []loopsession.Block
	// others are the languages of code that nothing runs.
	others []string
	// outside is the text outside of all fences, after the part of it behind the last block.
	outside, after string
	// isOpen reports that the last block lacks its end.
	isOpen bool
}

// findFences reads the fences of a reply.
func findFences(reply string) (found fenced) {
	lines := strings.Split(reply, "\n")
	marks := marksOf(lines)
	var text strings.Builder
	steps, after := maxSteps, 0
	for i := 0; i < len(lines); i++ {
		before, opening := openingOf(lines[i], marks[i])
		text.WriteString(before + "\n")
		if opening == nil {
			continue
		}

		end, source, isOpen := readFence(lines, marks, i, opening, &steps)
		i = end
		block, ok, other := blockOf(opening.info, source)
		switch {
		case ok:
			found.blocks = append(found.blocks, block)
			found.isOpen, after = isOpen, text.Len()
		case other != "":
			found.others = append(found.others, other)
		}
	}

	found.outside, found.after = text.String(), text.String()[after:]
	return found
}

// readFence returns the last line of the block that line i opens, what is in it, and
// whether its end is missing.
func readFence(
	lines []string, marks []*mark, i int, opening *mark, steps *int,
) (end int, source string, isOpen bool) {
	if opening.isWhole {
		return i, opening.source, false
	}
	if opening.indent > maxIndent {
		end = findIndentedClosing(lines, i, opening, steps)
	} else {
		marks[i] = opening
		end = findClosing(marks, i, steps)
	}

	inner := lines[i+1 : min(end, len(lines))]
	if opening.indent > 0 {
		inner = cutIndent(inner, opening.indent)
	}
	source = strings.Join(inner, "\n")
	if end == len(lines) { // the marks may stand behind the last line of code
		trimmed := strings.TrimRight(source, " \t\n")
		source = strings.TrimSuffix(trimmed, opening.marks)
		isOpen = source == trimmed
	}
	return end, opening.source + source, isOpen
}

// cutIndent returns lines without the indentation of their fence, as far as they have it.
func cutIndent(lines []string, indent int) []string {
	cut := make([]string, len(lines))
	for i, line := range lines {
		spaces := len(line) - len(strings.TrimLeft(line, " \t"))
		cut[i] = line[min(spaces, indent):]
	}
	return cut
}

// mark is a line that opens or closes a block: its marks, and what stands behind them.
type mark struct {
	marks, info string
	// indent is how many spaces and tabs stand before the marks.
	indent int
	// source is code on the line itself, the whole block if isWhole.
	source  string
	isWhole bool
}

// maxIndent is how many spaces may stand before the marks of any fence. Marks further in
// open a block only if they name a language that runs.
const maxIndent = 3

// marksOf are the marks of lines, nil for a line that has none.
func marksOf(lines []string) []*mark {
	all := make([]*mark, len(lines))
	for i, line := range lines {
		all[i] = markOf(line)
	}
	return all
}

// markOf is the mark of a line: at most three spaces, at least three backticks or
// tildes, and no backtick behind them.
func markOf(line string) *mark {
	marks := strings.TrimLeft(line, " ")
	indent := len(line) - len(marks)
	if marks == "" || indent > maxIndent || marks[0] != '`' && marks[0] != '~' {
		return nil
	}
	info := strings.TrimLeft(marks, marks[:1])
	n := len(marks) - len(info)
	if n < 3 || strings.Contains(info, "`") {
		return nil
	}

	return &mark{marks: marks[:n], info: strings.TrimSpace(info), indent: indent}
}

var (
	// lateOpening opens a block behind words, or further in than other fences.
	lateOpening = lazyregexp.New("^(.*?)([`~]{3,})[ \t]*([A-Za-z_0-9]+)[ \t]*$")
	// wholeFence is a block on one line.
	wholeFence = lazyregexp.New("^[ \t]*(`{3,})[ \t]*([A-Za-z_0-9]*)[ \t]*([^`]+?)`{3,}[ \t]*$")
)

// openingOf returns the mark of a line outside of blocks that opens one, nil if it opens
// none, and the text before it.
func openingOf(line string, plain *mark) (before string, opening *mark) {
	if plain != nil {
		return "", withCode(plain)
	}
	if m := wholeFence.FindStringSubmatch(line); m != nil {
		source := m[3]
		if _, runs := languages[strings.ToLower(m[2])]; !runs {
			source = m[2] + source
		}
		if looksLikePython(source) {
			return "", &mark{marks: m[1], source: source, isWhole: true}
		}
	}

	m := lateOpening.FindStringSubmatch(line)
	if len(m) == 0 || strings.Contains(m[1], "`") {
		return line, nil
	}
	if _, runs := languages[strings.ToLower(m[3])]; !runs {
		return line, nil
	}
	indent := len(line) - len(strings.TrimLeft(line, " \t"))
	if strings.TrimSpace(m[1]) != "" {
		indent = 0
	}
	return m[1], &mark{marks: m[2], info: m[3], indent: indent}
}

// attributes stand behind the language of a fence: title="count.py" linenums=1.
var attributes = lazyregexp.New(`^(\w+=("[^"]*"|'[^']*'|\S+)\s*)+$`)

// withCode moves code that stands behind the language of a fence into the block.
func withCode(m *mark) *mark {
	language, rest, _ := strings.Cut(m.info, " ")
	_, runs := languages[strings.ToLower(language)]
	if !runs || !looksLikePython(rest) || attributes.MatchString(rest) {
		return m
	}
	moved := *m
	moved.info, moved.source = language, strings.TrimSpace(rest)+"\n"
	return &moved
}

// maxSteps is how many lines of a reply are looked at for the ends of blocks that hold
// others. After that the next mark that may end a block does: a flood of blocks must
// not take quadratic time.
const maxSteps = 100_000

// findClosing returns the line that closes the fence opened at line i, len(lines) if none
// does: the reply was cut there, or a stop sequence ate it. Code may hold a text
// with fences in it; an inner fence that names its language is closed first,
// unless that leaves the outer one open.
func findClosing(lines []*mark, i int, steps *int) int {
	depth, plain := 0, len(lines)
	for j := i + 1; j < len(lines); j++ {
		if *steps--; *steps < 0 && plain < len(lines) {
			break
		}
		m := lines[j]
		if m == nil || m.marks[0] != lines[i].marks[0] || len(m.marks) < len(lines[i].marks) {
			continue
		}

		if m.info != "" {
			if _, runs := languages[word(m.info)]; runs && plain < len(lines) {
				break // another block begins: the inner fence was none
			}
			depth++
			continue
		}

		if depth == 0 {
			return j
		}
		plain = min(plain, j)
		depth--
	}

	return plain
}

// findIndentedClosing is findClosing for marks that stand further in: the marks of the end
// do, too.
func findIndentedClosing(lines []string, i int, opening *mark, steps *int) int {
	for j := i + 1; j < len(lines) && *steps > 0; j++ {
		*steps--
		line := strings.TrimSpace(lines[j])
		if len(line) >= len(opening.marks) && strings.Trim(line, opening.marks[:1]) == "" {
			return j
		}
	}
	return len(lines)
}

// word is the language that a fence names.
func word(info string) string {
	fields := strings.FieldsFunc(info, func(r rune) bool { return strings.ContainsRune(" \t,{}:", r) })
	if len(fields) == 0 {
		return ""
	}
	return strings.ToLower(strings.TrimPrefix(fields[0], "."))
}

// blockOf returns the code of a block, false if it has none that runs. Then other is the
// language of the code in it, empty for data.
func blockOf(info, source string) (block loopsession.Block, ok bool, other string) {
	if strings.TrimSpace(source) == "" {
		return loopsession.Block{}, false, ""
	}
	name := word(info)
	language, known := languages[name]
	if !known && name == "" && looksLikePython(source) {
		language, known = tiers.Python, true
	}

	switch {
	case known && language == tiers.Python && otherMeaning.MatchString(source):
		known, other = false, cmp.Or(guessLanguage(source), "another language")
	case known && language == tiers.Python && strings.HasPrefix(strings.TrimSpace(source), ">>> "):
		source = dropPrompts(source)
	case known || dataWords[name]:
	case name == "":
		other = guessLanguage(source)
	default:
		other = clipWord(name)
	}
	return loopsession.Block{Language: language, Source: source}, known, other
}

// clipWord returns a name of a model's as it is told again, on one line and bounded.
func clipWord(name string) string { return onOneLine(name[:min(len(name), 40)]) }

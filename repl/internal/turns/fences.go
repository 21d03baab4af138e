package turns

import (
	"cmp"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/repl/internal/loopsession"
	"github.com/rlmhq/rlm/tiers"
)

// fenced is the content of a reply's fences, and the text outside of them.
type fenced struct {
	blocks []loopsession.Block
	// others are the languages of code that cannot run here.
	others []string
	// outside is the text outside of all fences; after is its part after the last block.
	outside, after string
	// isOpen reports that the last block has no end.
	isOpen bool
}

// findFences finds the fences of a reply.
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

// readFence returns the index of the last line of the block opened on line i, the block's
// content, and whether its end is missing.
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
	if end == len(lines) { // the marks may follow the last line of code
		trimmed := strings.TrimRight(source, " \t\n")
		source = strings.TrimSuffix(trimmed, opening.marks)
		isOpen = source == trimmed
	}
	return end, opening.source + source, isOpen
}

// cutIndent returns lines without the indentation of their fence, as far as they share it.
func cutIndent(lines []string, indent int) []string {
	cut := make([]string, len(lines))
	for i, line := range lines {
		spaces := len(line) - len(strings.TrimLeft(line, " \t"))
		cut[i] = line[min(spaces, indent):]
	}
	return cut
}

// mark is a line that opens or closes a block: its marks, and the text after them.
type mark struct {
	marks, info string
	// indent is the number of spaces and tabs before the marks.
	indent int
	// source is code on the line itself; if isWhole, it is the whole block.
	source  string
	isWhole bool
}

// maxIndent is how many spaces may precede the marks of any fence. Marks indented further open a
// block only if they name a language that runs.
const maxIndent = 3

// marksOf returns the marks of lines, nil for lines without one.
func marksOf(lines []string) []*mark {
	all := make([]*mark, len(lines))
	for i, line := range lines {
		all[i] = markOf(line)
	}
	return all
}

// markOf returns the mark of a line: at most three spaces, at least three backticks or tildes,
// and no backtick after them.
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
	// lateOpening matches a block that opens after words, or is indented further than other
	// fences.
	lateOpening = lazyregexp.New("^(.*?)([`~]{3,})[ \t]*([A-Za-z_0-9]+)[ \t]*$")
	// wholeFence matches a block on one line.
	wholeFence = lazyregexp.New("^[ \t]*(`{3,})[ \t]*([A-Za-z_0-9]*)[ \t]*([^`]+?)`{3,}[ \t]*$")
)

// openingOf returns the mark of a line outside of blocks that opens one, or nil, and the text
// before the mark.
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

// attributes follow the language of a fence: title="count.py" linenums=1.
var attributes = lazyregexp.New(`^(\w+=("[^"]*"|'[^']*'|\S+)\s*)+$`)

// withCode moves code that follows the language of a fence into the block.
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

// maxSteps is how many lines of a reply are examined to find the ends of nested blocks. After
// that, the next mark that may end a block ends it: a flood of blocks must not take quadratic
// time.
const maxSteps = 100_000

// findClosing returns the line that closes the fence opened at line i, or len(lines) if none
// does: the reply was truncated there, or a stop sequence removed it. Code may contain text with
// fences in it; an inner fence that names its language is closed first, unless that leaves the
// outer one open.
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
				break // another block begins: the inner line was not a fence
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

// findIndentedClosing is findClosing for marks that are indented further: the closing marks are,
// too.
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

// word returns the language that a fence names.
func word(info string) string {
	fields := strings.FieldsFunc(info, func(r rune) bool { return strings.ContainsRune(" \t,{}:", r) })
	if len(fields) == 0 {
		return ""
	}
	return strings.ToLower(strings.TrimPrefix(fields[0], "."))
}

// blockOf returns the code of a block, or false if it cannot run here. Then other is the
// language of the code, or "" for data.
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

// clipWord returns a name from a model for display to it, on one line and bounded.
func clipWord(name string) string { return onOneLine(name[:min(len(name), 40)]) }

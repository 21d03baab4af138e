package turns

import (
	"regexp"
	"strings"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/tiers"
)

// languages of fences, by what stands behind the marks. Another word is no code.
var languages = map[string]tiers.Language{
	"repl":      tiers.Python,
	"python":    tiers.Python,
	"py":        tiers.Python,
	"python3":   tiers.Python,
	"py3":       tiers.Python,
	"ipython":   tiers.Python,
	"tool_code": tiers.Python,
	"go":        tiers.Go,
	"golang":    tiers.Go,
}

// findFences returns the code in fences, the text outside of all fences, and whether
// there was a fence with code at all.
func findFences(reply string) (blocks []repl.Block, outside string, code bool) {
	lines := strings.Split(reply, "\n")
	marks := marksOf(lines)
	var text strings.Builder
	steps := maxSteps
	for i := 0; i < len(lines); i++ {
		before, opening := openingOf(lines[i], marks[i])
		text.WriteString(before + "\n")
		if opening == nil {
			continue
		}

		end, source := readFence(lines, marks, i, opening, &steps)
		if block, ok := blockOf(opening.info, source); ok {
			blocks, code = append(blocks, block), true
		}
		i = end
	}
	return blocks, text.String(), code
}

// readFence returns the last line of the block that line i opens, and what is in it.
func readFence(
	lines []string, marks []*mark, i int, opening *mark, steps *int,
) (end int, source string) {
	if opening.isWhole {
		return i, opening.source
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
		source = strings.TrimSuffix(strings.TrimRight(source, " \t\n"), opening.marks)
	}
	return end, opening.source + source
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
	lateOpening = regexp.MustCompile("^(.*?)([`~]{3,})[ \t]*([A-Za-z_0-9]+)[ \t]*$")
	// wholeFence is a block on one line.
	wholeFence = regexp.MustCompile("^[ \t]*(`{3,})[ \t]*([A-Za-z_0-9]*)[ \t]*([^`]+?)`{3,}[ \t]*$")
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
var attributes = regexp.MustCompile(`^(\w+=("[^"]*"|'[^']*'|\S+)\s*)+$`)

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

func blockOf(info, source string) (repl.Block, bool) {
	if strings.TrimSpace(source) == "" {
		return repl.Block{}, false
	}
	name := word(info)
	language, known := languages[name]
	if !known && name == "" && looksLikePython(source) {
		language, known = tiers.Python, true
	}

	return repl.Block{Language: language, Source: source}, known
}

// elements are the marks of blocks that are none of Markdown's, each at a line's start:
// elements that name code, two backticks, and three quotes.
var elements = []*regexp.Regexp{
	regexp.MustCompile(`(?is)(?:^|\n)[ \t]*<code\b[^>\n]*>(.*?)(?:</code>|$)`),
	regexp.MustCompile(`(?is)(?:^|\n)[ \t]*<python\b[^>\n]*>(.*?)(?:</python>|$)`),
	regexp.MustCompile(`(?is)(?:^|\n)[ \t]*<tool_code\b[^>\n]*>(.*?)(?:</tool_code>|$)`),
	regexp.MustCompile("(?s)(?:^|\n)``[ \t]*(?:python|py|repl)?[ \t]*\n(.*?)(?:\n``[ \t]*(?:\n|$)|$)"),
	regexp.MustCompile("(?s)(?:^|\n)'''[ \t]*(?:python|py|repl)?[ \t]*\n(.*?)(?:\n'''[ \t]*(?:\n|$)|$)"),
}

// findElements returns the code between the first of elements that a text has, and the
// text outside of it.
func findElements(text string) (blocks []repl.Block, outside string) {
	for _, element := range elements {
		for _, found := range element.FindAllStringSubmatch(text, -1) {
			source := strings.Trim(found[1], "\n")
			if block, ok := blockOf("", source); ok {
				blocks = append(blocks, block)
			}
		}
		if len(blocks) > 0 {
			return blocks, element.ReplaceAllString(text, "\n")
		}
	}
	return nil, text
}

package turns

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/internal/loopsession"
	"github.com/rlmhq/rlm/repl/internal/pysyntax"
	"github.com/rlmhq/rlm/tiers"
)

// piece is code in a reply, or a call of a tool.
type piece struct {
	block loopsession.Block
	// begin and end are its range in the text outside of the fences.
	begin, end int
	// isOpen reports that the end of the piece is missing, isOutside that no fence surrounds it.
	isOpen, isOutside bool
	// isUnknown reports that the piece cannot run, because of its language or its tool.
	isUnknown      bool
	language, tool string
	// answer is an answer in text that replaces a call.
	answer string
	// isNameless reports that the piece is an object with code but without a tool's name.
	isNameless bool
}

// findFences finds the fences of a reply, and the text outside of them.
func findFences(reply string) (found []piece, outside string) {
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

		end, source, isOpen := readFence(lines, marks, i, opening, &steps)
		i = end
		info, source := unwrapFence(opening.info, source)
		if calls := findFencedCalls(info, source); len(calls) > 0 {
			for _, p := range calls {
				if p.answer != "" && !p.isUnknown {
					text.WriteString(p.answer + "\n")
					continue
				}
				p.begin, p.end, p.isOpen = text.Len(), text.Len(), isOpen
				found = append(found, p)
			}
			continue
		}
		block, ok, other := blockOf(info, source)
		p := piece{block: block, begin: text.Len(), end: text.Len(), isOpen: isOpen}
		if !ok {
			p.isUnknown, p.language = true, other
		}
		if ok || other != "" {
			found = append(found, p)
		}
	}

	return found, text.String()
}

// findFencedCalls returns the calls that are the whole content of a fence. In a Python fence, an
// object without the name of a tool is a value.
func findFencedCalls(info, source string) []piece {
	name := word(info)
	_, runs := languageOf(name)
	if !runs && !dataWords[name] && name != "" && !slices.Contains(anyCode, name) {
		return nil
	}
	source = strings.TrimSpace(source)
	if at := texts.FindToolCalls(source); len(at) == 1 && at[0][1]-at[0][0] == len(source) {
		source = strings.TrimSpace(source[at[0][2]:at[0][3]])
	}
	all, length := readBare("", source)
	if length == 0 || length < len(source) {
		return nil
	}

	var found []piece
	for _, c := range all {
		p := c.piece(0, len(source))
		p.isNameless = c.tool == ""
		if runs && p.isNameless || p.isUnknown && !slices.Contains(anyCode, name) {
			return nil
		}
		found = append(found, p)
	}
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
		if isPython(opening.info) {
			if stop := findStop(lines, marks, i, steps); stop > 0 {
				source = strings.Join(cutIndent(lines[i+1:stop], opening.indent), "\n")
				if reopens(marks[stop]) { // joined marks may close one block and open the next
					reopened := *marks[stop]
					reopened.marks = reopened.marks[:3]
					marks[stop] = &reopened
					stop--
				}
				return stop, opening.source + source, false
			}
		}
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
		if before := len(lines) - countProse(inner); isOpen && isPython(opening.info) && before < end {
			end = before
			source = strings.Join(inner[:before-i-1], "\n")
		}
	}
	return end, opening.source + source, isOpen
}

// isPython reports whether the text after the marks of a fence names Python.
func isPython(info string) bool {
	language, runs := languageOf(word(info))
	return runs && language == tiers.Python
}

// reopens reports whether a mark opens a block of Python.
func reopens(m *mark) bool { return m != nil && m.info != "" && isPython(m.info) }

// stopLine matches a line that models write at the end of a block in place of its marks.
var stopLine = lazyregexp.New("^[ \t]*(?:``?|</(?:repl|code|python)>)[ \t]*$")

// findStop returns the line that ends the block of Python opened at line i in place of a fence, or
// -1: another block opens, a tag closes, a sentence follows the marks, or the marks differ. Such a
// line is not Python, except in a string. A fence in a string is skipped.
func findStop(lines []string, marks []*mark, i int, steps *int) int {
	other, tries, isBehind := -1, 0, false
	for j := i + 1; j < len(lines) && *steps > 0 && tries < maxTries; j++ {
		*steps--
		m := marks[j]
		closes := m != nil && m.info == ""
		if closes && m.marks[0] == marks[i].marks[0] && len(m.marks) >= len(marks[i].marks) {
			if tries++; isInText(strings.Join(lines[i+1:j], "\n")) {
				isBehind = true
				continue
			}
			if isBehind {
				return j
			}
			return -1
		}
		isStop := reopens(m) || stopLine.MatchString(lines[j]) || m != nil && prose.MatchString(m.info)
		if !isStop && (!closes || other > 0) {
			continue
		}

		tries++
		switch {
		case isInText(strings.Join(lines[i+1:j], "\n")):
		case isStop:
			return j
		default:
			other = j
		}
	}
	return other
}

// isInText reports whether code ends inside a multi-line string.
func isInText(source string) bool {
	for at := 0; at < len(source); at++ {
		switch source[at] {
		case '"', '\'':
			isLong := strings.HasPrefix(source[at:], strings.Repeat(source[at:at+1], 3))
			if isLong && pysyntax.StringEnd(source, at) < 0 {
				return true
			}
			at = skipText(source, at) - 1
		case '#':
			at = skipText(source, at) - 1
		}
	}
	return false
}

// prose matches a sentence.
var prose = lazyregexp.New(`^[A-Z][\pL'’,-]*(?: [\pL\d'’"“”(),;:.%$-]+){2,}[.!?:]$`)

// countProse counts the lines of prose at the end of unclosed code, with the blank line before
// them.
func countProse(lines []string) int {
	n := 0
	for i, line := range slices.Backward(lines) {
		line = strings.TrimSpace(line)
		switch {
		case line == "" && i < len(lines)-1:
			n = len(lines) - i
		case line == "":
		case !prose.MatchString(line) || mayBeCode(line):
			if isInText(strings.Join(lines[:len(lines)-n], "\n")) {
				return 0
			}
			return n
		}
	}
	return 0
}

// unwrapFence returns the info and the source of the only fence inside a fence without a language.
// Some models put a whole block into another one.
func unwrapFence(info, source string) (innerInfo, innerSource string) {
	lines := strings.Split(strings.TrimSpace(source), "\n")
	first, last := markOf(lines[0]), markOf(lines[len(lines)-1])
	if info != "" || len(lines) < 2 || first == nil || last == nil || last.info != "" {
		return info, source
	}
	if _, runs := languageOf(word(first.info)); !runs {
		return info, source
	}
	return first.info, strings.Join(lines[1:len(lines)-1], "\n")
}

// cutIndent removes the indentation of a fence from its lines, as far as they have it.
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

// maxIndent is the number of spaces that may precede the marks of any fence. Marks indented further
// open a block only if they name a language that runs.
const maxIndent = 3

// marksOf returns the mark of each line, nil for lines without one.
func marksOf(lines []string) []*mark {
	all := make([]*mark, len(lines))
	for i, line := range lines {
		all[i] = markOf(line)
	}
	return all
}

// markOf returns the mark of a line, which has at most three spaces, at least three backticks or
// tildes, and no backtick after them.
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
	lateOpening = lazyregexp.New("^(.*?)([`~]{3,})[ \t]*([A-Za-z_0-9.]+)[ \t]*$")
	// lateCode matches code that begins on the line of such an opening.
	lateCode = lazyregexp.New("^([^`~]*)(`{3,})[ \t]*([A-Za-z_0-9.]+)[ \t]+([^`]+?)(`{3,})?[ \t]*$")
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
		if _, runs := languageOf(m[2]); !runs {
			source = m[2] + source
		}
		if looksLikePython(source) {
			return "", &mark{marks: m[1], source: source, isWhole: true}
		}
	}

	if m := lateCode.FindStringSubmatch(line); len(m) > 5 && isPython(m[3]) && looksLikePython(m[4]) {
		return m[1], &mark{marks: m[2], info: m[3], source: m[4] + "\n", isWhole: m[5] != ""}
	}
	m := lateOpening.FindStringSubmatch(line)
	if len(m) == 0 || strings.Contains(m[1], "`") {
		return line, nil
	}
	if _, runs := languageOf(m[3]); !runs {
		return line, nil
	}
	indent := len(line) - len(strings.TrimLeft(line, " \t"))
	if strings.TrimSpace(m[1]) != "" {
		indent = 0
	}
	return m[1], &mark{marks: m[2], info: m[3], indent: indent}
}

// attributes matches the attributes after the language of a fence: title="count.py" linenums=1.
var attributes = lazyregexp.New(`^(\w+=("[^"]*"|'[^']*'|\S+)\s*)+$`)

// withCode moves code that follows the language of a fence into the block.
func withCode(m *mark) *mark {
	language, rest, _ := strings.Cut(m.info, " ")
	_, runs := languageOf(language)
	if !runs || !looksLikePython(rest) || attributes.MatchString(rest) {
		return m
	}
	moved := *m
	moved.info, moved.source = language, strings.TrimSpace(rest)+"\n"
	return &moved
}

// maxSteps is how many lines of a reply are examined to find the ends of nested blocks. After that,
// a block ends at the next possible mark, so that a flood of blocks does not take quadratic time.
const maxSteps = 100_000

// findClosing returns the line that closes the fence opened at line i, or len(lines) if none does,
// because the reply was truncated or a stop sequence removed the line. Code may contain text with
// fences in it; an inner fence that names its language is closed first, unless this leaves the
// outer fence open.
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
			if _, runs := languageOf(word(m.info)); runs && plain < len(lines) {
				break // another block begins, so the inner line was not a fence
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

// findIndentedClosing is like findClosing, but for marks with a larger indentation, which the
// closing marks share.
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

// word returns the language in the info of a fence.
func word(info string) string {
	fields := strings.FieldsFunc(info, func(r rune) bool { return strings.ContainsRune(" \t,{}:=", r) })
	if len(fields) == 0 {
		return ""
	}
	return strings.ToLower(strings.TrimPrefix(fields[0], "."))
}

// blockOf returns the code of a block, or false if it cannot run here. In that case, other is the
// language of the code, or "" for data.
func blockOf(info, source string) (block loopsession.Block, ok bool, other string) {
	if strings.TrimSpace(source) == "" {
		return loopsession.Block{}, false, ""
	}
	name := word(info)
	if first, rest, _ := strings.Cut(strings.TrimLeft(source, " \t\n"), "\n"); name == "" &&
		isPython(first) && strings.TrimSpace(first) == word(first) && strings.TrimSpace(rest) != "" {
		name, source = word(first), rest // the language is on the next line
	}
	language, known := languageOf(name)
	if slices.Contains(anyCode, name) {
		name = ""
	}
	if !known && name == "" && looksLikePython(source) {
		language, known = tiers.Python, true
	}

	switch {
	case known && language == tiers.Python && otherMeaning.MatchString(source):
		known, other = false, cmp.Or(guessLanguage(source), "another language")
	case known && language == tiers.Python && sessionStart.MatchString(source):
		source = dropPrompts(source)
	case known || dataWords[name]:
	case name == "":
		other = guessLanguage(source)
	default:
		other = clipWord(name)
	}
	if known && language == tiers.Python {
		source = plainSource(source)
	}
	return loopsession.Block{Language: language, Source: source}, known, other
}

// clipWord returns a name that a model wrote, shortened and on one line, for display to the model.
func clipWord(name string) string { return onOneLine(name[:min(len(name), 40)]) }

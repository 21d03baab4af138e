package turns

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/repl/internal/pysyntax"
)

// widePunctuation maps Chinese and Japanese punctuation, and spaces that editors insert, to the
// characters of code.
var widePunctuation = map[string]string{
	"（": "(", "）": ")", "［": "[", "］": "]", "｛": "{", "｝": "}", "【": "[", "】": "]",
	"，": ",", "、": ",", "：": ":", "；": ";", "．": ".", "＝": "=", "＋": "+", "－": "-", "＊": "*", "％": "%",
	"＜": "<", "＞": ">", "！": "!", "　": " ",
	"\u00a0": " ", "\u202f": " ", "\u2007": " ",
	"\u200b": "", "\u200c": "", "\u200d": "", "\u2060": "", "\ufeff": "",
}

// curlyQuotes maps quotes that editors insert to the quotes of code, with the characters that end a
// string in such quotes.
var curlyQuotes = map[string]struct{ plain, end string }{
	"“": {`"`, "”"}, "”": {`"`, "”"}, "‘": {"'", "’"}, "’": {"'", "’"}, "＂": {`"`, "＂"}, "＇": {"'", "＇"},
}

var (
	// magic matches the lines with notebook commands before the code of a cell.
	magic = lazyregexp.New(`^(?:\s*%%(?:i?python3?|repl|time|capture)\b[^\n]*\n)+`)
	// numberedLine matches a line with its number.
	numberedLine = lazyregexp.New(`^[ \t]*(\d+)(?:[:.|)] ?| |$)(.*)$`)
	// goesOn matches the text that may follow a number in code.
	goesOn = lazyregexp.New(`(?m)^(?:[-+*/%<>=&|.,:;!]|(?:in|is|and|or|not|else)\b|if\b.*\belse\b)`)
	// entity matches a character entity of HTML.
	entity   = lazyregexp.New(`&(?:lt|gt|amp|quot);`)
	entities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&", "&quot;", `"`, "&#39;", "'", "&#x27;", "'")
	// quotes replaces the entities that contain #, which begins a comment.
	quotes = strings.NewReplacer("&#39;", "&quot;", "&#x27;", "&quot;")
	// element matches an element around the whole code.
	element = lazyregexp.New(`(?s)^\s*(?:<(?:code|python|repl)>\s*\n(.*?)(?:\n\s*</(?:code|python|repl)>)?|` +
		`<!\[CDATA\[\n?(.*)\]\]>)\s*$`)
	// dateAnswer matches an answer that is a date or an estimate, although code would calculate it.
	dateAnswer = lazyregexp.New(`\b(FINAL|SUBMIT|final_answer)\([ \t]*` +
		`(\d{4}-\d{1,2}-\d{1,2}|\d{1,2}/\d{1,2}/\d{4}|~ ?\d[\d.,]*)[ \t]*\)`)
)

// plainSource returns code without elements of its display: notebook commands, line numbers, a
// common indentation, HTML entities and odd punctuation. Code with these is not Python.
func plainSource(source string) string {
	source = element.ReplaceAllString(source, "$1$2")
	source = magic.ReplaceAllString(plainPunctuation(source), "")
	source = dropIndent(dropNumbers(source))
	if probe := quotes.Replace(source); entity.MatchString(probe) && entity.MatchString(blankTexts(probe)) {
		source = entities.Replace(source)
	}

	return quoteDates(source)
}

// quoteDates puts an answer in quotes if it is a date that Python would calculate.
func quoteDates(source string) string {
	if !dateAnswer.MatchString(source) {
		return source
	}
	var out strings.Builder
	at := 0
	for _, m := range dateAnswer.FindAllStringSubmatchIndex(blankTexts(source), -1) {
		out.WriteString(source[at:m[4]] + `"` + source[m[4]:m[5]] + `"`)
		at = m[5]
	}
	return out.String() + source[at:]
}

// dropNumbers returns code without line numbers.
func dropNumbers(source string) string {
	lines := strings.Split(strings.Trim(source, "\n"), "\n")
	for i, line := range lines {
		m := numberedLine.FindStringSubmatch(line)
		if len(m) < 3 || m[1] != strconv.Itoa(i+1) {
			return source
		}
		lines[i] = m[2]
	}

	rest := strings.Join(lines, "\n")
	if len(lines) < 2 || !looksLikePython(rest) || goesOn.MatchString(rest) {
		return source
	}

	return rest
}

// dropIndent returns code without the common indentation of its lines.
func dropIndent(source string) string {
	lines, common := strings.Split(source, "\n"), ""
	for i, line := range lines {
		indent := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
		switch {
		case strings.TrimSpace(line) == "":
			lines[i] = ""
		case common == "" && indent != "":
			common = indent
		case indent == "" || common == "":
			return source
		}
		for common != "" && lines[i] != "" && !strings.HasPrefix(indent, common) {
			common = common[:len(common)-1]
		}
	}

	if common == "" {
		return source
	}

	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], common)
	}

	return strings.Join(lines, "\n")
}

// plainPunctuation replaces punctuation that is invalid in Python, outside of strings and comments.
// Code with such punctuation has no other meaning.
func plainPunctuation(source string) string {
	if !hasOddPunctuation(source) {
		return source
	}

	var out strings.Builder
	for at := 0; at < len(source); {
		_, size := utf8.DecodeRuneInString(source[at:])
		c := source[at : at+size]
		plain, isWide := widePunctuation[c]
		switch quote, isCurly := curlyQuotes[c]; {
		case isCurly:
			end := strings.Index(source[at+size:], quote.end)
			if end < 0 || strings.ContainsAny(source[at+size:at+size+end], "\n"+quote.plain+`\`) {
				out.WriteString(c) // the interpreter reports the error
				break
			}
			out.WriteString(quote.plain + source[at+size:at+size+end] + quote.plain)
			size += end + len(quote.end)
		case c == `"` || c == "'" || c == "#":
			size = skipText(source, at) - at
			out.WriteString(source[at : at+size])
		case isWide:
			out.WriteString(plain)
		default:
			out.WriteString(c)
		}
		at += size
	}

	return out.String()
}

// hasOddPunctuation reports whether code has a character that plainPunctuation may replace.
func hasOddPunctuation(source string) bool {
	for _, c := range source {
		if c < utf8.RuneSelf {
			continue
		}
		_, isCurly := curlyQuotes[string(c)]
		if _, isWide := widePunctuation[string(c)]; isCurly || isWide {
			return true
		}
	}

	return false
}

// skipText returns the end of the string or comment at a position in code. A string without an end
// ends with its line.
func skipText(source string, at int) int {
	if source[at] != '#' {
		if end := pysyntax.StringEnd(source, at); end >= 0 {
			return end + 1
		}
	}

	if end := strings.IndexByte(source[at:], '\n'); end >= 0 {
		return at + end
	}

	return len(source)
}

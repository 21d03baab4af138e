package turns

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/repl/internal/pysyntax"
)

// An answer that a model writes out in the same reply as code is invented if it depends on the
// output of the code, which the model has not seen. Such an answer is accepted only if the output
// of this turn or an earlier one contains it.

var (
	// pythonConstant matches the names of constants.
	pythonConstant = lazyregexp.New(`\b(True|False|None|true|false|null)\b`)
	// exponent matches a number, so that an e in the number is not taken for a name.
	exponent = lazyregexp.New(`\b\d[\d_.]*([eE][-+]?\d+)?\b`)
	// anyLetter matches the letters of names and calls.
	anyLetter = lazyregexp.New(`[\pL_]`)
	// formatted matches an expression in an f-string, without its format.
	formatted = lazyregexp.New(`\{([^{}!:=]+)[^{}]*\}`)
	// lastAnswer matches an answer on the last line of code.
	lastAnswer = lazyregexp.New(`(?:^|\n)(FINAL|SUBMIT|final_answer)\(([^\n]*)\)[ \t]*;?\s*$`)
)

// isConstant reports whether the argument is a value without any computation.
func (f *textFinal) isConstant() bool {
	if f.Call == "FINAL_VAR" {
		return false
	}
	if _, isJSON := f.literal(); isJSON {
		return true
	}

	return !anyLetter.MatchString(blankConstants(blankTexts(f.Argument)))
}

// blankConstants returns code without numbers and the names of values.
func blankConstants(code string) string {
	return exponent.ReplaceAllString(pythonConstant.ReplaceAllString(code, " "), " ")
}

// blankTexts returns code with spaces in place of its strings and comments, up to a string without
// an end. The length and the expressions in f-strings are unchanged.
func blankTexts(source string) string {
	out := []byte(source)
	for at := 0; at < len(source); at++ {
		begin := at
		var end int
		switch source[at] {
		case '"', '\'':
			begin, end = at-prefixLength(out[:at]), pysyntax.StringEnd(source, at)
		case '#':
			if end = strings.IndexByte(source[at:], '\n'); end < 0 {
				end = len(source) - at
			}
			end += at - 1
		default:
			continue
		}

		if end < 0 {
			break
		}
		isFormat := bytes.ContainsAny(out[begin:at], "fF")
		for i := begin; i <= end; i++ {
			out[i] = ' '
		}
		if isFormat {
			for _, m := range formatted.FindAllStringSubmatchIndex(source[at:end], -1) {
				copy(out[at+m[2]:], source[at+m[2]:at+m[3]])
			}
		}
		at = end
	}
	return string(out)
}

// prefixLength returns the number of letters at the end of code that belong to the string after it.
func prefixLength(code []byte) int {
	n := 0
	for n < 2 && n < len(code) && strings.IndexByte("rRbBuUfF", code[len(code)-1-n]) >= 0 {
		n++
	}
	if n < len(code) && isWordByte(code[len(code)-1-n]) {
		return 0
	}
	return n
}

// cutAnswer removes a constant answer from the end of code outside of fences: there, the answer may
// also be part of the reply's text.
func cutAnswer(source string) (rest string, f *textFinal) {
	m := lastAnswer.FindStringSubmatchIndex(source)
	if len(m) == 0 || strings.TrimSpace(source[:m[0]]) == "" {
		return source, nil
	}

	f = &textFinal{Call: source[m[2]:m[3]], Argument: strings.TrimSpace(source[m[4]:m[5]])}
	if !f.isConstant() {
		return source, nil
	}
	return source[:m[0]], f
}

var (
	statedName = lazyregexp.New(`[\pL_][\pL\d_]*`)
	// keywordName matches the name of a keyword argument.
	keywordName = lazyregexp.New(`([(,]\s*)[\pL_][\pL\d_]*\s*=([^=])`)
	// contents matches the statement that assigns the answer to the variable answer.
	contents = lazyregexp.New(`^answer(?:\[\s*["']content["']\s*\])?\s*=`)
	// quotedName matches an answer that names a variable.
	quotedName = lazyregexp.New(`FINAL_VAR\(\s*["'](\w+)["']`)
	// writes matches code that writes a file or draws, and so may work without printing.
	writes = lazyregexp.New(`/out\b|\bopen\(|\.(?:write\w*|save\w*|to_\w+|mkdir)\(`)
)

// maxStated bounds the code that is searched for a stated answer, in bytes.
const maxStated = 64 << 10

// output returns the output of the turn's code.
func (t *Turn) output() string {
	output := JoinOutput(t.Ran)
	for i := range t.Ran {
		output += t.Ran[i].Stderr
	}
	return output
}

// isUnseen reports whether the model could not know a value: the turn's code computed something,
// but the value is not in its output or in earlier output. Output that the code copies from its own
// source is not evidence. Code that prints nothing is harmless if the model has seen output before,
// or if the code writes files.
func (t *Turn) isUnseen(value json.RawMessage) bool {
	output := t.seen
	computes, prints, works := false, false, false
	for i := range t.Ran {
		source := t.Ran[i].Source
		if isStated(source) {
			continue
		}
		own := JoinOutput(t.Ran[i:i+1]) + t.Ran[i].Stderr
		rest := cutOwnWords(own, source)
		output += "\n" + rest
		computes = true
		prints = prints || strings.TrimSpace(own) != "" && strings.TrimSpace(t.seen+rest) != ""
		works = works || writes.MatchString(source)
	}
	if !computes || !prints && (works || strings.TrimSpace(t.seen) != "") {
		return false
	}

	var decoded any
	decoder := json.NewDecoder(bytes.NewReader(value))
	decoder.UseNumber()
	if decoder.Decode(&decoded) != nil {
		return true
	}
	return !isShown(decoded, strings.Join(strings.Fields(output), " "))
}

// maxOwnWords bounds how many statements and values cutOwnWords examines, because each takes a pass
// through the code or the output.
const maxOwnWords = 1_000

// cutOwnWords returns the output of code without the values that its source contains, as in
// print("17") or a line 17.
func cutOwnWords(output, source string) string {
	if len(source) > maxStated {
		return output
	}
	p := parseProgram(source)
	p.left = maxOwnWords
	cut := func(words string) {
		if p.left--; p.left >= 0 && words != "" {
			output = strings.Replace(output, words, "", 1)
		}
	}

	for i := range p.steps {
		s := &p.steps[i]
		isOutput := s.word == "" && s.parent < 0 && len(s.names) == 0 && !answerCall.MatchString(s.code)
		if !isOutput || p.left < 0 {
			continue
		}
		if p.left--; p.isSliceStated(i) {
			p.listVisited(cut)
		} else {
			p.listPrinted(i, cut)
		}
	}
	return output
}

// listVisited yields the values of the steps in the slice.
func (p *program) listVisited(yield func(string)) {
	for j, visited := range p.visited {
		if visited {
			listValues(p.source[p.steps[j].begin:p.steps[j].end], yield)
		}
	}
}

// listPrinted yields the parts of a step's output that are copied from the code's own source, not
// computed: literals, the text around the expressions of an f-string, and variables that the code
// sets to a constant.
func (p *program) listPrinted(i int, yield func(string)) {
	s := &p.steps[i]
	arguments, isPrint := strings.CutPrefix(p.source[s.begin:s.end], "print(")
	end := pysyntax.Balanced(arguments)
	if !isPrint || end < 0 {
		return
	}

	for _, argument := range pysyntax.SplitTop(arguments[:end]) {
		argument = strings.TrimSpace(argument)
		expressions := []string{argument}
		isFormat := len(argument) > 3 && strings.IndexByte("fF", argument[0]) >= 0 &&
			strings.IndexByte(`"'`, argument[1]) >= 0 && pysyntax.StringEnd(argument, 1) == len(argument)-1
		if isFormat {
			text := strings.Trim(argument[1:], `"'`)
			for _, part := range formatted.Split(text, -1) {
				if strings.ContainsFunc(part, isAlphanumeric) {
					yield(strings.TrimSpace(part))
				}
			}
			expressions = nil
			for _, m := range formatted.FindAllStringSubmatch(text, -1) {
				expressions = append(expressions, strings.TrimSpace(m[1]))
			}
		}
		for _, expression := range expressions {
			p.listStated(expression, yield)
		}
	}
}

// listStated yields the value of an expression that is a literal, or the stated values on which a
// variable depends.
func (p *program) listStated(expression string, yield func(string)) {
	if !anyLetter.MatchString(blankConstants(blankTexts(expression))) {
		listValues(expression, yield)
		return
	}
	for _, j := range p.sets[key{-1, expression}] {
		if p.left--; p.left < 0 || !p.isSliceStated(j) {
			return
		}
		p.listVisited(yield)
	}
}

func isAlphanumeric(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// listValues yields the numbers and the strings in code.
func listValues(code string, yield func(string)) {
	for _, number := range exponent.FindAllString(blankTexts(code), -1) {
		yield(number)
	}
	for at := 0; at < len(code); at++ {
		if code[at] != '"' && code[at] != '\'' {
			continue
		}
		end := pysyntax.StringEnd(code, at)
		if end < 0 {
			return
		}
		yield(strings.Trim(code[at:end+1], `"'`))
		at = end
	}
}

// isShown reports whether output contains a value, or each part of a list or an object.
func isShown(value any, output string) bool {
	switch v := value.(type) {
	case string:
		text := strings.Join(strings.Fields(v), " ")
		return text != "" && hasWord(output, text)
	case json.Number:
		return hasWord(output, v.String())
	case bool:
		return v && hasWord(output, "True") || !v && hasWord(output, "False") || hasWord(output, strconv.FormatBool(v))
	case nil:
		return hasWord(output, "None") || hasWord(output, "null")
	case []any:
		for _, item := range v {
			if !isShown(item, output) {
				return false
			}
		}
		return len(v) > 0 || strings.Contains(output, "[]")
	case map[string]any:
		for _, item := range v {
			if !isShown(item, output) {
				return false
			}
		}
		return len(v) > 0 || strings.Contains(output, "{}")
	}
	return false
}

// hasWord reports whether text contains a word that is not part of a longer number or name. It
// ignores commas in text.
func hasWord(text, word string) bool {
	for _, form := range []string{text, strings.ReplaceAll(text, ",", "")} {
		for at := 0; ; {
			i := strings.Index(form[at:], word)
			if i < 0 {
				break
			}
			begin, end := at+i, at+i+len(word)
			isWhole := !isPartOfWord(form, begin-1, begin-2) && !isPartOfWord(form, end, end+1)
			if isWhole && !isNegative(form[:begin], word) {
				return true
			}
			at = begin + 1
		}
	}
	return false
}

// isNegative reports whether the text before a number ends with a minus, so that the number is
// negative. A minus after a word is a hyphen.
func isNegative(before, word string) bool {
	rest, hasMinus := strings.CutSuffix(before, "-")
	isNumber := word[0] >= '0' && word[0] <= '9'
	return isNumber && hasMinus && (rest == "" || !isWordByte(rest[len(rest)-1]))
}

// isPartOfWord reports whether the byte at i continues a word or, as a point before the digit at
// next, a number.
func isPartOfWord(text string, i, next int) bool {
	if i < 0 || i >= len(text) {
		return false
	}
	isDigit := next >= 0 && next < len(text) && text[next] >= '0' && text[next] <= '9'
	return isWordByte(text[i]) || text[i] == '.' && isDigit
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

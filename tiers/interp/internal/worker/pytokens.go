package worker

import (
	"errors"
	"fmt"
	"regexp"
	"sync"
)

// pyToken matches one token of the subset at the beginning of a string. gpython's lexer is more
// lenient than CPython's, so all other tokens are rejected beforehand. The expression is compiled
// only in workers.
var pyToken = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pyTokens) })

const pyTokens = `^(?:` +
	`(?P<space> +)|(?P<comment>#[^\n]*)|(?P<newline>\n)|` +
	`(?P<name>[A-Za-z_][A-Za-z0-9_]*)|` +
	`(?P<number>(?:0|[1-9][0-9]{0,300}))|` +
	`(?P<string>"(?:[^"\\\n]|\\[nt\\'"])*"|'(?:[^'\\\n]|\\[nt\\'"])*')|` +
	`(?P<operator>\*\*=?|//=?|<<=?|>>=?|==|!=|<=|>=|\+=|-=|\*=|%=|&=|\|=|\^=|[-+*%<>=()\[\],:.&|^~]))`

const (
	maxPython  = 16 << 10
	maxBracket = 30
	maxIndent  = 40
)

var errToken = errors.New(
	"the snippet has a character or literal that is not in the supported part of Python",
)

// literal holds the kinds of tokens that must not directly precede a number.
var literal = set("number", "string", "name")

// pyScan returns an error for a source with tokens outside the subset.
func pyScan(source string) error {
	if len(source) > maxPython {
		return fmt.Errorf("the snippet is longer than %d bytes", maxPython)
	}
	for i := range len(source) {
		if c := source[i]; c != '\n' && (c < ' ' || c > '~') {
			return errToken
		}
	}

	depth, before := 0, ""
	token := pyToken()
	for rest := source; rest != ""; {
		m := token.FindStringSubmatchIndex(rest)
		if m == nil {
			return errToken
		}
		text := rest[:m[1]]
		kind := ""

		for i, name := range token.SubexpNames() {
			if name != "" && m[2*i] >= 0 {
				kind = name
			}
		}
		switch {
		case kind == "name" && (before == "number" || before == "string"),
			kind == "number" && literal[before]:
			return errToken // 1if, 012, "a"b
		case kind == "string" && (before == "name" || before == "string" || before == "number"):
			return errToken // f"", "a""b"
		case kind == "space" && (before == "newline" || before == "") && len(text) > maxIndent && depth == 0:
			return errors.New("the snippet is indented too deeply")
		case text == "(" || text == "[":
			depth++
		case text == ")" || text == "]":
			depth--
		}

		if depth < 0 || depth > maxBracket {
			return errors.New("the snippet's brackets are nested too deeply or do not match")
		}
		before, rest = kind, rest[m[1]:]
	}

	return nil
}

package tablesql

import (
	"bytes"
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/ncruces/go-sqlite3"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// replaceFunctions replaces functions of SQLite whose time grows with the square of their
// arguments. The replacements read their arguments in SQLite's memory, so that they also stop when
// an engine's memory is taken away.
func replaceFunctions(db *sqlite3.Conn) error {
	const flags = sqlite3.DETERMINISTIC | sqlite3.INNOCUOUS
	for _, f := range []struct {
		name      string
		arguments int
		function  sqlite3.ScalarFunction
	}{
		{"instr", 2, instr},
		{"replace", 3, replace},
		{"trim", 2, trimmer(bytes.TrimFunc)},
		{"ltrim", 2, trimmer(bytes.TrimLeftFunc)},
		{"rtrim", 2, trimmer(bytes.TrimRightFunc)},
		{"unhex", 2, unhex},
		{"regexp", 2, matchRegexp},
		{"regexpi", 2, matcher(syntax.Perl | syntax.DotNL | syntax.FoldCase)},
		{"json_patch", 2, refuse("json_patch")},
		{"jsonb_patch", 2, refuse("jsonb_patch")},
		{"decimal_mul", 2, refuse("decimal_mul")},
	} {
		if err := db.CreateFunction(f.name, f.arguments, flags, f.function); err != nil {
			return err
		}
	}
	return replaceSums(db)
}

func hasNull(args []sqlite3.Value) bool {
	for _, arg := range args {
		if arg.Type() == sqlite3.NULL {
			return true
		}
	}
	return false
}

// instr returns the position of the first occurrence, from 1, or 0. It counts characters, or bytes
// in blobs.
func instr(ctx sqlite3.Context, args ...sqlite3.Value) {
	if hasNull(args) {
		return
	}
	if args[0].Type() == sqlite3.BLOB && args[1].Type() == sqlite3.BLOB {
		ctx.ResultInt(bytes.Index(args[0].RawBlob(), args[1].RawBlob()) + 1)
		return
	}

	text := args[0].RawText()
	i := bytes.Index(text, args[1].RawText())
	if i >= 0 {
		i = utf8.RuneCount(text[:i])
	}
	ctx.ResultInt(i + 1)
}

func replace(ctx sqlite3.Context, args ...sqlite3.Value) {
	if hasNull(args) {
		return
	}
	text, old, with := args[0].RawText(), args[1].RawText(), args[2].RawText()
	if len(old) == 0 {
		ctx.ResultText(string(text))
		return
	}

	size := len(text) + bytes.Count(text, old)*(len(with)-len(old))
	if size > bounds[sqlite3.LIMIT_LENGTH] {
		ctx.ResultError(sqlite3.TOOBIG)
		return
	}
	ctx.ResultText(string(bytes.ReplaceAll(text, old, with)))
}

// trimmer returns a function that trims the characters in the second argument.
func trimmer(trim func([]byte, func(rune) bool) []byte) sqlite3.ScalarFunction {
	return func(ctx sqlite3.Context, args ...sqlite3.Value) {
		if hasNull(args) {
			return
		}

		text, set := args[0].RawText(), setOf(args[1].RawText())
		ctx.ResultText(string(trim(text, func(r rune) bool { return set[r] })))
	}
}

func setOf(text []byte) map[rune]bool {
	set := map[rune]bool{}
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		set[r] = true
		text = text[size:]
	}
	return set
}

// unhex returns the bytes for hexadecimal digits, ignoring characters of the second argument
// between them; it returns NULL if there is any other character.
func unhex(ctx sqlite3.Context, args ...sqlite3.Value) {
	if hasNull(args) {
		return
	}
	text, passed := args[0].RawText(), setOf(args[1].RawText())
	data := make([]byte, 0, len(text)/2)
	for len(text) > 0 {
		if len(text) > 1 && isHex(text[0]) && isHex(text[1]) {
			data = append(data, digit(text[0])<<4|digit(text[1]))
			text = text[2:]
			continue
		}
		r, size := utf8.DecodeRune(text)
		if !passed[r] || isHex(text[0]) {
			return
		}
		text = text[size:]
	}
	ctx.ResultBlob(data)
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

// digit returns the value of a hexadecimal digit.
func digit(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&^0x20 - 'A' + 10
}

// pattern is a pattern of REGEXP, with an upper bound on its number of characters, including all
// repeats.
type pattern struct {
	*regexp.Regexp
	states int
}

// These bounds apply to a pattern. The time of a match grows with the pattern's states for each
// byte of the text.
const (
	maxStates = 1000
	maxWork   = 200_000_000 // a few seconds
)

// matchRegexp implements REGEXP.
var matchRegexp = matcher(syntax.Perl | syntax.DotNL)

var codePoint = lazyregexp.New(`\\\\|\\u[0-9A-Fa-f]{4}`)

// matcher returns the function for the operator REGEXP. Its first argument is the pattern.
func matcher(flags syntax.Flags) sqlite3.ScalarFunction {
	return func(ctx sqlite3.Context, args ...sqlite3.Value) {
		if hasNull(args) {
			return
		}
		p, isKnown := ctx.GetAuxData(0).(*pattern)
		if !isKnown {
			var err error
			if p, err = compile(args[0].Text(), flags); err != nil {
				ctx.ResultError(err)
				return
			}
			ctx.SetAuxData(0, p)
		}

		text := args[1].RawText()
		if len(text) > maxWork/p.states {
			ctx.ResultError(errors.New("the text is too long for this pattern of REGEXP: filter in the snippet"))
			return
		}
		ctx.ResultBool(p.Match(text))
	}
}

// compile compiles a pattern like SQLite's own REGEXP.
func compile(text string, flags syntax.Flags) (*pattern, error) {
	if len(text) > bounds[sqlite3.LIMIT_LIKE_PATTERN_LENGTH] {
		return nil, errors.New("the pattern of REGEXP is too long: filter in the snippet")
	}
	text = codePoint.ReplaceAllStringFunc(text, func(found string) string {
		if digits, ok := strings.CutPrefix(found, `\u`); ok {
			return `\x{` + digits + `}`
		}
		return found
	})

	parsed, err := syntax.Parse(text, flags)
	if err != nil {
		return nil, err
	}
	states := countStates(parsed)
	if states > maxStates {
		return nil, errors.New("the pattern of REGEXP is too large: repeat less in it, or filter in the snippet")
	}

	prefix := "(?s)"
	if flags&syntax.FoldCase != 0 {
		prefix = "(?si)"
	}
	compiled, err := regexp.Compile(prefix + text)
	return &pattern{compiled, states}, err
}

func countStates(re *syntax.Regexp) int {
	n := 1
	if re.Op == syntax.OpLiteral {
		n = len(re.Rune)
	}
	for _, sub := range re.Sub {
		n += countStates(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(1, re.Min, re.Max)
	}
	return n
}

// refuse returns a function that reports itself as missing.
func refuse(name string) sqlite3.ScalarFunction {
	return func(ctx sqlite3.Context, _ ...sqlite3.Value) {
		ctx.ResultError(errors.New(name + " is missing, because its time has no bound: " +
			"select the values and compute in the snippet"))
	}
}

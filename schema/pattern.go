package schema

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	maxPattern  = 1_000  // characters of one regular expression
	maxProgram  = 10_000 // instructions of one, repeats written out
	maxPrograms = 50_000 // instructions of all in a document
)

// patternEngine compiles the patterns of one document with Go's engine, which is linear
// in the text, and bounds what they unfold to.
//
// The library also calls it, from concurrent checks, to validate values of the format
// "regex". Once sealed, it therefore remembers and counts nothing.
type patternEngine struct {
	contract *Contract
	known    map[string]jsonschema.Regexp
	total    int // instructions
	isSealed bool
}

// compile returns the regular expression of a pattern.
func (e *patternEngine) compile(pattern string) (jsonschema.Regexp, error) {
	if e.isSealed {
		re, _, err := compilePattern(pattern)
		return re, err
	}
	if re, ok := e.known[pattern]; ok {
		return re, nil
	}

	re, size, err := compilePattern(pattern)
	if err != nil {
		return nil, err
	}
	if e.total += size; e.total > maxPrograms {
		return nil, fmt.Errorf(
			"the patterns of the schema expand to more than %d instructions", maxPrograms)
	}
	e.known[pattern], e.contract.programs[pattern] = re, size
	return re, nil
}

// compiledPattern is a regular expression under the name that the schema gives it.
type compiledPattern struct {
	*regexp.Regexp
	name string
}

// String returns the pattern as the schema has it.
func (c compiledPattern) String() string { return c.name }

// compilePattern compiles a regular expression and returns the number of its
// instructions.
func compilePattern(pattern string) (jsonschema.Regexp, int, error) {
	if len(pattern) > maxPattern {
		return nil, 0, fmt.Errorf("the pattern %q has %d characters, more than %d",
			clip(pattern, 40), len(pattern), maxPattern)
	}

	name, translated := clip(pattern, 100), translatePattern(pattern)
	parsed, err := syntax.Parse(translated, syntax.Perl)
	if err != nil {
		return nil, 0, fmt.Errorf(
			"invalid pattern %q: %w (look-around and back-references are not supported)", name, err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, 0, fmt.Errorf("invalid pattern %q: %w", name, err)
	}
	if len(program.Inst) > maxProgram {
		return nil, 0, fmt.Errorf("the pattern %q expands to %d instructions, more than %d",
			name, len(program.Inst), maxProgram)
	}

	re, err := regexp.Compile(translated)
	return compiledPattern{re, pattern}, len(program.Inst), err
}

// translatePattern writes the escapes of ECMA-262 and Python that Go spells differently
// in Go's way: \uXXXX, \/, \cX and \Z.
func translatePattern(pattern string) string {
	if !strings.ContainsRune(pattern, '\\') {
		return pattern
	}

	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] != '\\' || i+1 == len(pattern) {
			b.WriteByte(pattern[i])
			continue
		}
		i++
		i += writeEscape(&b, pattern[i:])
	}
	return b.String()
}

// writeEscape writes the escape whose character after the backslash begins the text. It
// returns how many characters beyond that one belong to it.
func writeEscape(b *strings.Builder, text string) int {
	switch {
	case text[0] == 'u' && len(text) > 4 && isHex(text[1:5]):
		b.WriteString(`\x{` + text[1:5] + `}`)
		return 4
	case text[0] == 'c' && len(text) > 1 && isLetter(text[1]):
		fmt.Fprintf(b, `\x%02x`, text[1]%32)
		return 1
	case text[0] == '/':
		b.WriteByte('/')
	case text[0] == 'Z':
		b.WriteString(`\z`)
	default:
		b.WriteByte('\\')
		b.WriteByte(text[0])
	}
	return 0
}

// isHex reports whether a text has hexadecimal digits only.
func isHex(s string) bool { return strings.Trim(s, "0123456789abcdefABCDEF") == "" }

// isLetter reports whether a byte is an ASCII letter.
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

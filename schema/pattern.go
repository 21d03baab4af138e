package schema

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

const (
	maxPattern  = 1_000  // characters of one regular expression
	maxProgram  = 10_000 // instructions of one, with repetitions expanded
	maxPrograms = 50_000 // instructions of all patterns in a document
)

// pattern is a regular expression, compiled by Go's engine, whose matching takes time linear in the
// input.
type pattern struct {
	*regexp.Regexp

	text string // as written in the schema
	size int    // instructions
}

// String returns the pattern as written in the schema.
func (p *pattern) String() string { return p.text }

// compilePattern compiles a regular expression and bounds its expanded size.
func compilePattern(text string) (*pattern, error) {
	if len(text) > maxPattern {
		return nil, fmt.Errorf("the pattern %q has %d characters, more than %d",
			clip(text, 40), len(text), maxPattern)
	}

	name, translated := clip(text, 100), translatePattern(text)
	parsed, err := syntax.Parse(translated, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf(
			"invalid pattern %q: %w (look-around and back-references are not supported)", name, err)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, fmt.Errorf("invalid pattern %q: %w", name, err)
	}
	if len(program.Inst) > maxProgram {
		return nil, fmt.Errorf("the pattern %q expands to %d instructions, more than %d",
			name, len(program.Inst), maxProgram)
	}

	re, err := regexp.Compile(translated)
	if err != nil {
		return nil, fmt.Errorf("invalid pattern %q: %w", name, err)
	}
	return &pattern{re, text, len(program.Inst)}, nil
}

// translatePattern converts the escapes of ECMA-262 and Python that Go spells differently:
// \uXXXX, \/, \cX and \Z.
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

// writeEscape writes an escape sequence; text begins after its backslash. It returns the number of
// further characters in the sequence.
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

// isHex reports whether a string consists of hexadecimal digits.
func isHex(s string) bool { return strings.Trim(s, "0123456789abcdefABCDEF") == "" }

// isLetter reports whether a byte is an ASCII letter.
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

package schema

import (
	"fmt"
	"regexp"
	"strings"
)

// compiled is a pattern under the name that the schema gave it.
type compiled struct {
	*regexp.Regexp
	name string
}

func (c compiled) String() string { return c.name }

func regexpOf(name, translated string) (compiled, error) {
	re, err := regexp.Compile(translated)
	return compiled{re, name}, err
}

// translate writes the escapes of ECMA-262 and Python that Go spells otherwise
// in Go's way: \uXXXX, \/, \cX and \Z.
func translate(pattern string) string {
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
		switch next := pattern[i]; {
		case next == 'u' && i+4 < len(pattern) && isHex(pattern[i+1:i+5]):
			b.WriteString(`\x{` + pattern[i+1:i+5] + `}`)
			i += 4
		case next == 'c' && i+1 < len(pattern) && isLetter(pattern[i+1]):
			fmt.Fprintf(&b, `\x%02x`, pattern[i+1]%32)
			i++
		case next == '/':
			b.WriteByte('/')
		case next == 'Z':
			b.WriteString(`\z`)
		default:
			b.WriteByte('\\')
			b.WriteByte(next)
		}
	}
	return b.String()
}

func isHex(s string) bool {
	for _, c := range []byte(s) {
		if !strings.ContainsRune("0123456789abcdefABCDEF", rune(c)) {
			return false
		}
	}
	return true
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

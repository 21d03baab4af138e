package pysyntax

import (
	"strings"
)

// Balanced returns the index of the parenthesis that closes text, or -1. It skips Python
// strings.
func Balanced(text string) int {
	depth := 1
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			if depth--; depth == 0 {
				if text[i] != ')' {
					return -1
				}
				return i
			}
		case '"', '\'':
			end := StringEnd(text, i)
			if end < 0 {
				return -1
			}
			i = end
		}
	}

	return -1
}

// StringEnd returns the index of the last byte of the string literal that begins at i, or -1 if
// the literal has no end.
func StringEnd(text string, i int) int {
	quote := text[i : i+1]
	if strings.HasPrefix(text[i:], strings.Repeat(quote, 3)) {
		quote = strings.Repeat(quote, 3)
	}
	for j := i + len(quote); j < len(text); j++ {
		switch {
		case text[j] == '\\':
			j++
		case text[j] == '\n' && len(quote) == 1:
			return -1
		case strings.HasPrefix(text[j:], quote):
			return j + len(quote) - 1
		}
	}

	return -1
}

// SplitTop splits s at commas that are not inside brackets or quotes.
func SplitTop(s string) []string {
	var parts []string
	depth, start := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '(', '[', '{':
			depth++
		case ')', ']', '}':
			depth--
		case '"', '\'':
			if end := StringEnd(s, i); end > 0 {
				i = end
			}
		case ',':
			if depth == 0 {
				parts = append(parts, s[start:i])
				start = i + 1
			}
		}
	}

	return append(parts, s[start:])
}

package bm25

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// A passage ends at the first empty line after enoughBytes, and never has more
// than mostBytes: a paragraph or two, a function, what a prompt can hold many of.
const (
	enoughBytes = 600
	mostBytes   = 1_600
)

// cut divides a text into passages, without those that are empty.
func cut(text string) iter.Seq[Passage] {
	return func(yield func(Passage) bool) {
		start, first, line := 0, 1, 1
		end := func(at int) bool {
			piece := text[start:at]
			lead := len(piece) - len(strings.TrimLeft(piece, "\r\n"))
			p := Passage{
				Line: first + strings.Count(piece[:lead], "\n"),
				Text: strings.TrimRight(piece[lead:], " \t\r\n"),
			}

			start, first = at, line
			return strings.TrimSpace(p.Text) == "" || yield(p)
		}

		for at := 0; at < len(text); {
			next := at + lineLength(text[at:])
			if next-start > mostBytes && at > start && !end(at) {
				return
			}
			if text[next-1] == '\n' {
				line++
			}

			blank := strings.TrimSpace(text[at:next]) == ""
			at = next
			if blank && at-start > enoughBytes && !end(at) {
				return
			}
		}

		end(len(text))
	}
}

// lineLength is how many bytes the first line of a text has, its end included; of
// a line that is too long for a passage, as many as fit.
func lineLength(text string) int {
	n := strings.IndexByte(text, '\n') + 1
	if n == 0 {
		n = len(text)
	}
	if n <= mostBytes {
		return n
	}

	for n = mostBytes; !utf8.RuneStart(text[n]); {
		n--
	}
	return n
}

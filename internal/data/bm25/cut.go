package bm25

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// A passage ends at the first empty line after enoughBytes, and has at most mostBytes: a paragraph
// or two, or a function. Many passages fit into a prompt.
const (
	enoughBytes = 600
	mostBytes   = 1_600
)

// cut divides a text into passages and drops empty ones.
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

// lineLength returns the length of a text's first line including its end, in bytes. For a line
// longer than a passage, it returns the part that fits.
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

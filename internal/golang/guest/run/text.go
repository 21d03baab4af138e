package run

import (
	"fmt"
	"strconv"
	"strings"
)

// Text returns the text of input number n, which has length characters.
func (l *Link) Text(n int, length int64) *Text { return &Text{link: l, input: n, length: length} }

// Text is a context that stays on the host. Offsets are in characters. Its methods panic if the
// host cannot answer.
type Text struct {
	link   *Link
	input  int
	length int64
}

func (t *Text) ask(operation string, operands ...any) string {
	request := "t" + operation + strconv.Itoa(t.input)
	for _, o := range operands {
		request += fmt.Sprint(",", o)
	}

	raw, err := t.link.Ask(request)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func (t *Text) askNumber(operation string, operands ...any) int {
	n, err := strconv.Atoi(t.ask(operation, operands...))
	if err != nil {
		panic(err)
	}
	return n
}

// String describes the text, without its content.
func (t *Text) String() string { return fmt.Sprintf("a text of %d characters", t.length) }

// Len returns the number of characters.
func (t *Text) Len() int { return int(t.length) }

// Slice returns the characters [a, b), clipped to the length of the text.
func (t *Text) Slice(a, b int) string {
	from, to := t.clamp(a), t.clamp(b)
	if from >= to {
		return ""
	}
	return t.ask("s", from, to)
}

func (t *Text) clamp(at int) int64 { return min(max(0, int64(at)), t.length) }

// Find returns the first position of needle at or after from, or -1.
func (t *Text) Find(needle string, from int) int {
	return t.askNumber("f", t.clamp(from), t.length, needle)
}

// RFind returns the last position of needle, or -1.
func (t *Text) RFind(needle string) int { return t.askNumber("r", 0, t.length, needle) }

// Count returns the number of occurrences of needle.
func (t *Text) Count(needle string) int { return t.askNumber("c", 0, t.length, needle) }

// Contains reports whether the text contains needle.
func (t *Text) Contains(needle string) bool { return t.Find(needle, 0) >= 0 }

// LineCount returns the number of lines.
func (t *Text) LineCount() int { return t.askNumber("p", 0, t.length, "newlines", "") }

// Lines returns the lines a to b-1, without their line ends.
func (t *Text) Lines(a, b int) []string {
	a, b = max(0, a), min(b, t.LineCount())
	if a >= b {
		return nil
	}

	var from, to int64
	span := t.ask("l", 0, t.length, "newlines", a, b, "")
	if _, err := fmt.Sscanf(span, "%d,%d", &from, &to); err != nil {
		panic(err)
	}
	if from == to {
		return []string{""}
	}
	text := strings.ReplaceAll(t.ask("s", from, to), "\r\n", "\n")
	return strings.Split(text, "\n")
}

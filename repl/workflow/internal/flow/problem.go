package flow

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rlmhq/rlm/internal/text/spelling"
)

// Problem is one mistake in a file.
type Problem struct {
	// File is the file's name, Line and Column the position, from 1.
	File         string
	Line, Column int
	Message      string
}

// String returns "file:line:column: message".
func (p *Problem) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// FileError lists all problems of a file, in order of position.
type FileError struct{ Problems []*Problem }

// Error returns a line for each problem.
func (e *FileError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, problem := range e.Problems {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}

// maxProblems bounds the problems reported for one file.
const maxProblems = 20

// fileError returns an error with the first maxProblems problems, in order of position, or nil
// without problems.
func fileError(file string, p []*Problem) error {
	if len(p) == 0 {
		return nil
	}
	slices.SortStableFunc(p, func(a, b *Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})

	p = slices.CompactFunc(p, func(a, b *Problem) bool { return *a == *b }) // due to aliases
	p = p[:min(len(p), maxProblems)]
	for _, problem := range p {
		problem.File = file
	}
	return &FileError{p}
}

// quoteName shows a name from the file, short and on one line.
func quoteName(name string) string { return strconv.Quote(shortenText(name, 60)) }

// shortenText shortens text to at most limit characters.
func shortenText(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	runes := []rune(text[:min(len(text), 4*limit)])
	if len(runes) <= limit {
		return text
	}

	return string(runes[:limit]) + "…"
}

// describeUnknown reports that a name is unknown, and suggests a known one. what may end in an
// owner, as in "key of a node".
func describeUnknown(what, name string, known []string) string {
	what, owner, hasOwner := strings.Cut(what, " of ")
	text := "unknown " + what + " " + quoteName(name)
	if hasOwner {
		text += " of " + owner
	}

	if meant := spelling.Nearest(name, known); meant != "" {
		return text + "; did you mean " + meant + "?"
	}
	return text + ": use one of " + strings.Join(known, ", ")
}

package traces

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Limits on lines.
const (
	maxLine   = 16 << 20 // bytes
	maxValues = 200_000  // objects and lists of a line, since each costs more than its text
	maxBytes  = 1 << 30  // size of all files
	maxNotes  = 20       // per file
)

// Lines reads files of lines. Its limits apply to all files together.
type Lines struct{ bytes int64 }

// Each passes the lines of a file to take, and returns notes about the lines that were left out,
// because take refused them or because they exceed a limit.
func (l *Lines) Each(file io.Reader, take func(line []byte) error) (notes []string, err error) {
	r := bufio.NewReaderSize(file, 64<<10)
	for number := 1; ; number++ {
		line, whole, err := readLine(r)
		if err != nil && !errors.Is(err, io.EOF) {
			return notes, err
		}
		if l.bytes += int64(len(line)); l.bytes > maxBytes {
			return append(notes, fmt.Sprintf("line %d and all after it are left out: the record is larger than %d MiB",
				number, maxBytes>>20)), nil
		}

		if len(bytes.TrimSpace(line)) > 0 {
			problem := check(line, whole)
			if problem == nil {
				problem = take(line)
			}
			if whole && problem != nil && err != nil {
				problem = errors.New("it is incomplete: the run may have been killed")
			}
			if problem != nil && len(notes) < maxNotes {
				notes = append(notes, fmt.Sprintf("line %d is left out: %v", number, problem))
			}
		}

		if err != nil {
			return notes, nil //nolint:nilerr // the end of the file
		}
	}
}

func check(line []byte, whole bool) error {
	switch {
	case !whole:
		return fmt.Errorf("it is longer than %d MiB", maxLine>>20)
	case countValues(line) > maxValues:
		return fmt.Errorf("it has more than %d objects and lists", maxValues)
	}
	return nil
}

// readLine reads a line, and returns at most maxLine bytes of it.
func readLine(r *bufio.Reader) (line []byte, whole bool, err error) {
	whole = true
	for {
		piece, err := r.ReadSlice('\n')
		if len(line)+len(piece) <= maxLine {
			line = append(line, piece...)
		} else {
			whole = false
		}

		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, whole, err
		}
	}
}

// countValues counts the objects and lists in JSON.
func countValues(line []byte) (n int) {
	inText := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case !inText && (c == '{' || c == '['):
			n++
		}
	}
	return n
}

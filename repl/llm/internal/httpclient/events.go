package httpclient

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// ErrDone is returned by a reader of events to end the stream without an error.
var ErrDone = errors.New("done")

// maxEvent bounds the bytes of one event of a stream.
const maxEvent = 1 << 20

// LastEvent ends streams in OpenAI's format. Some servers omit the line end after it.
const LastEvent = "[DONE]"

// ReadEvents passes the data of each event of a stream to a function, until the function returns an
// error or the body ends. It skips events without data, such as the comments and types with which
// servers keep a connection alive. A line that is a JSON object is also an event.
//
// A stream that ends in the middle of a line was truncated, unless the line is a whole JSON value.
func ReadEvents(body io.Reader, each func(data string) error) error {
	var ends lineEnds
	e := events{each: each}
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxEvent)
	lines.Split(ends.split)
	for isFirst := true; lines.Scan(); isFirst = false {
		line := lines.Bytes()
		if isFirst {
			line = bytes.TrimPrefix(line, byteOrderMark)
		}
		if err := e.addLine(line, ends.isCut); err != nil {
			return endOf(err)
		}
	}

	if err := lines.Err(); err != nil {
		return &llm.Error{Kind: kind.ErrMalformed, Err: err}
	}
	return endOf(e.give()) // the last event needs no blank line
}

// events collects the lines of the events of a stream.
type events struct {
	each  func(data string) error
	data  []byte
	lines int // of data

	isError bool // the event has the name "error"
}

// addLine adds a line. IsCut reports that the body ended within the line.
func (e *events) addLine(line []byte, isCut bool) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	isJSON := len(line) > 0 && line[0] == '{'
	if isJSON {
		name, value = []byte("data"), line
	}

	switch {
	case len(line) == 0:
		return e.give()
	case string(name) != "data" && isCut:
		return &llm.Error{Kind: kind.ErrCut, Err: io.ErrUnexpectedEOF}
	case string(name) == "event":
		e.isError = string(bytes.TrimSpace(value)) == "error"
		return nil
	case string(name) != "data":
		return nil
	}

	// Some servers leave out the blank line between events.
	if e.lines == 1 && json.Valid(e.data) {
		if err := e.give(); err != nil {
			return err
		}
	}
	if e.lines > 0 {
		e.data = append(e.data, '\n')
	}
	e.lines++
	switch e.data = append(e.data, value...); {
	case len(e.data) > maxEvent:
		return &llm.Error{
			Kind: kind.ErrMalformed, Message: fmt.Sprintf("an event has more than %d bytes", maxEvent),
		}
	case isCut && !IsLast(string(e.data)) && !json.Valid(e.data):
		return &llm.Error{Kind: kind.ErrCut, Err: io.ErrUnexpectedEOF}
	case isJSON:
		return e.give()
	}
	return nil
}

// give passes on the data of an event, unless there is none. An event named "error" ends the stream
// even if the reader accepts its data.
func (e *events) give() error {
	text, isError := string(e.data), e.isError
	e.data, e.lines, e.isError = e.data[:0], 0, false
	if text != "" {
		if err := e.each(text); err != nil {
			return err
		}
	}

	if isError {
		return ParseFailure([]byte(text))
	}
	return nil
}

// IsLast reports whether the data of an event is [LastEvent].
func IsLast(data string) bool { return strings.TrimSpace(data) == LastEvent }

// endOf returns the error of a reader, or nil if the reader needs no more events.
func endOf(err error) error {
	if errors.Is(err, ErrDone) {
		return nil
	}
	return err
}

// lineEnds splits a stream into lines, which end with CR, LF or both.
type lineEnds struct {
	afterCR bool // an LF that follows belongs to the same line end
	isCut   bool // the last line has no end
}

// split is a [bufio.SplitFunc]. It never waits for the byte after CR, because the stream may pause
// there.
func (l *lineEnds) split(data []byte, atEOF bool) (advance int, line []byte, err error) {
	if len(data) == 0 {
		return 0, nil, nil
	}
	rest := data
	if l.afterCR {
		rest = bytes.TrimPrefix(data, []byte("\n"))
		l.afterCR = false
	}

	at := bytes.IndexAny(rest, "\r\n")
	switch skipped := len(data) - len(rest); {
	case at >= 0:
		l.afterCR = rest[at] == '\r'
		return skipped + at + 1, rest[:at], nil
	case atEOF && len(rest) > 0:
		l.isCut = true
		return len(data), rest, nil
	default:
		return skipped, nil, nil // more data is needed
	}
}

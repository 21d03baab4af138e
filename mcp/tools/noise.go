package tools

import (
	"bufio"
	"bytes"
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rlmhq/rlm/internal/text/texts"
)

// maxNoise is the maximum number of bytes that a program may write between two messages.
const maxNoise = 16 << 20

// Limits on answers that follow other text on their line.
const (
	doubtTime = 5 * time.Second // how long to wait for the same answer on a separate line
	maxBraces = 10              // places where the answer may begin
)

// errOnlyNoise is the error of a program that writes something other than messages.
var errOnlyNoise = fmt.Errorf("it writes lines that are not messages of the protocol, more than %d MiB",
	maxNoise>>20)

// messages passes on and repairs the lines of a program that are messages, because many programs
// also log to stdout.
type messages struct {
	*bounded

	lines *bufio.Reader
	rest  []byte // the unread rest of a message
	noise int    // bytes since the last message
	warn  func(line string)

	asked   requests
	doubted time.Time // when an answer last followed other text on its line
}

// requests are our unanswered requests, by ID.
type requests struct{ open sync.Map }

// has reports whether an answer has the ID of an open request.
func (r *requests) has(answer members) bool {
	id := string(answer["id"])
	if text, isText := unquote(answer["id"]); isText {
		id = text
	}
	_, has := r.open.Load(id)
	return has
}

func newMessages(b *bounded, warn func(line string)) *messages {
	return &messages{bounded: b, lines: bufio.NewReader(b), warn: warn}
}

// Read implements [io.Reader].
func (m *messages) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		if failed := m.err(); failed != nil {
			return 0, failed
		}
		line, err := m.lines.ReadBytes('\n')
		line = bytes.TrimPrefix(line, []byte("\uFEFF"))
		if isMessage(line) || m.isBareAnswer(line) {
			repaired, failed := repair(line)
			if failed != nil {
				m.failed.CompareAndSwap(nil, &failed)
				continue
			}
			m.rest, m.noise = repaired, 0
			break // the next Read reports the error
		}
		if err != nil {
			return 0, err
		}
		m.doubt(line)
		m.skip(line)
	}

	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// isBareAnswer reports whether a line answers a request without the member "jsonrpc".
func (m *messages) isBareAnswer(line []byte) bool {
	if !bytes.Contains(line, []byte(`"id"`)) {
		return false
	}
	answer := readAnswer(line)
	return answer != nil && answer["jsonrpc"] == nil && m.asked.has(answer) &&
		(answer["result"] == nil) != (answer["error"] == nil)
}

// doubt checks a line with other text that may also contain an answer. It ends the messages unless
// the answer soon arrives on a separate line too, because the line may only be a log.
func (m *messages) doubt(line []byte) {
	if time.Since(m.doubted) < doubtTime || !bytes.Contains(line, []byte(`"jsonrpc"`)) {
		return
	}

	text := oneLine(string(line[:min(len(line), 8*maxDoc)]))
	for range maxBraces {
		begin := bytes.IndexByte(line, '{')
		if begin < 0 {
			return
		}
		answer := readAnswer(line[begin:])
		line = line[begin+1:]
		if answer == nil || answer["jsonrpc"] == nil || !m.asked.has(answer) {
			continue
		}

		m.doubted = time.Now()
		time.AfterFunc(doubtTime, func() {
			if m.asked.has(answer) {
				err := fmt.Errorf("it writes other text before an answer, on the same line: %s",
					texts.Truncate(text, 200))
				m.failed.CompareAndSwap(nil, &err)
				_ = m.Close()
			}
		})
		return
	}
}

// skip counts a line that is not a message, and reports the first one.
func (m *messages) skip(line []byte) {
	m.noise += len(line)
	if m.noise > maxNoise {
		m.failed.CompareAndSwap(nil, &errOnlyNoise)
	}
	if text := oneLine(string(line[:min(len(line), 8*maxDoc)])); text != "" && m.warn != nil {
		m.warn(texts.Truncate(text, 200))
		m.warn = nil
	}
}

// isMessage reports whether a line is a message or a batch of messages. A message is an object with
// the member "jsonrpc", which is usually the first one. The rest of the line may be malformed,
// which the protocol library reports.
func isMessage(line []byte) bool {
	line = bytes.TrimSpace(line)
	if len(line) > 0 && line[0] == '[' {
		line = bytes.TrimSpace(line[1:])
	}
	if len(line) == 0 || line[0] != '{' || !bytes.Contains(line, []byte(`"jsonrpc"`)) {
		return false
	}

	d := jsontext.NewDecoder(bytes.NewReader(line), jsontext.AllowDuplicateNames(true),
		jsontext.AllowInvalidUTF8(true))
	if _, err := d.ReadToken(); err != nil {
		return false
	}
	for d.PeekKind() == '"' {
		name, err := d.ReadToken()
		if err != nil {
			return false
		}
		if name.String() == "jsonrpc" {
			return true
		}
		if d.SkipValue() != nil {
			return false
		}
	}
	return false
}

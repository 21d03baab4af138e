// Package wire is what the tier's two processes say to one another.
//
// The host speaks first: one [Setup], then a [Run] for each snippet. While a
// snippet runs, the worker sends output, host calls and questions about lazy
// texts, and the host answers them by number; the worker closes the snippet
// with an [End]. The worker is hostile: the host reads with [Read], which bounds
// every frame, and [Decode], which accepts exactly the messages below.
package wire

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/rlmhq/rlm/internal/frame"
)

// Kind is the first byte of a frame's body.
type Kind byte

// The kinds of frame, by who sends them.
const (
	KindSetup  Kind = 'S' // host: Setup
	KindRun    Kind = 'R' // host: Run
	KindAnswer Kind = 'A' // host: an answer, see Answer

	KindReady  Kind = 'Y' // worker: warm, waiting for Setup; empty
	KindOutput Kind = 'O' // worker: a byte '1' or '2', then what was written
	KindCall   Kind = 'C' // worker: Call
	KindText   Kind = 'T' // worker: Text
	KindFinal  Kind = 'F' // worker: Final
	KindEnd    Kind = 'E' // worker: End
)

// The bounds of a frame's body, by who sends it. An answer may be long: it holds
// what a host function returned or a part of a text.
const (
	MaxFromWorker = 32 << 20
	MaxFromHost   = 256 << 20
	MaxOutput     = 64 << 10
)

// Setup says what a session has.
type Setup struct {
	Functions []string `json:"functions"`
	Inputs    []Input  `json:"inputs"`
	Memory    int64    `json:"memory"`
}

// Input is one of the session's contexts: a text that was sent whole, a lazy
// text of Length characters, or a value.
type Input struct {
	Text   *string         `json:"text,omitempty"`
	Lazy   bool            `json:"lazy,omitempty"`
	Length int64           `json:"length,omitempty"`
	Value  json.RawMessage `json:"value,omitempty"`
}

// Run is one snippet.
type Run struct {
	Language string `json:"language"`
	Source   string `json:"source"`
}

// Call asks the host for a function's answer.
type Call struct {
	ID       uint64            `json:"id"`
	Function string            `json:"function"`
	Args     []json.RawMessage `json:"args"`
}

// Text asks about the characters [A, B) of lazy input Input.
type Text struct {
	ID     uint64 `json:"id"`
	Input  int    `json:"input"`
	Op     string `json:"op"`
	A      int64  `json:"a"`
	B      int64  `json:"b"`
	Needle string `json:"needle"`
}

// The operations of Text. Lines are counted from 0.
const (
	OpSlice = "slice" // the characters [A, B)
	OpFind  = "find"  // where Needle is first in [A, B), or -1
	OpRFind = "rfind" // where it is last
	OpCount = "count" // how often it is there
	OpLines = "lines" // how many lines the text has
	OpLine  = "line"  // the lines [A, B), as one text
)

// Final is the session's answer.
type Final struct {
	Value json.RawMessage `json:"value"`
	Name  string          `json:"name"`
}

// End closes a snippet.
type End struct {
	// Verdict is one of the verdicts below.
	Verdict string `json:"verdict"`
	// Type, Message and Traceback are the exception, if it raised.
	Type      string `json:"type"`
	Message   string `json:"message"`
	Traceback string `json:"traceback"`
	// Missing and Reason say why it was rejected.
	Missing string `json:"missing"`
	Reason  string `json:"reason"`
	// Dirty is set if the namespace is no longer what the session's history
	// says: the worker must be replaced.
	Dirty bool `json:"dirty"`
	// Impure says why running the snippet again might give something else, empty
	// if it would not.
	Impure string `json:"impure"`
	// Memory is what the worker holds, by its own word.
	Memory int64 `json:"memory"`
}

// The verdicts on a snippet.
const (
	OK       = "ok"
	Raised   = "raised"
	Rejected = "rejected" // it never ran
	// Invalid: the interpreter could not compile it, which may be the snippet's
	// fault or its own. It never ran.
	Invalid = "invalid"
)

var errFrame = errors.New("cannot understand the other process")

// Write writes one frame.
func Write(w io.Writer, kind Kind, body []byte) error {
	return frame.NewWriter(w, MaxFromHost).Write(byte(kind), body)
}

// WriteJSON writes one frame with a message.
func WriteJSON(w io.Writer, kind Kind, message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("cannot encode a message: %w", err)
	}
	return Write(w, kind, body)
}

// Read reads one frame of at most that many bytes. It holds no more memory than
// the other side has sent.
func Read(r io.Reader, most int) (Kind, []byte, error) {
	kind, body, err := frame.NewReader(r, most).Next()
	return Kind(kind), body, err
}

// Decode decodes a message strictly: no unknown field, nothing after it.
func Decode(body []byte, message any) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(message); err != nil {
		return fmt.Errorf("%w: %w", errFrame, err)
	}
	if d.More() {
		return fmt.Errorf("%w: bytes after a message", errFrame)
	}
	return nil
}

// Answer is the body of an answer to request id: a value, or an error's text.
func Answer(id uint64, value []byte, err error) []byte {
	body := binary.BigEndian.AppendUint64(make([]byte, 0, 9+len(value)), id)
	if err != nil {
		return append(append(body, 'e'), err.Error()...)
	}
	return append(append(body, 'v'), value...)
}

// ParseAnswer takes an answer apart.
func ParseAnswer(body []byte) (id uint64, value []byte, failure error, err error) {
	if len(body) < 9 || body[8] != 'v' && body[8] != 'e' {
		return 0, nil, nil, errFrame
	}
	id, value = binary.BigEndian.Uint64(body), body[9:]
	if body[8] == 'e' {
		return id, nil, errors.New(string(value)), nil
	}
	return id, value, nil, nil
}

// ParseOutput takes an output frame apart: stream 0 is stdout, 1 stderr.
func ParseOutput(body []byte) (stream int, text []byte, err error) {
	if len(body) == 0 || body[0] != '1' && body[0] != '2' || len(body) > 1+MaxOutput {
		return 0, nil, errFrame
	}
	return int(body[0] - '1'), body[1:], nil
}

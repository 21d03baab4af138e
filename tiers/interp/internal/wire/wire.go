// Package wire is what the tier's two processes say to one another, beyond what
// every Go session's halves say, which is in package gorun.
//
// The host speaks first: one [Setup], then a [Run] for each snippet. While a
// snippet runs, the worker sends output, host calls and questions about lazy
// texts, and the host answers them by number; the worker closes the snippet
// with an [End]. The worker is hostile: the host reads with [Read], which bounds
// every frame, and gohost.Decode, which accepts exactly the messages below.
package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/rlmhq/rlm/internal/frame"
	"github.com/rlmhq/rlm/internal/gorun"
)

// Kind is the first byte of a frame's body.
type Kind byte

// The kinds of frame, by who sends them.
const (
	KindSetup  Kind = gorun.KindSetup  // host: Setup
	KindRun    Kind = gorun.KindRun    // host: Run
	KindAnswer Kind = gorun.KindAnswer // host: an answer, see gorun.AppendAnswer

	KindReady  Kind = 'Y'           // worker: warm, waiting for Setup; empty
	KindOutput Kind = 'O'           // worker: a byte '1' or '2', then what was written
	KindEnd    Kind = gorun.KindEnd // worker: End
)

// The bounds of a frame's body, by who sends it. An answer may be long: it holds
// what a host function returned or a part of a text.
const (
	MaxFromWorker = gorun.MaxFromGuest
	MaxFromHost   = gorun.MaxFromHost
	MaxOutput     = 64 << 10
)

// Setup says what a session has.
type Setup struct {
	Functions []string      `json:"functions"`
	Inputs    []gorun.Input `json:"inputs"`
	Memory    int64         `json:"memory"`
}

// Run is one snippet.
type Run struct {
	Language string `json:"language"`
	Source   string `json:"source"`
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

// ParseOutput takes an output frame apart: stream 0 is stdout, 1 stderr.
func ParseOutput(body []byte) (stream int, text []byte, err error) {
	if len(body) == 0 || body[0] != '1' && body[0] != '2' || len(body) > 1+MaxOutput {
		return 0, nil, errFrame
	}
	return int(body[0] - '1'), body[1:], nil
}

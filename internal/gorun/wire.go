// Package gorun is the guest's half of a Go session: what the host and its guest
// say to one another, the names that a snippet finds, and (in run.go) the runtime
// of a program that was compiled from a session's snippets. The host's half is
// package gohost.
//
// Tier local compiles this package by the host's toolchain into every program, so
// it may import nothing but the standard library, of Go 1.22. Frames are those of
// package internal/frame. The guest is hostile: the host bounds and checks all
// that it sends.
package gorun

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// The kinds of frame, by who sends them.
const (
	KindSetup  = 'S' // host: Setup
	KindRun    = 'R' // host: Run
	KindAnswer = 'A' // host: an answer, see AppendAnswer

	KindCall  = 'C' // guest: Call
	KindText  = 'T' // guest: Question
	KindFinal = 'F' // guest: Final
	KindEnd   = 'E' // guest: End, or what another guest ends with
)

// The bounds of a frame, by who sends it.
const (
	MaxFromGuest = 32 << 20
	MaxFromHost  = 256 << 20
)

// Setup is what a session has.
type Setup struct {
	Inputs []Input `json:"inputs"`
	Memory int64   `json:"memory"`
	Seed   int64   `json:"seed"` // of math/rand
}

// Input is one of the session's contexts: a text that was sent whole, a lazy
// text of Length characters, or a value.
type Input struct {
	Kind   string          `json:"kind"` // as below; empty for an input that has no form in Go
	Text   string          `json:"text,omitempty"`
	Length int64           `json:"length,omitempty"`
	Value  json.RawMessage `json:"value,omitempty"`
}

// The kinds of Input.
const (
	InputIsText  = "text"
	InputIsLazy  = "lazy"
	InputIsValue = "value"
)

// Run says which snippet runs, from 1.
type Run struct {
	Snippet int `json:"snippet"`
}

// Call asks the host for a function's answer.
type Call struct {
	ID       uint64            `json:"id"`
	Function string            `json:"function"`
	Args     []json.RawMessage `json:"args"`
}

// Question asks about the characters [A, B) of lazy input Input.
type Question struct {
	ID     uint64 `json:"id"`
	Input  int    `json:"input"`
	Op     string `json:"op"`
	A      int64  `json:"a"`
	B      int64  `json:"b"`
	Needle string `json:"needle"`
}

// The operations of Question. Lines are counted from 0.
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
	// Snippet is which one, from 1.
	Snippet int `json:"snippet"`
	// Verdict is one of the verdicts below.
	Verdict string `json:"verdict"`
	// Type, Message and Traceback are the panic.
	Type      string `json:"type"`
	Message   string `json:"message"`
	Traceback string `json:"traceback"`
	// Code is what os.Exit was called with.
	Code int `json:"code"`
}

// The verdicts on a snippet.
const (
	OK     = "ok"
	Raised = "raised"
	Exited = "exited"
)

var errFrame = errors.New("cannot understand the other process")

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

// AppendAnswer makes the body of an answer to request id: a value, or an error's
// text.
func AppendAnswer(id uint64, value []byte, err error) []byte {
	body := binary.BigEndian.AppendUint64(make([]byte, 0, 9+len(value)), id)
	if err != nil {
		return append(append(body, 'e'), err.Error()...)
	}
	return append(append(body, 'v'), value...)
}

// ParseAnswer takes an answer apart.
func ParseAnswer(body []byte) (id uint64, value []byte, failure, err error) {
	if len(body) < 9 || body[8] != 'v' && body[8] != 'e' {
		return 0, nil, nil, errFrame
	}
	id, value = binary.BigEndian.Uint64(body), body[9:]
	if body[8] == 'e' {
		return id, nil, errors.New(string(value)), nil
	}
	return id, value, nil, nil
}

func writeFrame(w io.Writer, kind byte, body []byte) error {
	frame := binary.LittleEndian.AppendUint32(make([]byte, 0, 5+len(body)), uint32(len(body)))
	_, err := w.Write(append(append(frame, kind), body...))
	return err
}

func readFrame(r io.Reader) (kind byte, body []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > MaxFromHost {
		return 0, nil, errFrame
	}
	body = make([]byte, n)
	_, err = io.ReadFull(r, body)
	return head[4], body, err
}

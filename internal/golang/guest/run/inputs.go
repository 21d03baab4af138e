package run

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Session describes a session to its program before the first snippet. Its JSON is the source of
// the order that configures the program.
type Session struct {
	// Memory is the snippets' limit, in bytes. Seed seeds package math/rand.
	Memory int64 `json:"memory"`
	Seed   int64 `json:"seed"`
}

// Setup describes the functions and inputs of a session.
type Setup struct {
	Functions []string
	Inputs    []Input
	// Out reports that snippets have the folder for files.
	Out bool
}

// Input is one of the session's contexts.
type Input struct {
	// Kind is one of the kinds below.
	Kind string
	// Length is the length of a text, in characters.
	Length int64
}

// mostWhole is the maximum size, in bytes, of a text that is passed as a string.
const mostWhole = 64 << 10

// KindOf returns the kind of a text input, given its size in bytes and the number of bytes that are
// invalid UTF-8.
func KindOf(bytes, invalid int64) string {
	if bytes > mostWhole || invalid > 0 {
		return InputIsLazy
	}
	return InputIsText
}

// Setup requests the session's functions and inputs from the host.
func (l *Link) Setup() (Setup, error) {
	raw, err := l.Ask("i")
	if err != nil {
		return Setup{}, err
	}

	var said struct {
		Functions []struct{ Name string }
		Inputs    []struct {
			Kind                  string
			Chars, Bytes, Invalid int64
		}
		Out bool
	}
	if err := json.Unmarshal(raw, &said); err != nil {
		return Setup{}, fmt.Errorf("cannot parse the host's message: %w", err)
	}

	s := Setup{Out: said.Out}
	for _, f := range said.Functions {
		s.Functions = append(s.Functions, f.Name)
	}
	for _, in := range said.Inputs {
		kind := InputIsNone
		switch in.Kind {
		case "value":
			kind = InputIsValue
		case "text":
			kind = KindOf(in.Bytes, in.Invalid)
		}
		s.Inputs = append(s.Inputs, Input{kind, in.Chars})
	}
	return s, nil
}

// Value returns input number n, which must not be text.
func (l *Link) Value(n int) (any, error) {
	raw, err := l.Ask("j" + strconv.Itoa(n))
	if err != nil {
		return nil, err
	}

	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, fmt.Errorf("cannot read input %d: %w", n, err)
	}
	return v, nil
}

// The kinds of Input.
const (
	InputIsText  = "text"  // a string
	InputIsLazy  = "lazy"  // a Text
	InputIsValue = "value" // decoded JSON
	InputIsNone  = ""      // no form in Go
)

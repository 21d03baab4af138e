// Package run is the guest's half of a Go session: the names that snippets can use, their
// requests to the host, and, in program.go, the runtime of a program compiled from a session's
// snippets. Package session is the host's half.
//
// A go command compiles this package into every program, so it imports only the
// standard library, of Go 1.22, and packages that do the same.
package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/rlmhq/rlm/internal/session/wire"
)

// Session describes a session to its program before the first snippet.
// It is the source of the order that configures the program.
type Session struct {
	// Memory is the snippets' limit, in bytes. Seed seeds package math/rand.
	Memory int64 `json:"memory"`
	Seed   int64 `json:"seed"`
}

// Link is the guest's end of the connection. It is safe for concurrent use.
type Link struct {
	// Send sends one frame, after the snippet's earlier output.
	Send func(kind byte, payload []byte) error

	mu      sync.Mutex // guards what follows
	last    uint32     // number of the last request
	waiting map[uint32]chan<- wire.Answer
}

// TakeAnswer passes the payload of an answer to the request that waits for it.
func (l *Link) TakeAnswer(payload []byte) error {
	answer, err := wire.ParseAnswer(payload)
	if err != nil {
		return err
	}
	answer.Data = append([]byte(nil), answer.Data...)

	l.mu.Lock()
	waiter := l.waiting[answer.Number]
	delete(l.waiting, answer.Number)
	l.mu.Unlock()
	if waiter != nil {
		waiter <- answer
	}
	return nil
}

// Ask sends a request and waits for its answer.
func (l *Link) Ask(request string) ([]byte, error) {
	reply := make(chan wire.Answer, 1)
	l.mu.Lock()
	if l.waiting == nil {
		l.waiting = map[uint32]chan<- wire.Answer{}
	}
	l.last++
	number := l.last
	l.waiting[number] = reply
	l.mu.Unlock()

	payload := append(wire.AppendRequest(nil, number), request...)
	if err := l.Send(wire.KindRequest, payload); err != nil {
		return nil, err
	}

	answer := <-reply
	if answer.Failed {
		return nil, errors.New(string(answer.Data))
	}
	return answer.Data, nil
}

// Tell sends a request without an answer.
func (l *Link) Tell(operation string, body []byte) error {
	payload := append(wire.AppendRequest(nil, wire.NoAnswer), operation...)
	return l.Send(wire.KindRequest, append(payload, body...))
}

// tellJSON sends a request with a JSON operand and without an answer.
func (l *Link) tellJSON(operation string, message any) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	return l.Tell(operation, body)
}

// Exception is a panic, or a wrong program, as the host reports it.
type Exception struct {
	Type      string `json:"type"`
	Message   string `json:"message"`
	Traceback string `json:"traceback"`
	// Code is the argument of os.Exit.
	Code int `json:"code"`
}

// Raise reports the exception that ends the snippet.
func (l *Link) Raise(e Exception) error { return l.tellJSON("e", e) }

// Final sends the session's answer: a value, and the variable's name if it has one. It sends a
// value that JSON cannot encode as text.
func (l *Link) Final(v any, name string) error {
	value, err := encode(v)
	if err != nil {
		value, err = encode(fmt.Sprint(v))
	}
	if err != nil {
		return err
	}
	return l.FinalJSON(value, name)
}

// FinalJSON sends an answer that is JSON already.
func (l *Link) FinalJSON(value json.RawMessage, name string) error {
	return l.tellJSON("f", struct {
		Value json.RawMessage `json:"value"`
		Name  string          `json:"name"`
	}{value, name})
}

func (l *Link) call(function string, args []any) (json.RawMessage, error) {
	encoded := make([]json.RawMessage, len(args))
	for i, a := range args {
		var err error
		if encoded[i], err = encode(a); err != nil {
			return nil, fmt.Errorf("cannot pass argument %d of %s: %w", i+1, function, err)
		}
	}

	operands, err := json.Marshal([]any{encoded, struct{}{}})
	if err != nil {
		return nil, fmt.Errorf("cannot call %s: %w", function, err)
	}
	return l.Ask("c" + function + "\x00" + string(operands))
}

func encode(v any) (json.RawMessage, error) {
	if t, ok := v.(*Text); ok {
		return json.RawMessage(fmt.Sprintf(`{"__rlm_text__":[%d,0,%d]}`, t.input, t.length)), nil
	}
	return json.Marshal(v)
}

// Call calls a host function. encoding/json converts the arguments and the answer.
func (l *Link) Call(function string, args ...any) (any, error) {
	raw, err := l.call(function, args)
	if err != nil {
		return nil, err
	}

	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, fmt.Errorf("cannot read the answer of %s: %w", function, err)
	}
	return v, nil
}

// Query calls the host's llm_query. An answer that is not a string is given as JSON.
func (l *Link) Query(prompt string) (string, error) {
	raw, err := l.call("llm_query", []any{prompt})
	if err != nil {
		return "", err
	}
	if !bytes.HasPrefix(raw, []byte(`"`)) {
		return string(raw), nil
	}

	var text string
	err = json.Unmarshal(raw, &text)
	return text, err
}

// QueryBatched calls llm_query for all prompts at once. Answers are in the order of the
// prompts. The error is the first that occurred.
func (l *Link) QueryBatched(prompts []string) ([]string, error) {
	answers, failures := make([]string, len(prompts)), make([]error, len(prompts))
	var all sync.WaitGroup
	for i, prompt := range prompts {
		all.Add(1)
		go func() {
			defer all.Done()
			answers[i], failures[i] = l.Query(prompt)
		}()
	}
	all.Wait()

	for i, err := range failures {
		if err != nil {
			return answers, fmt.Errorf("prompt %d: %w", i, err)
		}
	}
	return answers, nil
}

// Setup describes the functions and inputs of a session.
type Setup struct {
	Functions []string
	Inputs    []Input
}

// Input is one of the session's contexts.
type Input struct {
	// Kind is one of the kinds below.
	Kind string
	// Length is the length of a text, in characters.
	Length int64
}

// The kinds of Input.
const (
	InputIsText  = "text"  // a string
	InputIsLazy  = "lazy"  // a Text
	InputIsValue = "value" // what JSON decodes to
	InputIsNone  = ""      // it has no form in Go
)

// mostWhole is the size up to which a text is a string, in bytes.
const mostWhole = 64 << 10

// KindOf returns the kind of a text input with that many bytes, of which so many are invalid
// UTF-8.
func KindOf(bytes, invalid int64) string {
	if bytes > mostWhole || invalid > 0 {
		return InputIsLazy
	}
	return InputIsText
}

// Setup asks the host for the session's functions and inputs.
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
	}
	if err := json.Unmarshal(raw, &said); err != nil {
		return Setup{}, fmt.Errorf("cannot parse the host's message: %w", err)
	}

	s := Setup{}
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

// Value returns input number n, which is not a text.
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

// Text returns the text of input number n, with that many characters.
func (l *Link) Text(n int, length int64) *Text { return &Text{link: l, input: n, length: length} }

// Text is a context that stays with the host. Offsets count characters. Its methods
// panic if the host cannot answer.
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

// Slice returns the characters [a, b), clipped to the text.
func (t *Text) Slice(a, b int) string {
	from, to := t.clamp(a), t.clamp(b)
	if from >= to {
		return ""
	}
	return t.ask("s", from, to)
}

func (t *Text) clamp(at int) int64 { return min(max(0, int64(at)), t.length) }

// Find returns the first position of needle at or after from, -1 if none.
func (t *Text) Find(needle string, from int) int {
	return t.askNumber("f", t.clamp(from), t.length, needle)
}

// RFind returns the last position of needle, -1 if none.
func (t *Text) RFind(needle string) int { return t.askNumber("r", 0, t.length, needle) }

// Count returns the number of occurrences of needle.
func (t *Text) Count(needle string) int { return t.askNumber("c", 0, t.length, needle) }

// Contains reports whether the text contains needle.
func (t *Text) Contains(needle string) bool { return t.Find(needle, 0) >= 0 }

// LineCount returns the number of lines.
func (t *Text) LineCount() int { return t.askNumber("p", 0, t.length, "newlines", "") }

// Lines returns the lines a to b-1, without their ends.
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

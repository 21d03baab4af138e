// Package run is the guest's half of a Go session. It contains the names that snippets can use,
// their requests to the host, and, in program.go, the runtime of a program compiled from a
// session's snippets. Package session is the host's half.
//
// A go command compiles this package into every program, so it imports only the standard library of
// Go 1.22, and packages that do the same.
package run

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/rlmhq/rlm/internal/snippet/session/wire"
)

// Link is the guest's end of the connection. It is safe for concurrent use.
type Link struct {
	// Send sends one frame, after the snippet's earlier output.
	Send func(kind byte, payload []byte) error

	mu      sync.Mutex // guards the fields below
	last    uint32     // number of the last request
	waiting map[uint32]chan<- wire.Answer
}

// TakeAnswer passes the payload of an answer to the request that is waiting for it.
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

// Exception is a panic, or an invalid program, as reported to the host.
type Exception struct {
	Type      string `json:"type"`
	Message   string `json:"message"`
	Traceback string `json:"traceback"`
	// Code is the argument of os.Exit.
	Code int `json:"code"`
}

// Raise reports the exception that ends the snippet.
func (l *Link) Raise(e Exception) error { return l.tellJSON("e", e) }

// Final sends the session's answer, which is a value, with the variable's name if there is one. A
// value of a type that JSON cannot encode is sent as a string. NaN and infinity are errors.
func (l *Link) Final(v any, name string) error {
	value, err := encode(v)
	var unsupported *json.UnsupportedValueError
	if errors.As(err, &unsupported) {
		return fmt.Errorf("the answer has %s, which JSON lacks: pass nil or a text in its place", unsupported.Str)
	}
	if err != nil {
		value, err = encode(fmt.Sprint(v))
	}
	if err != nil {
		return err
	}
	return l.FinalJSON(value, name)
}

// FinalJSON sends an answer that is already JSON.
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

// Query calls the host's llm_query. An answer that is not a string is returned as JSON.
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

// QueryBatched calls llm_query for all prompts concurrently. The answers are in the order of the
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

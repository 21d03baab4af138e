package gorun

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// Link is the guest's end of the connection. It is safe for concurrent use.
type Link struct {
	// Send sends one frame with a message, whatever was written before it first.
	Send func(kind byte, message any) error

	mu      sync.Mutex // guards what follows
	next    uint64
	waiting map[uint64]chan<- answer
}

type answer struct {
	value []byte
	err   error
}

// Answered takes the body of an answer frame to who waits for it.
func (l *Link) Answered(body []byte) error {
	id, value, failure, err := ParseAnswer(body)
	if err != nil {
		return err
	}
	l.mu.Lock()
	waiter := l.waiting[id]
	delete(l.waiting, id)
	l.mu.Unlock()
	if waiter != nil {
		waiter <- answer{value, failure}
	}
	return nil
}

// ask sends a request that number makes and waits for its answer.
func (l *Link) ask(kind byte, number func(id uint64) any) ([]byte, error) {
	reply := make(chan answer, 1)
	l.mu.Lock()
	if l.waiting == nil {
		l.waiting = map[uint64]chan<- answer{}
	}
	l.next++
	id := l.next
	l.waiting[id] = reply
	l.mu.Unlock()
	if err := l.Send(kind, number(id)); err != nil {
		return nil, err
	}
	a := <-reply
	return a.value, a.err
}

func (l *Link) call(function string, args []any) (json.RawMessage, error) {
	encoded := make([]json.RawMessage, len(args))
	for i, a := range args {
		var err error
		if encoded[i], err = encode(a); err != nil {
			return nil, fmt.Errorf("cannot pass argument %d of %s: %w", i+1, function, err)
		}
	}
	return l.ask(KindCall, func(id uint64) any { return Call{ID: id, Function: function, Args: encoded} })
}

func encode(v any) (json.RawMessage, error) {
	if t, ok := v.(*Text); ok {
		return json.RawMessage(fmt.Sprintf(`{"__rlm_text__":[%d,0,%d]}`, t.input, t.length)), nil
	}
	return json.Marshal(v)
}

// Call calls a host function. Arguments and the answer are what encoding/json
// makes of them.
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

// Query calls the host's llm_query. An answer that is no string is given as JSON.
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

// QueryBatched calls it for all prompts at once; answers are in their order. The
// error is the first that failed.
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

// Final gives the session's answer: a value, and the variable's name if it has
// one. What has no form in JSON is given as text.
func (l *Link) Final(v any, name string) error {
	value, err := encode(v)
	if err != nil {
		value, err = encode(fmt.Sprint(v))
	}
	if err != nil {
		return err
	}
	return l.Send(KindFinal, Final{Value: value, Name: name})
}

// Lazy is the text that is input number n, of so many characters.
func (l *Link) Lazy(n int, length int64) *Text { return &Text{link: l, input: n, length: length} }

// Text is a context that stays with the host. Offsets count characters. Its
// methods panic if the host cannot answer.
type Text struct {
	link   *Link
	input  int
	length int64
}

func (t *Text) ask(op string, a, b int64, needle string) string {
	raw, err := t.link.ask(KindText, func(id uint64) any {
		return Question{ID: id, Input: t.input, Op: op, A: a, B: b, Needle: needle}
	})
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func (t *Text) number(op string, a, b int64, needle string) int {
	n, err := strconv.Atoi(t.ask(op, a, b, needle))
	if err != nil {
		panic(err)
	}
	return n
}

// String says what the text is, instead of showing how it is reached.
func (t *Text) String() string { return fmt.Sprintf("a text of %d characters", t.length) }

// Len is the number of characters.
func (t *Text) Len() int { return int(t.length) }

// Slice returns the characters [a, b). Both are cut to the text.
func (t *Text) Slice(a, b int) string {
	lo, hi := min(max(0, int64(a)), t.length), min(max(0, int64(b)), t.length)
	if lo >= hi {
		return ""
	}
	return t.ask(OpSlice, lo, hi, "")
}

// Find returns where needle is first at or after from, or -1.
func (t *Text) Find(needle string, from int) int {
	return t.number(OpFind, min(max(0, int64(from)), t.length), t.length, needle)
}

// RFind returns where needle is last, or -1.
func (t *Text) RFind(needle string) int { return t.number(OpRFind, 0, t.length, needle) }

// Count returns how often needle is in the text.
func (t *Text) Count(needle string) int { return t.number(OpCount, 0, t.length, needle) }

// Contains reports whether needle is in the text.
func (t *Text) Contains(needle string) bool { return t.Find(needle, 0) >= 0 }

// LineCount is the number of lines.
func (t *Text) LineCount() int { return t.number(OpLines, 0, t.length, "") }

// Lines returns the lines a to b-1, without their ends.
func (t *Text) Lines(a, b int) []string {
	if a = max(0, a); b <= a {
		return nil
	}
	text := t.ask(OpLine, int64(a), int64(b), "")
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

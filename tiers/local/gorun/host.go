//go:build linux

package gorun

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"sync"
)

// Vars makes variables known to FinalVar: pointers by their names.
func Vars(vars map[string]any) {
	self.mu.Lock()
	defer self.mu.Unlock()
	for name, pointer := range vars {
		self.vars[name] = pointer
	}
}

// InputText is an input that was sent whole.
func InputText(n int) string { return self.setup.Inputs[n].Text }

// InputLazy is an input that stays with the host.
func InputLazy(n int) *Text { return &Text{input: n, length: self.setup.Inputs[n].Length} }

// InputValue is an input that is no text.
func InputValue(n int) any {
	var v any
	if err := json.Unmarshal(self.setup.Inputs[n].Value, &v); err != nil {
		panic(err)
	}
	return v
}

// call makes one host call.
func call(function string, args []any) (json.RawMessage, error) {
	encoded := make([]json.RawMessage, len(args))
	for i, a := range args {
		var err error
		if encoded[i], err = encode(a); err != nil {
			return nil, fmt.Errorf("cannot pass argument %d of %s: %w", i+1, function, err)
		}
	}
	return self.ask(KindCall, func(id uint64) any { return Call{ID: id, Function: function, Args: encoded} })
}

func encode(v any) (json.RawMessage, error) {
	if t, ok := v.(*Text); ok {
		return fmt.Appendf(nil, `{"__rlm_text__":[%d,0,%d]}`, t.input, t.length), nil
	}
	return json.Marshal(v)
}

// CallHost calls a host function.
func CallHost(function string, args ...any) (any, error) {
	raw, err := call(function, args)
	if err != nil {
		return nil, err
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, fmt.Errorf("cannot read the answer of %s: %w", function, err)
	}
	return v, nil
}

// Query calls the host's llm_query.
func Query(prompt string) (string, error) {
	raw, err := call("llm_query", []any{prompt})
	if err != nil {
		return "", err
	}
	if !bytes.HasPrefix(raw, []byte(`"`)) {
		return string(raw), nil // an answer that is no string, as JSON
	}
	var text string
	err = json.Unmarshal(raw, &text)
	return text, err
}

// QueryBatched calls it for all prompts at once.
func QueryBatched(prompts []string) ([]string, error) {
	answers, failures := make([]string, len(prompts)), make([]error, len(prompts))
	var all sync.WaitGroup
	for i, prompt := range prompts {
		all.Add(1)
		go func() {
			defer all.Done()
			answers[i], failures[i] = Query(prompt)
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

// Finish gives the session's answer.
func Finish(v any) { finish(v, "") }

// FinishVar gives the value of a variable.
func FinishVar(name string) {
	self.mu.Lock()
	pointer, ok := self.vars[name]
	self.mu.Unlock()
	if !ok {
		panic("FINAL_VAR: there is no variable " + name)
	}
	finish(reflect.ValueOf(pointer).Elem().Interface(), name)
}

func finish(v any, name string) {
	value, err := encode(v)
	if err != nil {
		value, err = encode(fmt.Sprint(v))
	}
	if err != nil {
		panic(err)
	}
	self.sendJSON(KindFinal, Final{Value: value, Name: name})
}

// Echo shows the value of a trailing expression, strings quoted.
func Echo(v any) {
	switch s := v.(type) {
	case string:
		fmt.Fprintf(os.Stdout, "%q\n", s)
	default:
		if v == nil || reflect.TypeOf(v).Kind() != reflect.Func {
			fmt.Fprintf(os.Stdout, "%+v\n", v)
		}
	}
}

// Text is a context that stays with the host. Offsets count characters. Its
// methods panic if the host cannot answer.
type Text struct {
	input  int
	length int64
}

func (t *Text) ask(op string, a, b int64, needle string) string {
	raw, err := self.ask(KindText, func(id uint64) any {
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

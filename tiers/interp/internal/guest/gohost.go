package guest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/token"
	"go/types"
	"reflect"
	"strconv"
	"strings"
	"sync"

	"github.com/rlmhq/rlm/tiers/interp/internal/wire"
)

// hostSymbols are the names that a session has without declaring them. See the
// tier's README for what they do.
func (s *goSession) hostSymbols(setup wire.Setup) (symbols map[string]reflect.Value, names []string, err error) {
	symbols = map[string]reflect.Value{
		"Call":         reflect.ValueOf(s.hostCall),
		"Query":        reflect.ValueOf(s.query),
		"QueryBatched": reflect.ValueOf(s.queryBatched),
		"FINAL":        reflect.ValueOf(s.final),
		"FINAL_VAR":    reflect.ValueOf(s.finalVar),
		"Text":         reflect.ValueOf((*Text)(nil)),
	}
	for _, name := range setup.Functions {
		if !token.IsKeyword(name) && types.Universe.Lookup(name) == nil && !symbols[name].IsValid() {
			symbols[name] = reflect.ValueOf(func(args ...any) (any, error) { return s.hostCall(name, args...) })
		}
	}
	for i, in := range setup.Inputs {
		var value reflect.Value
		switch {
		case in.Lazy:
			value = reflect.ValueOf(&Text{link: s.link, input: i, length: in.Length})
		case in.Text != nil:
			value = reflect.ValueOf(*in.Text)
		default:
			var v any
			if err := json.Unmarshal(in.Value, &v); err != nil {
				return nil, nil, fmt.Errorf("cannot read input %d: %w", i, err)
			}
			value = reflect.ValueOf(&v).Elem()
		}
		symbols["Context_"+strconv.Itoa(i)] = settable(value)
		if i == 0 {
			symbols["Context"] = settable(value)
		}
	}
	for name := range symbols {
		names = append(names, name)
	}
	return symbols, names, nil
}

// settable makes a value a variable, which the snippet may set.
func settable(value reflect.Value) reflect.Value {
	v := reflect.New(value.Type()).Elem()
	v.Set(value)
	return v
}

// call makes one host call.
func (s *goSession) call(function string, args []any) (json.RawMessage, error) {
	encoded := make([]json.RawMessage, len(args))
	for i, a := range args {
		var err error
		if encoded[i], err = encode(a); err != nil {
			return nil, fmt.Errorf("cannot pass argument %d of %s: %w", i+1, function, err)
		}
	}
	return s.link.ask(wire.KindCall, func(id uint64) any {
		return wire.Call{ID: id, Function: function, Args: encoded}
	})
}

func encode(v any) (json.RawMessage, error) {
	if t, ok := v.(*Text); ok {
		return fmt.Appendf(nil, `{"__rlm_text__":[%d,0,%d]}`, t.input, t.length), nil
	}
	return json.Marshal(v)
}

func (s *goSession) hostCall(function string, args ...any) (any, error) {
	raw, err := s.call(function, args)
	if err != nil {
		return nil, err
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, fmt.Errorf("cannot read the answer of %s: %w", function, err)
	}
	return v, nil
}

func (s *goSession) query(prompt string) (string, error) {
	raw, err := s.call("llm_query", []any{prompt})
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

func (s *goSession) queryBatched(prompts []string) ([]string, error) {
	answers, failures := make([]string, len(prompts)), make([]error, len(prompts))
	var all sync.WaitGroup
	for i, prompt := range prompts {
		all.Go(func() { answers[i], failures[i] = s.query(prompt) })
	}
	all.Wait()
	for i, err := range failures {
		if err != nil {
			return answers, fmt.Errorf("prompt %d: %w", i, err)
		}
	}
	return answers, nil
}

// final gives the session's answer.
func (s *goSession) final(v any) { s.finish(v, "") }

func (s *goSession) finalVar(name string) {
	value, ok := s.yaegi.Globals()[name]
	if !ok || !value.IsValid() || !value.CanInterface() {
		panic(fmt.Sprintf("FINAL_VAR: there is no variable %s", name))
	}
	s.finish(value.Interface(), name)
}

func (s *goSession) finish(v any, name string) {
	value, err := encode(v)
	if err != nil {
		value, err = encode(fmt.Sprint(v))
	}
	if err != nil {
		panic(err)
	}
	s.link.out.flush()
	// A host that is gone ends the worker elsewhere.
	_ = s.link.sendJSON(wire.KindFinal, wire.Final{Value: value, Name: name})
}

// Text is a context that stays with the host. Offsets count characters. Its
// methods panic if the host cannot answer.
type Text struct {
	link   *link
	input  int
	length int64
}

func (t *Text) ask(op string, a, b int64, needle string) string {
	raw, err := t.link.ask(wire.KindText, func(id uint64) any {
		return wire.Text{ID: id, Input: t.input, Op: op, A: a, B: b, Needle: needle}
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
	return t.ask(wire.OpSlice, lo, hi, "")
}

// Find returns where needle is first at or after from, or -1.
func (t *Text) Find(needle string, from int) int {
	return t.number(wire.OpFind, min(max(0, int64(from)), t.length), t.length, needle)
}

// RFind returns where needle is last, or -1.
func (t *Text) RFind(needle string) int { return t.number(wire.OpRFind, 0, t.length, needle) }

// Count returns how often needle is in the text.
func (t *Text) Count(needle string) int { return t.number(wire.OpCount, 0, t.length, needle) }

// Contains reports whether needle is in the text.
func (t *Text) Contains(needle string) bool { return t.Find(needle, 0) >= 0 }

// LineCount is the number of lines.
func (t *Text) LineCount() int { return t.number(wire.OpLines, 0, t.length, "") }

// Lines returns the lines a to b-1, without their ends.
func (t *Text) Lines(a, b int) []string {
	if a = max(0, a); b <= a {
		return nil
	}
	text := t.ask(wire.OpLine, int64(a), int64(b), "")
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

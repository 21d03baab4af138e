package rlm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/rlmhq/rlm/internal/snippet/protocol"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/snippet/wirevalue"
	"github.com/rlmhq/rlm/tiers"
)

// These host functions move values into and out of a session. Only the snippets of Set, Get and Ask
// call them.
const (
	valueIn  = "_session_value_in"
	valueOut = "_session_value_out"
)

// exchange is a value that moves between the host and a snippet.
type exchange struct {
	name  string
	value tiers.Value
	wrong string // why the value cannot be passed to the host
}

// Set binds a Python variable to a Go value, through the value's JSON: a map becomes a dict,
// a slice a list, a struct a dict of its fields.
func (s *Session) Set(ctx context.Context, name string, value any) error {
	data, source, err := encodeVariable(name, value)
	if err == nil {
		err = s.checkVariable(name)
	}
	if err != nil {
		return fmt.Errorf("cannot set %q: %w", name, err)
	}

	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()

	e := &exchange{name: name, value: data}
	if err := s.exchange(ctx, e, source); err != nil {
		return fmt.Errorf("cannot set %q: %w", name, err)
	}
	return nil
}

// encodeVariable returns the JSON of a value, and the snippet that receives it.
func encodeVariable(name string, value any) (data tiers.Value, source string, err error) {
	source = fmt.Sprintf("%s = %s(%q)", name, valueIn, name)
	tagged, ok := value.(wirevalue.Value)
	if !ok {
		data, err = json.Marshal(value)
		return data, source, err
	}

	hasTag, err := wirevalue.Find(tagged)
	if hasTag {
		source = wirevalue.Decoder + fmt.Sprintf(
			"try:\n    %s = _session_decode(%s(%q))\nfinally:\n    del _session_decode", name, valueIn, name)
	}
	return tiers.Value(tagged), source, err
}

// Get decodes the JSON of a Python variable into the value that into points to, like
// [json.Unmarshal]. If JSON cannot represent a part of the variable, the error gives its position;
// examples are a set, bytes, an object, NaN, and a dict with keys that are not strings. A tuple
// becomes a list.
func (s *Session) Get(ctx context.Context, name string, into any) error {
	if err := s.checkVariable(name); err != nil {
		return fmt.Errorf("cannot get %q: %w", name, err)
	}

	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()

	e := &exchange{name: name}
	err = s.exchange(ctx, e, strings.ReplaceAll(handOver, "VALUE", name))
	tagged, mayTag := into.(*wirevalue.Value)
	switch {
	case err != nil:
	case mayTag:
		*tagged, err = s.takeTagged(ctx, e)
	case e.wrong != "":
		err = fmt.Errorf("JSON cannot represent the value: %s%s", name, e.wrong)
	case e.value == nil:
		err = fmt.Errorf("the snippet did not pass the value to the host")
	default:
		err = json.Unmarshal(e.value, into)
	}
	if err != nil {
		return fmt.Errorf("cannot get %q: %w", name, err)
	}
	return nil
}

// takeTagged returns the value that handOver passed. If JSON cannot represent it, takeTagged
// fetches it again in tagged form.
func (s *Session) takeTagged(ctx context.Context, e *exchange) (wirevalue.Value, error) {
	if e.wrong == "" && e.value != nil {
		return wirevalue.Escape(e.value)
	}

	e.wrong, e.value = "", nil
	source := wirevalue.Encoder + fmt.Sprintf(
		"try:\n    %s(_session_encode(%s), '')\nfinally:\n    del _session_encode", valueOut, e.name)
	if err := s.exchange(ctx, e, source); err != nil {
		return nil, err
	}
	if e.value == nil {
		return nil, errors.New("the snippet did not pass the value to the host")
	}
	return wirevalue.Value(e.value), nil
}

// handOver passes the variable VALUE to the host, or explains why JSON cannot represent it. It
// uses no name that a snippet may have rebound, and reads VALUE outside the function, whose local
// names would hide the variable.
const handOver = `def _session_hand_over(given):
    text, whole, real = "".__class__, (0).__class__, (0.0).__class__
    several, fixed, mapping = [].__class__, ().__class__, {}.__class__
    def wrong(value, above):
        kinds = value.__class__.__mro__
        if value is None or whole in kinds:
            return ""
        if text in kinds:
            if value.isascii() or value.encode("utf-8", "replace") == value.encode("utf-8", "surrogatepass"):
                return ""
            return " is not Unicode"
        if real in kinds:
            return "" if value - value == 0 else " is not a finite number"
        for outer in above:
            if outer is value:
                return " contains itself"
        inside = above + [value]
        if several in kinds or fixed in kinds:
            i = 0
            for part in value:
                found = wrong(part, inside)
                if found:
                    return "[" + i.__repr__() + "]" + found
                i += 1
            return ""
        if mapping in kinds:
            for key in value:
                if text not in key.__class__.__mro__:
                    return " has the key " + key.__repr__() + ", which is not a str"
                found = wrong(value[key], inside)
                if found:
                    return "[" + key.__repr__() + "]" + found
            return ""
        return " is of type " + value.__class__.__name__
    found = wrong(given, [])
    if found:
        _session_value_out(None, found)
    else:
        _session_value_out(given, "")
try:
    _session_hand_over(VALUE)
finally:
    del _session_hand_over
`

// isHidden reports whether a name is reserved for functions that are hidden from the model.
func isHidden(name string) bool {
	return strings.HasPrefix(name, "_rlm_") || strings.HasPrefix(name, "_session_")
}

// checkVariable refuses names that cannot be variables of snippets.
func (s *Session) checkVariable(name string) error {
	if err := protocol.CheckName(name); err != nil {
		return fmt.Errorf("the name must be a Python identifier and not a keyword")
	}
	_, taken := protocol.Lookup(name)
	if taken && !protocol.IsCommon(name) || isHidden(name) {
		return fmt.Errorf("the name is reserved")
	}
	return nil
}

// exchange runs a snippet that moves a value.
func (s *Session) exchange(ctx context.Context, e *exchange, source string) error {
	if err := s.offerExchange(ctx); err != nil {
		return err
	}
	s.host.pass(e)
	defer s.host.pass(nil)
	noted := session.Change{Moved: e.name, IsLook: e.value == nil}
	result, err := s.runNoted(ctx, tiers.Job{Language: tiers.Python, Source: source}, noted)
	if err == nil {
		s.lost = result.Lost // no caller sees this result
	}
	switch {
	case err != nil:
		return err
	case result.Exception != nil:
		return fmt.Errorf("%s: %s", result.Exception.Type, result.Exception.Message)
	case result.Status != tiers.StatusOK:
		return fmt.Errorf("the snippet ended as %s", result.Status)
	}
	return nil
}

// offerExchange makes the functions that move values available to snippets.
func (s *Session) offerExchange(ctx context.Context) error {
	if s.exchanges {
		return nil
	}
	err := s.runner.Extend(ctx, nil, []tiers.Function{{Name: valueIn}, {Name: valueOut}})
	s.exchanges = err == nil
	return err
}

// answer answers a host call of the snippet that moves the value.
func (e *exchange) answer(call tiers.Call) (tiers.Value, error) {
	switch {
	case e == nil:
		return nil, fmt.Errorf("no value is being moved")
	case call.Function == valueIn:
		return e.value, nil
	case len(call.Args) != 2:
		return nil, fmt.Errorf("%s takes a value and a text", valueOut)
	}

	if err := json.Unmarshal(call.Args[1], &e.wrong); err != nil {
		return nil, err
	}
	e.value = call.Args[0]
	return tiers.Value("null"), nil
}

package worker

import (
	"fmt"
	"go/token"
	"go/types"
	"reflect"
	"strconv"

	"github.com/rlmhq/rlm/internal/golang/guest/run"
)

// hostSymbols returns the names that a session provides without a declaration. The tier's README
// describes them.
func (s *goSession) hostSymbols(
	setup run.Setup,
) (symbols map[string]reflect.Value, names []string, err error) {
	symbols = map[string]reflect.Value{
		"Call":         reflect.ValueOf(s.link.host.Call),
		"Query":        reflect.ValueOf(s.link.host.Query),
		"QueryBatched": reflect.ValueOf(s.link.host.QueryBatched),
		"FINAL":        reflect.ValueOf(s.final),
		"FINAL_VAR":    reflect.ValueOf(s.finalVar),
		"Text":         reflect.ValueOf((*run.Text)(nil)),
	}

	for _, name := range setup.Functions {
		if !token.IsKeyword(name) && types.Universe.Lookup(name) == nil &&
			!symbols[name].IsValid() {
			symbols[name] = reflect.ValueOf(
				func(args ...any) (any, error) { return s.link.host.Call(name, args...) },
			)
		}
	}

	for i, in := range setup.Inputs {
		var value reflect.Value
		text := s.link.host.Text(i, in.Length)
		switch in.Kind {
		case run.InputIsLazy:
			value = reflect.ValueOf(text)
		case run.InputIsText:
			value = reflect.ValueOf(text.Slice(0, text.Len()))
		default:
			v, err := s.link.host.Value(i)
			if err != nil {
				return nil, nil, err
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

// settable stores a value in a variable that the snippet may assign.
func settable(value reflect.Value) reflect.Value {
	v := reflect.New(value.Type()).Elem()
	v.Set(value)
	return v
}

// final implements FINAL: it records the session's answer.
func (s *goSession) final(v any) { s.finish(v, "") }

func (s *goSession) finalVar(name string) {
	value, ok := s.yaegi.Globals()[name]
	if !ok || !value.IsValid() || !value.CanInterface() {
		panic(fmt.Sprintf("FINAL_VAR: there is no variable %s", name))
	}
	s.finish(value.Interface(), name)
}

func (s *goSession) finish(v any, name string) {
	if err := s.link.host.Final(v, name); err != nil {
		panic(err)
	}
}

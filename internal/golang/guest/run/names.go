//go:build linux

package run

import (
	"fmt"
	"os"
	"reflect"
)

// What follows are the names that the builder puts into a program.

// Vars makes variables known to FinishVar: pointers by their names.
func Vars(vars map[string]any) {
	self.mu.Lock()
	defer self.mu.Unlock()
	for name, pointer := range vars {
		self.vars[name] = pointer
	}
}

// InputText is an input that is a string.
func InputText(n int) string {
	text := InputLazy(n)
	return text.Slice(0, text.Len())
}

// InputLazy is an input that stays with the host.
func InputLazy(n int) *Text { return self.link.Text(n, self.setup.Inputs[n].Length) }

// InputValue is an input that is not a text.
func InputValue(n int) any {
	v, err := self.link.Value(n)
	if err != nil {
		panic(err)
	}
	return v
}

// CallHost calls a host function.
func CallHost(function string, args ...any) (any, error) {
	return self.link.Call(function, args...)
}

// Query calls the host's llm_query.
func Query(prompt string) (string, error) { return self.link.Query(prompt) }

// QueryBatched calls it for all prompts at once.
func QueryBatched(prompts []string) ([]string, error) { return self.link.QueryBatched(prompts) }

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
	if err := self.link.Final(v, name); err != nil {
		panic(err)
	}
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

//go:build linux

package run

import (
	"fmt"
	"os"
	"reflect"
)

// The builder inserts calls of the functions below into programs.

// Vars registers variables for FinishVar, as pointers by name.
func Vars(vars map[string]any) {
	self.mu.Lock()
	defer self.mu.Unlock()
	for name, pointer := range vars {
		self.vars[name] = pointer
	}
}

// InputText returns an input as a string.
func InputText(n int) string {
	text := InputLazy(n)
	return text.Slice(0, text.Len())
}

// InputLazy returns an input that stays on the host.
func InputLazy(n int) *Text { return self.link.Text(n, self.setup.Inputs[n].Length) }

// InputValue returns an input that is not text.
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

// QueryBatched calls llm_query for all prompts concurrently.
func QueryBatched(prompts []string) ([]string, error) { return self.link.QueryBatched(prompts) }

// Finish sends the session's answer.
func Finish(v any) { finish(v, "") }

// FinishVar sends the value of a variable as the session's answer.
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

// Echo prints the value of a trailing expression, with quoted strings.
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

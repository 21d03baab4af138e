package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/sessions"
)

// maxJSON bounds a JSON context, in bytes. The sandbox has it in memory as a whole.
const maxJSON = 64 << 20

// contextFlags are the values of --context and --context-json, in the order of the command
// line.
type contextFlags []contextFlag

// contextFlag is a file, a directory or stdin.
type contextFlag struct {
	name   string
	isJSON bool
}

// add adds the flags. The usage is that of --context.
func (c *contextFlags) add(flags *pflag.FlagSet, usage string) {
	flags.Var(&contextValue{c, false}, "context", usage)
	flags.Var(&contextValue{c, true}, "context-json",
		"JSON `file` that snippets see as a Python value, - for stdin; repeatable")
}

// contextValue is one of the two flags.
type contextValue struct {
	list   *contextFlags
	isJSON bool
}

// Set implements pflag.Value.
func (v *contextValue) Set(name string) error {
	*v.list = append(*v.list, contextFlag{name, v.isJSON})
	return nil
}

// String implements pflag.Value. There is no default.
func (*contextValue) String() string { return "" }

// Type implements pflag.Value.
func (*contextValue) Type() string { return "file" }

// check refuses stdin as two contexts.
func (c *contextFlags) check() error {
	if n := slices.IndexFunc(*c, isStdin); n >= 0 && slices.ContainsFunc((*c)[n+1:], isStdin) {
		return errors.New("--context - can be given only once: stdin can be read only once")
	}
	return nil
}

func isStdin(f contextFlag) bool { return f.name == "-" }

// useStdin reports whether stdin is a context.
func (c *contextFlags) useStdin() bool {
	return slices.ContainsFunc(*c, isStdin)
}

// open makes the contexts. It reads the JSON files.
func (c *contextFlags) open(stdin io.Reader) ([]rlm.Context, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	var all []rlm.Context
	for _, f := range *c {
		switch {
		case f.isJSON:
			value, err := f.readJSON(stdin)
			if err != nil {
				return nil, err
			}
			all = append(all, rlm.Value(f.name, value))
		case f.name == "-":
			all = append(all, rlm.Reader("stdin", stdin, maxStdin))
		default:
			all = append(all, rlm.File(f.name))
		}
	}
	return all, nil
}

// keep returns the contexts as a session keeps them: the paths of files, and copies of all
// else.
func (c *contextFlags) keep(stdin io.Reader) ([]sessions.Context, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	var all []sessions.Context
	for _, f := range *c {
		kept := sessions.Context{Name: f.name}
		var err error
		switch {
		case f.isJSON:
			// The form in which the file keeps it: the next run compares it with that.
			if kept.JSON, err = f.readJSON(stdin); err == nil {
				kept.JSON, err = json.Marshal(kept.JSON)
			}
		case f.name == "-":
			var text string
			text, err = readAll(stdin, sessions.MaxText, "the context from stdin, which the session keeps,")
			kept.Text = []byte(text)
		default:
			kept.Name = ""
			kept.Path, err = filepath.Abs(f.name)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, kept)
	}
	return all, nil
}

// readJSON reads a JSON file.
func (f *contextFlag) readJSON(stdin io.Reader) (json.RawMessage, error) {
	what := "the JSON context " + f.name
	source := stdin
	if f.name != "-" {
		file, err := os.Open(f.name)
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", what, err)
		}
		defer file.Close()
		source = file
	}
	text, err := readAll(source, maxJSON, what)
	if err != nil {
		return nil, err
	}

	if !utf8.ValidString(text) {
		return nil, fmt.Errorf("cannot use %s: it is not UTF-8", what)
	}
	var value json.RawMessage
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return nil, fmt.Errorf("cannot use %s: it is not valid JSON: %w; --context takes any text",
			what, err)
	}
	return value, nil
}

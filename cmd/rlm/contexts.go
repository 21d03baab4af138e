package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/sessions"
	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/internal/data/remote"
	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// maxJSON and maxStdin bound a JSON context, which the sandbox has in memory as a whole, and a
// context from stdin, in bytes.
const (
	maxJSON  = 64 << 20
	maxStdin = 1 << 40
)

// contextFlags are the values of --context and --context-json, in the order of the command
// line, and of the flags that say how files are read.
type contextFlags struct {
	list  []contextFlag
	files sessions.Reading
}

// contextFlag is one context: files and folders, or stdin.
type contextFlag struct {
	variable string // empty without name=
	paths    []string
	isJSON   bool
}

// add adds the flags. The usage is that of --context.
func (c *contextFlags) add(flags *pflag.FlagSet, usage string) {
	flags.Var(&contextValue{c, false}, "context", usage+"; "+
		"PATH may be a pattern; name=PATH names the variable; several paths may have the same name")
	flags.Var(&contextValue{c, true}, "context-json",
		"JSON `file` that snippets see as a Python value, - for stdin; repeatable")
	flags.StringArrayVar(&c.files.Include, "include", nil,
		"`pattern` of the files to read in folders and archives; repeatable")
	flags.StringArrayVar(&c.files.Exclude, "exclude", nil,
		"`pattern` of files and folders to leave out; repeatable")
	flags.BoolVar(&c.files.ReadIgnored, "no-ignore", false,
		"also read files that .gitignore excludes")
	flags.StringVar(&c.files.Encoding, "encoding", "",
		"`encoding` of all contexts, such as shift_jis; detected by default")
	flags.BoolVar(&c.files.NoConvert, "no-convert", false,
		"leave documents as they are, such as PDF, Word, mail and HTML")
	flags.Var((*sizeValue)(&c.files.MaxUnpacked), "max-unpacked",
		"limit of the unpacked `size` of a compressed file or archive (default 64 GiB)")
	flags.Int64Var(&c.files.MaxRatio, "max-ratio", 0,
		"limit of the unpacked size as a `multiple` of the packed one (default 250)")
}

// sizeValue is a flag of a size in bytes.
type sizeValue int64

// Set implements pflag.Value.
func (v *sizeValue) Set(text string) error {
	n, err := humanize.ParseBytes(text)
	if err != nil || n == 0 || n > 1<<62 || strings.Contains(text, ",") { // it drops commas
		return errors.New("give a size such as 10GB")
	}
	*v = sizeValue(n)
	return nil
}

// String implements pflag.Value.
func (v *sizeValue) String() string {
	if *v == 0 {
		return ""
	}
	return humanize.Bytes(uint64(*v))
}

// Type implements pflag.Value.
func (*sizeValue) Type() string { return "size" }

// contextValue is one of the two flags.
type contextValue struct {
	flags  *contextFlags
	isJSON bool
}

// variableName is the beginning of name=PATH.
var variableName = lazyregexp.New(`^([A-Za-z_][A-Za-z0-9_]*)=(.+)$`)

// Set implements pflag.Value.
func (v *contextValue) Set(value string) error {
	flag := contextFlag{paths: []string{value}, isJSON: v.isJSON}
	if m := variableName.FindStringSubmatch(value); m != nil && !exists(value) {
		flag.variable, flag.paths = m[1], []string{m[2]}
	}
	if flag.variable != "" && !v.isJSON {
		for i := range v.flags.list {
			if old := &v.flags.list[i]; old.variable == flag.variable && !old.isJSON {
				old.paths = append(old.paths, flag.paths...)
				return nil
			}
		}
	}
	v.flags.list = append(v.flags.list, flag)
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// String implements pflag.Value. There is no default.
func (*contextValue) String() string { return "" }

// Type implements pflag.Value.
func (*contextValue) Type() string { return "file" }

// check refuses stdin as two contexts.
func (c *contextFlags) check() error {
	n := 0
	for i := range c.list {
		for _, path := range c.list[i].paths {
			if path == "-" {
				n++
			}
		}
		if n > 0 && len(c.list[i].paths) > 1 {
			return errors.New("stdin (-) cannot be one of several paths: pass it as a separate context")
		}
	}
	if n > 1 {
		return errors.New("--context - can be given only once: stdin can be read only once")
	}
	return nil
}

func (f *contextFlag) isStdin() bool { return f.paths[0] == "-" }

// name returns what messages call the context.
func (f *contextFlag) name() string { return strings.Join(f.paths, ", ") }

// useStdin reports whether stdin is a context.
func (c *contextFlags) useStdin() bool {
	return slices.ContainsFunc(c.list, func(f contextFlag) bool { return f.isStdin() })
}

// open makes the contexts. It reads the JSON files. The contexts call note while they are
// unpacked or converted.
func (c *contextFlags) open(e *env, note func(string, ...any)) ([]rlm.Context, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	options := c.files.Options(e.settings.CacheDir, note)
	options.Servers = e.settings.ContextServer
	var all []rlm.Context
	for i := range c.list {
		f := &c.list[i]
		var opened rlm.Context
		switch {
		case f.isJSON:
			value, err := f.readJSON(e)
			if err != nil {
				return nil, err
			}
			opened = rlm.Value(f.name(), value)
		case f.isStdin():
			opened = inputs.Stream(options, "stdin", e.stdin, maxStdin)
		default:
			opened = inputs.Files(options, f.paths...)
		}
		all = append(all, opened.As(f.variable))
	}
	return all, nil
}

// keep returns the contexts as a session keeps them: the paths of files, and copies of all
// else.
func (c *contextFlags) keep(e *env) ([]sessions.Context, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	var all []sessions.Context
	for i := range c.list {
		kept, err := c.list[i].keep(e)
		if err != nil {
			return nil, err
		}
		if kept.JSON == nil {
			kept.Reading = c.files
		}
		all = append(all, kept)
	}
	return all, nil
}

func (f *contextFlag) keep(e *env) (kept sessions.Context, err error) {
	kept.Variable = f.variable
	switch {
	case f.isJSON:
		// The form in which the file keeps it: the next run compares it with that.
		kept.Name = f.name()
		if kept.JSON, err = f.readJSON(e); err == nil {
			kept.JSON, err = json.Marshal(kept.JSON)
		}
	case f.isStdin():
		kept.Name = "stdin"
		kept.Text, err = f.copy(e.stdin)
	case isPipe(f.paths[0]):
		var pipe *os.File
		if pipe, err = e.open(f.paths[0]); err == nil {
			kept.Name = f.paths[0]
			kept.Text, err = f.copy(pipe)
			err = errors.Join(err, pipe.Close())
		}
	default:
		for _, path := range f.paths {
			if remote.IsAddress(path) {
				kept.Paths = append(kept.Paths, path)
				continue
			}
			whole, absErr := filepath.Abs(path)
			kept.Paths, err = append(kept.Paths, whole), errors.Join(err, absErr)
		}
		if len(kept.Paths) == 1 {
			kept.Path, kept.Paths = kept.Paths[0], nil
		}
	}
	return kept, err
}

// copy reads what the session keeps itself.
func (f *contextFlag) copy(source io.Reader) ([]byte, error) {
	text, err := readAll(source, sessions.MaxText, "the context from "+f.name()+", which the session keeps,")
	return []byte(text), err
}

// readJSON reads a JSON file.
func (f *contextFlag) readJSON(e *env) (json.RawMessage, error) {
	what := "the JSON context " + f.name()
	source := e.stdin
	if !f.isStdin() {
		file, err := e.open(f.paths[0])
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
		return nil, fmt.Errorf("cannot use %s: it is not valid JSON: %w: to pass it as text, use --context",
			what, err)
	}
	return value, nil
}

package wiring

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

	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/sessions"
	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/internal/data/remote"
	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/internal/text/quantity"
)

// maxJSON bounds a JSON context, which the sandbox keeps entirely in memory. maxStdin bounds a
// context from stdin. Both are in bytes.
const (
	maxJSON  = 64 << 20
	maxStdin = 1 << 40
)

// ContextFlags are the values of --context and --context-json, in command-line order, and of the
// flags that control how files are read.
type ContextFlags struct {
	List  []contextFlag
	Files sessions.Reading
}

// contextFlag is one context: files and folders, or stdin.
type contextFlag struct {
	Variable string // empty without name=
	Paths    []string
	IsJSON   bool
}

// Add adds the flags. usage describes --context.
func (c *ContextFlags) Add(flags *pflag.FlagSet, usage string) {
	flags.Var(&contextValue{c, false}, "context", usage+"; "+
		"PATH may be a pattern; name=PATH names the variable; several paths may have the same name")
	flags.Var(&contextValue{c, true}, "context-json",
		"JSON `file` that snippets see as a Python value, - for stdin; repeatable")
	flags.StringArrayVar(&c.Files.Include, "include", nil,
		"`pattern` of the files to read in folders and archives; repeatable")
	flags.StringArrayVar(&c.Files.Exclude, "exclude", nil,
		"`pattern` of files and folders to leave out; repeatable")
	flags.BoolVar(&c.Files.ReadIgnored, "no-ignore", false,
		"also read files that .gitignore excludes")
	flags.StringVar(&c.Files.Encoding, "encoding", "",
		"`encoding` of all contexts, such as shift_jis; detected by default")
	flags.StringArrayVar(&c.Files.CSV, "csv", nil,
		"`option` of CSV files, such as header=false, delim=; or nullstr=NA; detected by default; repeatable")
	flags.BoolVar(&c.Files.NoConvert, "no-convert", false,
		"leave documents as they are, such as PDF, Word, mail and HTML")
	flags.Var((*Size)(&c.Files.MaxUnpacked), "max-unpacked",
		"limit of the unpacked `size` of a compressed file or archive (default 64 GiB)")
	flags.Int64Var(&c.Files.MaxRatio, "max-ratio", 0,
		"limit of the unpacked size as a `multiple` of the packed one (default 250)")
}

// Size is a flag for a size in bytes.
type Size int64

// Set implements pflag.Value.
func (v *Size) Set(text string) error {
	n, err := quantity.ParseBytes(text)
	if err != nil || n == 0 || n > 1<<62 || strings.Contains(text, ",") { // the parser drops commas
		return errors.New("give a size such as 10GB")
	}
	*v = Size(n)
	return nil
}

// String implements pflag.Value.
func (v *Size) String() string {
	if *v == 0 {
		return ""
	}
	return quantity.Bytes(*v)
}

// Type implements pflag.Value.
func (*Size) Type() string { return "size" }

// contextValue is one of the two flags.
type contextValue struct {
	flags  *ContextFlags
	isJSON bool
}

// variableName matches the start of name=PATH.
var variableName = lazyregexp.New(`^([A-Za-z_][A-Za-z0-9_]*)=(.+)$`)

// Set implements pflag.Value.
func (v *contextValue) Set(value string) error {
	flag := contextFlag{Paths: []string{value}, IsJSON: v.isJSON}
	if m := variableName.FindStringSubmatch(value); m != nil && !exists(value) {
		flag.Variable, flag.Paths = m[1], []string{m[2]}
	} else if name, _, found := strings.Cut(value, "="); found && name != "" &&
		!strings.ContainsAny(name, `/\*?[{`) && !exists(value) {
		return fmt.Errorf("%s is no Python name: a name has letters without accents, digits and _, "+
			"and does not begin with a digit", name)
	}
	if flag.Variable != "" && !v.isJSON {
		for i := range v.flags.List {
			if old := &v.flags.List[i]; old.Variable == flag.Variable && !old.IsJSON {
				old.Paths = append(old.Paths, flag.Paths...)
				return nil
			}
		}
	}
	v.flags.List = append(v.flags.List, flag)
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

// check refuses stdin for more than one context.
func (c *ContextFlags) check() error {
	n := 0
	for i := range c.List {
		for _, path := range c.List[i].Paths {
			if path == "-" {
				n++
			}
		}
		if n > 0 && len(c.List[i].Paths) > 1 {
			return errors.New("stdin (-) cannot be one of several paths: pass it as a separate context")
		}
	}
	if n > 1 {
		return errors.New("--context - can be given only once: stdin can be read only once")
	}
	return nil
}

func (f *contextFlag) isStdin() bool { return f.Paths[0] == "-" }

// Name returns the name of the context in messages.
func (f *contextFlag) Name() string { return strings.Join(f.Paths, ", ") }

// UseStdin reports whether stdin is a context.
func (c *ContextFlags) UseStdin() bool {
	return slices.ContainsFunc(c.List, func(f contextFlag) bool { return f.isStdin() })
}

// Open makes the contexts. It reads the JSON files. The contexts call note while they are being
// unpacked or converted.
func (c *ContextFlags) Open(e *cli.Env, note func(string, ...any)) ([]rlm.Context, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	options := c.Files.Options(e.Settings.CacheDir, note)
	options.Servers = e.Settings.ContextServer
	var all []rlm.Context
	for i := range c.List {
		f := &c.List[i]
		var opened rlm.Context
		switch {
		case f.IsJSON:
			value, err := f.readJSON(e)
			if err != nil {
				return nil, err
			}
			opened = rlm.Value(f.Name(), value)
		case f.isStdin():
			opened = inputs.Stream(options, "stdin", e.Stdin, maxStdin)
		default:
			opened = inputs.Files(options, f.Paths...)
		}
		all = append(all, opened.As(f.Variable))
	}
	return all, nil
}

// keep returns the contexts as a session stores them: the paths of files, and copies of other
// contexts.
func (c *ContextFlags) keep(e *cli.Env) ([]sessions.Context, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	var all []sessions.Context
	for i := range c.List {
		kept, err := c.List[i].keep(e)
		if err != nil {
			return nil, err
		}
		if kept.JSON == nil {
			kept.Reading = c.Files
		}
		all = append(all, kept)
	}
	return all, nil
}

func (f *contextFlag) keep(e *cli.Env) (kept sessions.Context, err error) {
	kept.Variable = f.Variable
	switch {
	case f.IsJSON:
		// The store contains this form, with which the next run compares its context.
		kept.Name = f.Name()
		if kept.JSON, err = f.readJSON(e); err == nil {
			kept.JSON, err = json.Marshal(kept.JSON)
		}
	case f.isStdin():
		kept.Name = "stdin"
		kept.Text, err = f.copy(e.Stdin)
	case cli.IsPipe(f.Paths[0]):
		var pipe *os.File
		if pipe, err = e.Open(f.Paths[0]); err == nil {
			kept.Name = f.Paths[0]
			kept.Text, err = f.copy(pipe)
			err = errors.Join(err, pipe.Close())
		}
	default:
		for _, path := range f.Paths {
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

// copy reads a context that the session stores as a copy.
func (f *contextFlag) copy(source io.Reader) ([]byte, error) {
	text, err := cli.ReadAll(source, sessions.MaxText, "the context from "+f.Name()+", which the session keeps,")
	return []byte(text), err
}

// readJSON reads a JSON file.
func (f *contextFlag) readJSON(e *cli.Env) (json.RawMessage, error) {
	what := "the JSON context " + f.Name()
	source := e.Stdin
	if !f.isStdin() {
		file, err := e.Open(f.Paths[0])
		if err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", what, err)
		}
		defer file.Close()
		source = file
	}
	text, err := cli.ReadAll(source, maxJSON, what)
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

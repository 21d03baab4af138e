package worker

import (
	"encoding/json"
	"errors"
	"math/big"
	"strconv"
	"strings"

	"github.com/go-python/gpython/py"
	"github.com/go-python/gpython/vm"
)

// pyContext is a gpython context whose only module is builtins. Nothing can be imported, and
// nothing in it opens a file.
type pyContext struct{ store *py.ModuleStore }

var errNoModules = errors.New("modules are not available")

// ResolveAndCompile returns an error.
func (*pyContext) ResolveAndCompile(string, py.CompileOpts) (py.CompileOut, error) {
	return py.CompileOut{}, errNoModules
}

// ModuleInit returns an error.
func (*pyContext) ModuleInit(*py.ModuleImpl) (*py.Module, error) { return nil, errNoModules }

// RunCode runs code.
func (c *pyContext) RunCode(
	code *py.Code, globals, locals py.StringDict, closure py.Tuple,
) (py.Object, error) {
	return vm.EvalCode(c, code, globals, locals, nil, nil, nil, nil, closure)
}

// GetModule returns a module.
func (c *pyContext) GetModule(name string) (*py.Module, error) { return c.store.GetModule(name) }

// Store holds the modules.
func (c *pyContext) Store() *py.ModuleStore { return c.store }

// Close does nothing.
func (*pyContext) Close() error { return nil }

// Done returns nil, because the context does not end.
func (*pyContext) Done() <-chan struct{} { return nil }

// borrowed are gpython's builtins that were proven equal to CPython's. This package replaces all
// others.
var borrowed = []string{
	"abs", "all", "any", "bool", "enumerate", "len", "list", "max", "min", "sorted", "sum", "str",
	// Compiled code needs these exceptions for assertions and loops.
	"StopIteration",
}

func newPyContext(in *pyInterp) (*pyContext, error) {
	impl := py.GetModuleImpl("builtins")
	if impl == nil {
		return nil, errNoModules
	}
	c := &pyContext{store: py.NewModuleStore()}
	module, err := c.store.NewModule(c, impl)
	if err != nil {
		return nil, err
	}

	own := py.StringDict{}
	for _, name := range borrowed {
		own[name] = module.Globals[name]
	}
	for name, method := range map[string]any{
		"print": in.print, "range": pyRangeCall, "str": pyStrCall, "FINAL": in.finish,
		"__sub": pySub, "__mul": pyMul, "__div": pyDiv, "__mod": pyMod, "__split": pySplit,
	} {
		own[name], err = py.NewMethod(name, method, 0, "")
		if err != nil {
			return nil, err
		}
	}

	module.Globals = own
	return c, nil
}

func (in *pyInterp) print(_ py.Object, args py.Tuple, named py.StringDict) (py.Object, error) {
	sep, end := " ", "\n"
	if s, ok := named["sep"].(py.String); ok {
		sep = string(s)
	}
	if s, ok := named["end"].(py.String); ok {
		end = string(s)
	}

	parts := make([]string, len(args))
	for i, a := range args {
		var err error
		if parts[i], err = pyText(a); err != nil {
			return nil, err
		}
	}

	return py.None, in.write(strings.Join(parts, sep) + end)
}

// finish implements FINAL: it stores the answer and ends the snippet with an exception. The
// subset has no try, so nothing can catch it.
func (in *pyInterp) finish(_ py.Object, value py.Object) (py.Object, error) {
	text, err := pyJSON(value)
	if err != nil {
		return nil, err
	}
	in.final = text
	return nil, py.ExceptionNewf(py.SystemExit, "FINAL")
}

func pyStrCall(_ py.Object, value py.Object) (py.Object, error) {
	text, err := pyText(value)
	return py.String(text), err
}

// pySplit implements the method split with a separator. gpython's version accepts an empty
// separator.
func pySplit(_ py.Object, args py.Tuple) (py.Object, error) {
	text, isText := args[0].(py.String)
	sep, isSep := args[1].(py.String)
	if !isText || !isSep || sep == "" {
		return nil, py.ExceptionNewf(py.ValueError, "empty separator")
	}

	parts := strings.Split(string(text), string(sep))
	list := &py.List{Items: make([]py.Object, len(parts))}
	for i, part := range parts {
		list.Items[i] = py.String(part)
	}
	return list, nil
}

// farRange bounds a range: gpython counts in 64 bits and ignores overflow.
const farRange = 1 << 60

func pyRangeCall(_ py.Object, args py.Tuple) (py.Object, error) {
	for _, a := range args {
		if n, ok := a.(py.Int); !ok || n > farRange || n < -farRange {
			return nil, py.ExceptionNewf(py.OverflowError, "range")
		}
	}
	return py.RangeNew(py.RangeType, args, nil)
}

// mostDigits is the maximum number of digits in an integer that CPython prints.
const mostDigits = 4300

var errShown = errors.New("the snippet prints a value that may look different in CPython")

// pyText returns str(value).
func pyText(value py.Object) (string, error) {
	if s, ok := value.(py.String); ok {
		return string(s), nil
	}
	return pyRepr(value)
}

// pyRepr returns repr(value) for the types that the check accepts.
func pyRepr(value py.Object) (string, error) {
	switch v := value.(type) {
	case py.Int:
		return strconv.FormatInt(int64(v), 10), nil
	case *py.BigInt:
		text := (*big.Int)(v).String()
		if len(strings.TrimPrefix(text, "-")) > mostDigits {
			return "", errShown
		}
		return text, nil
	case py.Bool:
		if v {
			return "True", nil
		}
		return "False", nil
	case py.NoneType:
		return "None", nil
	case py.String:
		return quotePython(string(v)), nil
	case *py.List:
		var b strings.Builder
		b.WriteByte('[')
		for i, item := range v.Items {
			if i > 0 {
				b.WriteString(", ")
			}
			text, err := pyRepr(item)
			if err != nil {
				return "", err
			}
			if b.Len()+len(text) > mostPrinted {
				return "", errShown
			}

			b.WriteString(text)
		}
		b.WriteByte(']')
		return b.String(), nil
	}

	return "", errShown
}

// quotePython quotes a string of printable ASCII, tabs and line feeds.
func quotePython(s string) string {
	quote := `'`
	if strings.Contains(s, `'`) && !strings.Contains(s, `"`) {
		quote = `"`
	}
	s = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\t", `\t`, quote, `\`+quote).Replace(s)
	return quote + s + quote
}

// pyJSON encodes a value as JSON.
func pyJSON(value py.Object) ([]byte, error) {
	switch v := value.(type) {
	case py.String:
		return json.Marshal(string(v))
	case py.Bool:
		return json.Marshal(bool(v))
	case py.NoneType:
		return []byte("null"), nil
	case *py.List:
		items := make([]json.RawMessage, len(v.Items))
		for i, item := range v.Items {
			var err error
			if items[i], err = pyJSON(item); err != nil {
				return nil, err
			}
		}
		return json.Marshal(items)
	}

	text, err := pyRepr(value)
	return []byte(text), err
}

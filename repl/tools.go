package repl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/snippet/protocol"
	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/repl/internal/prompts"
	"github.com/rlmhq/rlm/repl/internal/pysyntax"
	"github.com/rlmhq/rlm/schema"
	"github.com/rlmhq/rlm/tiers"
)

// Tool is a function that snippets can call by its name.
type Tool struct {
	// Name is a Python identifier that is not reserved.
	Name string
	// Signature shows how to call it, such as "search(query, limit=10)". Its parameters bind
	// positional arguments to names. If it is empty, the properties of Schema are used.
	Signature string
	// Doc is one or two sentences for the prompt.
	Doc string
	// Notes are further lines for the prompt, after the list of functions. Related tools may
	// share the same Notes, which the prompt shows once.
	Notes string
	// Schema is the JSON Schema of the arguments, an object by parameter names.
	// Nil checks nothing.
	Schema json.RawMessage
	// Timed counts the time of calls as the snippet's running time, which its limits bound. It
	// suits functions that compute for the snippet. Other calls are not limited in time.
	Timed bool
	// Call does the work. Its arguments are hostile, and calls may be concurrent. An error becomes
	// an exception in the snippet, with the same message.
	Call func(ctx context.Context, args map[string]tiers.Value) (tiers.Value, error)
	// Raw replaces Call. It receives the call unchanged, with positional arguments not yet
	// named, and ignores Schema.
	Raw func(ctx context.Context, call tiers.Call) (tiers.Value, error)

	params []string
	check  *schema.Contract
	notes  func() string // instead of Notes, if they are expensive to compute
}

// ErrLater is the error of a tool whose answer comes later, such as a human decision. A named
// run is then parked until Engine.Decide supplies the answer or makes the call again. In other
// runs, the snippet gets an exception.
var ErrLater = errors.New("the answer comes later")

// Tools are the functions of a session: the loop provides those of the protocol, and an embedder
// adds others. Tools implements [tiers.Host].
type Tools struct {
	list   []Tool
	byName map[string]int
}

// reserved are the names of the protocol, which no tool may use. Package pykernel rejects the
// names that the guest itself provides.
var reserved = func() map[string]bool {
	names := map[string]bool{protocol.Stash: true, protocol.Lack: true}
	for _, name := range functionNames() {
		names[name] = true
	}
	return names
}()

// NewTools returns a registry with an embedder's tools.
func NewTools(tools ...Tool) (*Tools, error) {
	t := &Tools{byName: map[string]int{}}
	for _, tool := range tools {
		if reserved[tool.Name] {
			return nil, fmt.Errorf("cannot add tool %q: its name is reserved", tool.Name)
		}
		if tool.Call == nil && tool.Raw == nil {
			return nil, fmt.Errorf("cannot add tool %q: it has no Call", tool.Name)
		}
		if err := t.add(tool); err != nil {
			return nil, err
		}
	}

	return t, nil
}

// With returns a copy of t with further functions, whose names may be reserved. A nil t is treated
// as empty.
func (t *Tools) With(functions ...Tool) (*Tools, error) {
	more := &Tools{byName: map[string]int{}}
	if t != nil {
		more.list, more.byName = slices.Clone(t.list), maps.Clone(t.byName)
	}
	for _, f := range functions {
		if err := more.add(f); err != nil {
			return nil, err
		}
	}

	return more, nil
}

// Only returns a copy of t with only the named tools. It ignores names that t lacks.
func (t *Tools) Only(names []string) *Tools {
	some := &Tools{byName: map[string]int{}}
	if t == nil {
		return some
	}
	for _, tool := range t.list {
		if slices.Contains(names, tool.Name) {
			some.byName[tool.Name] = len(some.list)
			some.list = append(some.list, tool)
		}
	}
	return some
}

// add checks a tool and appends it.
func (t *Tools) add(tool Tool) error {
	if err := protocol.CheckName(tool.Name); err != nil {
		return err
	}
	if _, twice := t.byName[tool.Name]; twice {
		return fmt.Errorf("cannot add tool %q: the name is taken", tool.Name)
	}
	if tool.Schema != nil {
		check, err := schema.Parse(tool.Schema)
		if err != nil {
			return fmt.Errorf("cannot add tool %q: %w", tool.Name, err)
		}
		tool.check = check
	}
	if tool.Signature == "" {
		parameters := ""
		if tool.check != nil {
			parameters = tool.check.Parameters()
		}
		tool.Signature = tool.Name + "(" + parameters + ")"
	}

	sig := tool.Signature
	if !strings.HasPrefix(sig, tool.Name+"(") || !strings.HasSuffix(sig, ")") {
		return fmt.Errorf("cannot add tool %q: its signature %q is not %s(...)",
			tool.Name, sig, tool.Name)
	}
	tool.params = listParameters(sig)

	t.byName[tool.Name] = len(t.list)
	t.list = append(t.list, tool)
	return nil
}

// parameter matches one name in a signature; defaults and annotations follow it.
var parameter = lazyregexp.New(`^\s*\*{0,2}([A-Za-z_]\w*)`)

// listParameters returns the names in a signature, in order.
func listParameters(signature string) []string {
	_, inside, _ := strings.Cut(strings.TrimSuffix(signature, ")"), "(")
	var names []string
	for _, part := range pysyntax.SplitTop(inside) {
		if m := parameter.FindStringSubmatch(part); m != nil {
			names = append(names, m[1])
		}
	}
	return names
}

// Functions returns the names and descriptions that a sandbox receives.
func (t *Tools) Functions() []tiers.Function {
	functions := make([]tiers.Function, 0, len(t.list))
	for _, tool := range t.list {
		doc := tool.Signature + ": " + tool.Doc
		functions = append(functions, tiers.Function{Name: tool.Name, Doc: doc, Timed: tool.Timed})
	}
	return functions
}

// Prompt lists the functions for a system prompt, one per line. Aliases, which have no Doc, are
// left out. The notes of all tools, without duplicates, go after the list.
func (t *Tools) Prompt() (functions, notes string) {
	var lines, texts []string
	for _, tool := range t.list {
		if tool.Doc != "" {
			lines = append(lines, "- `"+tool.Signature+"`: "+tool.Doc)
		}
		note := tool.Notes
		if tool.notes != nil {
			note = tool.notes()
		}
		if note != "" && !slices.Contains(texts, note) {
			texts = append(texts, note)
		}
	}
	return strings.Join(lines, "\n"), strings.Join(texts, "\n\n")
}

// Call answers a host call.
func (t *Tools) Call(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	i, ok := t.byName[call.Function]
	if !ok {
		return nil, fmt.Errorf("unknown function %q", call.Function)
	}
	tool := &t.list[i]
	if tool.Raw != nil {
		return tool.Raw(ctx, call)
	}

	args, err := protocol.Bind(call, tool.params)
	if err != nil {
		return nil, err
	}
	if args, err = tool.checkArguments(args); err != nil {
		return nil, err
	}

	return tool.Call(ctx, args)
}

// checkArguments checks arguments against the tool's schema and returns them coerced.
func (tool *Tool) checkArguments(args map[string]tiers.Value) (map[string]tiers.Value, error) {
	if tool.check == nil {
		return args, nil
	}
	object, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot encode its arguments: %w", tool.Name, err)
	}

	value, violations, err := tool.check.Check(object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tool.Name, err)
	}
	if len(violations) > 0 {
		return nil, fmt.Errorf("%s: the arguments do not match the schema: %s",
			tool.Name, prompts.Join(violations))
	}

	var coerced map[string]tiers.Value
	if err := json.Unmarshal(value, &coerced); err != nil {
		return nil, fmt.Errorf("%s: %w", tool.Name, err)
	}
	return coerced, nil
}

// functionNames returns the functions of the protocol that the host answers.
func functionNames() []string {
	var names []string
	for _, f := range protocol.Functions() {
		names = append(names, f.Name)
	}
	return names
}

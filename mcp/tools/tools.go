package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rlmhq/rlm/internal/snippet/protocol"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/schema"
	"github.com/rlmhq/rlm/tiers"
)

// Limits on a tool.
const (
	maxSchema = 64 << 10 // bytes; a larger schema is ignored
	maxDoc    = 500      // bytes of a description
	maxParams = 100
	maxError  = 4_000 // bytes

	callTime = 5 * time.Minute
)

// tool is a function of a server.
type tool struct {
	server *server
	name   string // the name in Python
	doc    string
	origin *mcp.Tool // the server's description; nil for one of our functions
	once   sync.Once // reads the schema when needed, because a thousand schemas take half a second
	params []param
	isOpen bool             // the tool accepts additional arguments
	check  *schema.Contract // nil if the arguments are not checked
	call   func(ctx context.Context, args map[string]json.RawMessage) (tiers.Value, error)
}

// param is a parameter. Its Python name may differ from the name in the schema.
type param struct {
	name, given, kind string
	required          bool
}

// newTool makes a tool from a server's description.
func newTool(s *server, found *mcp.Tool, taken map[string]bool) *tool {
	t := &tool{
		server: s, name: makeName(found.Name, "_tool", taken), doc: docOf(found), origin: found,
	}

	isWrapped := wrapsResult(found.OutputSchema)
	checkResult := newResultCheck(t)
	given := found.Name
	t.call = func(ctx context.Context, args map[string]json.RawMessage) (tiers.Value, error) {
		result, err := s.callTool(ctx, &mcp.CallToolParams{Name: given, Arguments: args})
		if err != nil {
			return nil, err
		}
		checkResult(result)
		return openResult(result, isWrapped)
	}
	return t
}

// newResultCheck returns a function that warns, once, of a structured result that violates the
// tool's own output schema. Snippets receive the result anyway, because many servers describe their
// results badly.
func newResultCheck(t *tool) func(r *mcp.CallToolResult) {
	compile := sync.OnceValue(func() *schema.Contract {
		document, err := json.Marshal(t.origin.OutputSchema)
		if err != nil || len(document) > maxSchema {
			return nil
		}
		contract, err := schema.Compile(document)
		if err != nil {
			return nil
		}
		return contract
	})

	var once sync.Once
	return func(r *mcp.CallToolResult) {
		if t.server.warn == nil || t.origin.OutputSchema == nil || r.StructuredContent == nil || r.IsError {
			return
		}
		contract := compile()
		value, err := json.Marshal(r.StructuredContent)
		if contract == nil || err != nil {
			return
		}
		_, violations, err := contract.Check(value)
		if err != nil || len(violations) == 0 {
			return
		}
		once.Do(func() {
			t.server.warn(fmt.Sprintf("the result of %s does not match the tool's own output schema: %s",
				t.shown(), oneLine(violations[0].String())))
		})
	}
}

// docOf returns the description of a tool as one line.
func docOf(t *mcp.Tool) string {
	text := cmp.Or(t.Description, t.Title)
	if t.Annotations != nil {
		text = cmp.Or(text, t.Annotations.Title)
	}
	return oneLine(text)
}

// oneLine joins strings to one line of bounded length. It drops characters that are invisible to
// people, because they could hide text that models would read.
func oneLine(parts ...string) string {
	text := strings.ToValidUTF8(strings.Join(parts, " "), "\uFFFD")
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		}
		return -1
	}, text[:min(len(text), 8*maxDoc)])
	return texts.Truncate(strings.Join(strings.Fields(text), " "), maxDoc)
}

// readSchema reads the parameters from the input schema, once. If the schema cannot be understood,
// the tool accepts any named arguments, and the server checks them.
func (t *tool) readSchema() {
	if t.origin != nil {
		t.once.Do(t.compileSchema)
	}
}

func (t *tool) compileSchema() {
	t.isOpen = true
	document, err := json.Marshal(cmp.Or[any](t.origin.InputSchema, true))
	if err != nil || len(document) > maxSchema {
		return
	}

	contract, err := schema.Compile(document)
	if err != nil {
		return
	}
	fields := contract.Fields()
	if len(fields) > maxParams {
		return
	}

	var about struct {
		Required   []string        `json:"required"`
		Additional json.RawMessage `json:"additionalProperties"`
	}
	_ = json.Unmarshal(document, &about) // missing members keep their defaults
	t.check, t.isOpen = contract, len(fields) == 0 && string(about.Additional) != "false"

	taken := map[string]bool{}
	for _, f := range fields {
		t.params = append(t.params, param{
			name: makeName(f.Name, "_", taken), given: f.Name, required: f.Required,
			kind: annotation(f.Contract.Describe()),
		})
	}

	// JSON objects are unordered, but the list of the required members is ordered.
	place := func(p param) int {
		if i := slices.Index(about.Required, p.given); i >= 0 {
			return i
		}
		return len(about.Required)
	}
	slices.SortStableFunc(t.params, func(a, b param) int { return place(a) - place(b) })
}

// annotation returns the description of a type, or "" if it would not fit into a signature.
func annotation(kind string) string {
	switch kind {
	case "anything":
		return ""
	case "number":
		return "float"
	}
	if len(kind) > 60 || strings.ContainsAny(kind, "\n,()[]{}\"'`") {
		return ""
	}
	return kind
}

// signature returns the signature for calling the tool.
func (t *tool) signature() string {
	t.readSchema()
	var parts []string
	for _, p := range t.params {
		part := p.name
		if p.kind != "" {
			part += ": " + p.kind
		}
		if !p.required {
			part += " = None"
		}
		parts = append(parts, part)
	}

	if t.isOpen {
		parts = append(parts, "**arguments")
	}
	return t.shown() + "(" + strings.Join(parts, ", ") + ")"
}

// parameters returns the names of the schema's parameters, for the search.
func (t *tool) parameters() string {
	if t.origin == nil {
		return ""
	}
	object, _ := t.origin.InputSchema.(map[string]any)
	properties, _ := object["properties"].(map[string]any)
	return strings.Join(slices.Sorted(maps.Keys(properties)), " ")
}

// shown returns the name that snippets use.
func (t *tool) shown() string { return t.server.name + "." + t.name }

// function returns the name of the host function.
func (t *tool) function() string { return t.server.name + "__" + t.name }

// run answers a snippet's call.
func (t *tool) run(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	args, err := t.bind(call)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, callTime,
		fmt.Errorf("%s: the server has not answered within %v", t.shown(), callTime))
	defer cancel()

	value, err := t.call(ctx, args)
	if err == nil {
		return value, nil
	}
	err = late(ctx, err)
	if errors.Is(err, mcp.ErrConnectionClosed) || errors.Is(err, io.EOF) || t.server.broken() != nil {
		err = t.server.explain(err)
	}
	return nil, errors.New(t.shown() + ": " + texts.Truncate(err.Error(), maxError))
}

// bind returns the checked arguments by their schema names. The check omits an optional argument
// that is None, unless it may be null.
func (t *tool) bind(call tiers.Call) (map[string]json.RawMessage, error) {
	t.readSchema()
	call.Function = t.shown()

	var names []string
	for _, p := range t.params {
		names = append(names, p.name)
	}

	if t.isOpen {
		for name := range call.Named {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		if len(call.Args) > len(t.params) {
			return nil, fmt.Errorf("%s: give its arguments by name", t.shown())
		}
	}

	given, err := protocol.Bind(call, names)
	if err != nil {
		return nil, err
	}

	args := map[string]json.RawMessage{}
	for name, value := range given {
		i := slices.IndexFunc(t.params, func(p param) bool { return p.name == name })
		if i >= 0 {
			name = t.params[i].given
		}
		args[name] = value
	}

	return t.checked(args)
}

// checked returns the arguments, converted to satisfy the schema if necessary.
func (t *tool) checked(args map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	if t.check == nil {
		return args, nil
	}
	object, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot encode its arguments: %w", t.shown(), err)
	}

	value, violations, err := t.check.Check(object)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.shown(), err)
	}
	if len(violations) > 0 {
		parts := make([]string, len(violations))
		for i, v := range violations {
			parts[i] = v.String()
		}
		return nil, fmt.Errorf("%s: the arguments do not match the schema: %s", t.shown(),
			texts.Truncate(strings.Join(parts, "; "), maxError))
	}

	var coerced map[string]json.RawMessage
	if err := json.Unmarshal(value, &coerced); err != nil {
		return nil, fmt.Errorf("%s: %w", t.shown(), err)
	}
	return coerced, nil
}

// wrapsResult reports whether a server wraps each result in an object, because results had to be
// objects in earlier protocol versions.
func wrapsResult(output any) bool {
	object, _ := output.(map[string]any)
	if object["x-fastmcp-wrap-result"] == true {
		return true
	}
	properties, _ := object["properties"].(map[string]any)
	_, has := properties["result"]
	title, _ := object["title"].(string)
	return has && len(properties) == 1 && strings.HasSuffix(title, "Output") // the official SDK for Python
}

// openResult returns the value of a result: its structured content if there is any, or else its
// text, or else a list of its parts.
func openResult(r *mcp.CallToolResult, isWrapped bool) (tiers.Value, error) {
	text, isText := joinTexts(r.Content)
	object, _ := r.StructuredContent.(map[string]any)
	inner, hasInner := object["result"]
	switch {
	case r.IsError:
		return nil, errors.New(cmp.Or(text, "the tool failed"))
	case isWrapped && hasInner && len(object) == 1 && !isTextOf(text, object):
		return json.Marshal(inner)
	case r.StructuredContent != nil:
		return json.Marshal(r.StructuredContent)
	case isText:
		return json.Marshal(text)
	}
	return json.Marshal(r.Content)
}

// isTextOf reports whether a text is the JSON of an object. The text of a wrapped result is the
// JSON of the value inside; the text of a tool's own object with a member "result" is the JSON of
// the whole object.
func isTextOf(text string, object map[string]any) bool {
	encoded, err := json.Marshal(object)
	var same, plain map[string]any
	return err == nil && json.Unmarshal([]byte(text), &same) == nil &&
		json.Unmarshal(encoded, &plain) == nil && reflect.DeepEqual(same, plain)
}

// joinTexts returns the joined texts of a content, and whether the content has only texts.
func joinTexts(content []mcp.Content) (text string, isText bool) {
	var all []string
	for _, part := range content {
		if t, ok := part.(*mcp.TextContent); ok {
			all = append(all, t.Text)
		}
	}
	return strings.Join(all, "\n"), len(all) == len(content)
}

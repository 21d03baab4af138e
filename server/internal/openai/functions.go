package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/schema"
)

// functions are a client's functions. The model requests calls in the form of its answer, so that
// every model can, directly and at the end of a run.
type functions struct {
	list   []tool
	must   bool            // the answer is a call
	single bool            // at most one call
	format json.RawMessage // the contract of an answer in words, nil for any text
}

// call is a call that the model requests.
type call struct {
	ID        string `json:"id,omitempty"` // where the model reads its earlier calls
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // a JSON object
}

// reply is the answer of a model that knows functions.
type reply struct {
	Answer string `json:"answer,omitempty"`
	Calls  []call `json:"calls"`
}

// The bounds of functions.
const (
	maxFunctions     = 128
	maxFunctionBytes = 256 << 10 // of all together
)

var functionName = lazyregexp.New(`^[a-zA-Z0-9_-]{1,64}$`)

// anyArguments is the contract of a function without parameters.
var anyArguments = json.RawMessage(`{"type":"object"}`)

// toolChoice is the client's restriction of the model's choice, if it is not a word.
type toolChoice struct {
	named

	Type         string      `json:"type"`
	Mode         string      `json:"mode"`
	Tools        []named     `json:"tools"`
	AllowedTools *toolChoice `json:"allowed_tools"` // of chat completions
}

// named identifies a function, in either form.
type named struct {
	Name     string `json:"name"`
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
}

func (n *named) name() string { return cmp.Or(n.Name, n.Function.Name) }

// functions returns the functions among the tools, nil for none.
func (s *shared) functions() (*functions, error) {
	f, size := &functions{single: s.ParallelToolCalls != nil && !*s.ParallelToolCalls}, 0
	for i := range s.Tools {
		if t := &s.Tools[i]; t.Type == kindFunction {
			f.list = append(f.list, *t)
			size += len(t.Parameters) + len(t.Description)
		}
	}
	if len(f.list) > maxFunctions || size > maxFunctionBytes {
		return nil, problem.Bad("tools", "there are %d functions of %d bytes, more than %d functions or %d bytes",
			len(f.list), size, maxFunctions, maxFunctionBytes)
	}

	for i := range f.list {
		if err := f.list[i].check(f.list[:i]); err != nil {
			return nil, err
		}
	}

	if err := f.choose(s.ToolChoice); err != nil || len(f.list) == 0 {
		return nil, err
	}
	return f, nil
}

// check refuses a function that cannot be called. Others are the functions before it.
func (t *tool) check(others []tool) error {
	isSame := func(o tool) bool { return o.Name == t.Name }
	switch {
	case !functionName.MatchString(t.Name):
		return problem.Bad("tools", "a function has the name %.80q: give letters, digits, _ and -", t.Name)
	case slices.ContainsFunc(others, isSame):
		return problem.Bad("tools", "there are two functions %q: give each a name", t.Name)
	}

	if _, err := t.contract(); err != nil {
		return problem.Bad("tools", "cannot use the parameters of function %s: %v", t.Name, err)
	}
	return nil
}

// contract returns the contract of the arguments.
func (t *tool) contract() (*schema.Contract, error) {
	if len(t.Parameters) == 0 || string(t.Parameters) == "null" {
		return schema.Compile(anyArguments)
	}
	return schema.Parse(t.Parameters)
}

// choose applies the client's restriction of the model's choice.
func (f *functions) choose(raw json.RawMessage) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var word string
	if json.Unmarshal(raw, &word) == nil {
		return f.limit(word, nil)
	}
	var c toolChoice
	if err := json.Unmarshal(raw, &c); err != nil {
		return problem.Bad("tool_choice", "give a word, or an object with a type")
	}

	switch c.Type {
	case kindFunction:
		return f.limit("required", []named{c.named})
	case "allowed_tools":
		if c.AllowedTools != nil {
			c = *c.AllowedTools
		}
		return f.limit(cmp.Or(c.Mode, "auto"), c.Tools)
	}
	return nil // a tool of the server, which its run may use anyway
}

// limit keeps only the named functions, or all if names is nil, and sets whether one must be
// called.
func (f *functions) limit(mode string, names []named) error {
	for i := range names {
		if !slices.ContainsFunc(f.list, func(t tool) bool { return t.Name == names[i].name() }) {
			return problem.Bad("tool_choice", "there is no function %.80q among the tools", names[i].name())
		}
	}
	if names != nil {
		f.list = slices.DeleteFunc(f.list, func(t tool) bool {
			return !slices.ContainsFunc(names, func(n named) bool { return n.name() == t.Name })
		})
	}

	switch mode {
	case "auto":
	case "none":
		f.list = nil
	case "required":
		f.must = true
	default:
		return problem.Bad("tool_choice", "unknown choice %.40q: give auto, none or required", mode)
	}
	return nil
}

// schema returns the contract of the model's answer.
func (f *functions) schema() (json.RawMessage, error) {
	var names []string
	for i := range f.list {
		names = append(names, f.list[i].Name)
	}
	calls := fields{"type": "array", "items": fields{
		"type": "object", "additionalProperties": false, "required": []string{"name", "arguments"},
		"properties": fields{"name": fields{"enum": names}, "arguments": fields{"type": "string"}},
	}}
	if f.single {
		calls["maxItems"] = 1
	}

	if f.must {
		calls["minItems"] = 1
	}
	return marshal(fields{
		"type": "object", "additionalProperties": false, "required": []string{"calls", "answer"},
		"properties": fields{"calls": calls, "answer": fields{"type": "string"}},
	})
}

// instructions describes the functions to the model.
func (f *functions) instructions() (string, error) {
	var b strings.Builder
	b.WriteString("You can ask the user's program to call functions. These are there, as JSON:\n")
	for i := range f.list {
		line, err := marshal(f.list[i])
		if err != nil {
			return "", err
		}
		b.Write(append(line, '\n'))
	}
	b.WriteString(`Answer with a JSON object. Its member "calls" is a list of calls, each with the "name" of a ` +
		`function and its "arguments", a JSON object that is written as a string. ` +
		"The results come with the next message.")

	switch {
	case f.must:
		b.WriteString(` Call at least one function, and leave "answer" empty.`)
	case len(f.format) > 0:
		b.WriteString(` If no call is needed, "calls" is empty and "answer" is a text: JSON that meets the schema `)
		b.Write(f.format)
	default:
		b.WriteString(` If no call is needed, "calls" is empty and "answer" is your answer.`)
	}
	if f.single {
		b.WriteString(" Call one function at most.")
	}
	return b.String(), nil
}

// split extracts the calls from a validated answer.
func (f *functions) split(got *answered) error {
	if f == nil || got.text == "" || got.incomplete != "" {
		return nil
	}
	var r reply
	err := json.Unmarshal([]byte(got.text), &r)
	for i := range r.Calls {
		if err == nil {
			err = f.check(&r.Calls[i])
		}
	}

	if err == nil && len(r.Calls) == 0 && len(f.format) > 0 {
		r.Answer, err = meet(f.format, r.Answer)
	}
	if err != nil {
		return problem.New(http.StatusBadGateway, "contract_broken", "cannot use the model's answer: %v", err)
	}
	got.text, got.calls = r.Answer, r.Calls
	return nil
}

// check validates the arguments of a call against the parameters of its function.
func (f *functions) check(c *call) error {
	at := slices.IndexFunc(f.list, func(t tool) bool { return t.Name == c.Name })
	if at < 0 {
		return fmt.Errorf("there is no function %.80q", c.Name)
	}

	contract, err := f.list[at].contract()
	if err != nil {
		return err
	}
	value, violations, err := contract.Check(json.RawMessage(cmp.Or(c.Arguments, "{}")))
	if err == nil && len(violations) > 0 {
		err = fmt.Errorf("the arguments of %s: %s", c.Name, violations[0])
	}
	if err != nil {
		return err
	}

	var b bytes.Buffer
	err = json.Compact(&b, value)
	c.Arguments = b.String()
	return err
}

// meet makes an answer in words satisfy its contract.
func meet(contract json.RawMessage, answer string) (string, error) {
	c, err := schema.Parse(contract)
	if err != nil {
		return "", err
	}

	value, violations, err := c.CheckReply(answer)
	if err == nil && len(violations) > 0 {
		err = fmt.Errorf("the answer: %s", violations[0])
	}
	return string(value), err
}

// offer presents the functions of a request to the model. The other settings were already read.
func (q *asked) offer(s *shared) error {
	f, err := s.functions()
	if q.functions = f; err != nil || f == nil {
		return err
	}

	f.format = q.Schema
	if q.Schema, err = f.schema(); err != nil {
		return err
	}
	told, err := f.instructions()
	q.System = strings.TrimSpace(q.System + "\n\n" + told)
	return err
}

// earlierCall is a call or its result, as a message of a conversation.
type earlierCall struct {
	Type      string `json:"type"`
	ID        string `json:"call_id"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
}

// text returns the form of the call that the model reads. A call's result is part of it.
func (c *earlierCall) text(result string) string {
	if c.Type == kindCallResult {
		return "Result of the call " + c.ID + ":\n" + result
	}
	text, err := marshal(reply{Calls: []call{{c.ID, c.Name, c.Arguments}}})
	if err != nil {
		return c.Name
	}
	return string(text)
}

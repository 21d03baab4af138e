package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/schema"
)

// functions are a client's functions, including its custom tools. The model requests calls by the
// format of its answer, so that every model can do so, both directly and at the end of a run.
type functions struct {
	list   []tool
	must   bool              // the answer must be a call
	single bool              // at most one call
	format json.RawMessage   // the contract of an answer without calls; nil allows any text
	native []json.RawMessage // for models that can call tools
}

// call is a call that the model requests.
type call struct {
	ID        string `json:"id,omitempty"` // where the model reads its earlier calls
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // a JSON object, or the text for a custom tool

	kind     string // kindFunction or kindCustom; empty where the model reads its earlier calls
	isNested bool   // as in the tool of this call
}

// reply is the answer of a model to which functions were offered.
type reply struct {
	Answer string `json:"answer,omitempty"`
	Calls  []call `json:"calls"`
}

// These are the bounds of functions.
const (
	maxFunctions     = 128
	maxFunctionBytes = 256 << 10 // all functions together
)

// functions returns the functions among the tools, or nil if there are none.
func (s *shared) functions() (*functions, error) {
	f, size := &functions{single: s.ParallelToolCalls != nil && !*s.ParallelToolCalls}, 0
	for i := range s.Tools {
		if t := &s.Tools[i]; t.Type == kindFunction || t.Type == kindCustom {
			f.list = append(f.list, *t)
			size += len(t.Parameters) + len(t.Description) + len(t.Format)
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

// choose applies the client's restriction on which functions the model may call.
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
	case kindFunction, kindCustom:
		return f.limit("required", []named{c.named})
	case "allowed_tools":
		if c.AllowedTools != nil {
			c = *c.AllowedTools
		}
		return f.limit(cmp.Or(c.Mode, "auto"), c.Tools)
	}
	return nil // a tool of the server, which a run may always use
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
	if slices.ContainsFunc(f.list, func(t tool) bool { return t.Type == kindCustom }) {
		b.WriteString(` The "arguments" of a tool of the type "custom" are its input instead: a plain text.`)
	}

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
	r, err := reply{Answer: got.text}, error(nil)
	if !got.isPlain {
		r = reply{}
		err = json.Unmarshal([]byte(got.text), &r)
	}
	if f.single && len(r.Calls) > 1 {
		r.Calls = r.Calls[:1] // the model can request the others after the result
	}
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

	t := &f.list[at]
	c.kind, c.isNested = t.Type, t.isNested
	var err error
	c.Arguments, err = t.arguments(c.Arguments)
	return err
}

// meet returns the value in an answer without calls that satisfies the contract.
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

// offer adds the functions of a request to the question. The other settings were already read.
func (q *asked) offer(s *shared) error {
	f, err := s.functions()
	if q.functions = f; err != nil || f == nil {
		return err
	}

	f.format = q.Schema
	if q.Schema, err = f.schema(); err != nil {
		return err
	}
	for i := range f.list {
		one, err := f.list[i].native()
		if err != nil {
			return err
		}
		f.native = append(f.native, one)
	}
	told, err := f.instructions()
	q.System = strings.TrimSpace(q.System + "\n\n" + told)
	return err
}

// earlierCall is a call or the result of a call, as a message of a conversation.
type earlierCall struct {
	Type      string `json:"type"`
	ID        string `json:"call_id"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
}

func (c *earlierCall) isResult() bool {
	return c.Type == kindCallResult || c.Type == kindCustomResult
}

// text returns the text with which the model reads the call, including its result.
func (c *earlierCall) text(result string) string {
	if c.isResult() {
		return "Result of the call " + c.ID + ":\n" + result
	}
	text, err := marshal(reply{Calls: []call{{ID: c.ID, Name: c.Name, Arguments: c.Arguments}}})
	if err != nil {
		return c.Name
	}
	return string(text)
}

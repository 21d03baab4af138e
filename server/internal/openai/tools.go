package openai

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/schema"
)

// tool is a tool that a client offers to the model: the sandbox, which this server provides, or a
// function of the client. The input of a custom tool is a string; that of other tools is a JSON
// object.
type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
	Format      json.RawMessage `json:"format"` // the grammar of a custom tool's input

	// isNested is true for the format of chat completions. Cursor sends custom tools to chat
	// completions in the format of responses, and expects calls of these tools as calls of
	// functions.
	isNested bool
}

// These are the kinds of tools that the client executes.
const (
	kindFunction = "function"
	kindCustom   = "custom"
)

// UnmarshalJSON implements [json.Unmarshaler]. Chat completions nest the function in the object.
func (t *tool) UnmarshalJSON(data []byte) error {
	type plain tool
	both := struct {
		*plain

		Function *plain `json:"function"`
		Custom   *plain `json:"custom"`
	}{(*plain)(t), nil, nil}
	if err := json.Unmarshal(data, &both); err != nil {
		return err
	}

	if inner := cmp.Or(both.Function, both.Custom); inner != nil {
		kind := t.Type
		*t = tool(*inner)
		t.Type, t.isNested = kind, true
	}
	return nil
}

// MarshalJSON implements [json.Marshaler]. Clients check that all members of a function are
// present.
func (t tool) MarshalJSON() ([]byte, error) {
	all := fields{"type": t.Type}
	switch t.Type {
	case kindFunction:
		all["name"], all["description"], all["parameters"], all["strict"] = t.Name, nil, nil, t.Strict
		if len(t.Parameters) > 0 {
			all["parameters"] = t.Parameters
		}
	case kindCustom:
		all["name"] = t.Name
		if len(t.Format) > 0 {
			all["format"] = t.Format
		}
	default:
		return marshal(all)
	}

	if t.Description != "" {
		all["description"] = t.Description
	}
	return marshal(all)
}

var functionName = lazyregexp.New(`^[a-zA-Z0-9_-]{1,64}$`)

// anyArguments is the contract of a function without parameters.
var anyArguments = json.RawMessage(`{"type":"object"}`)

// check refuses a tool that cannot be called. Others are the tools before it. The parameters are
// passed on in any dialect of JSON Schema, because the model reads them.
func (t *tool) check(others []tool) error {
	isSame := func(o tool) bool { return o.Name == t.Name }
	parameters := bytes.TrimSpace(t.Parameters)

	switch {
	case !functionName.MatchString(t.Name):
		return problem.Bad("tools", "a function has the name %.80q: give letters, digits, _ and -", t.Name)
	case slices.ContainsFunc(others, isSame):
		return problem.Bad("tools", "there are two functions %q: give each a name", t.Name)
	case len(parameters) > 0 && parameters[0] != '{' && string(parameters) != "null":
		return problem.Bad("tools", "the parameters of function %s are %.40s: give a JSON Schema, which is an object",
			t.Name, parameters)
	}
	return nil
}

// contract returns the contract of the arguments. If this server cannot check the parameters, the
// contract allows any object.
func (t *tool) contract() (*schema.Contract, error) {
	if len(t.Parameters) > 0 && string(t.Parameters) != "null" {
		if c, err := schema.Parse(t.Parameters); err == nil {
			return c, nil
		}
	}
	return schema.Compile(anyArguments)
}

// native returns the tool for models that can call tools. Such models call a custom tool with an
// object.
func (t *tool) native() (json.RawMessage, error) {
	description, parameters := t.Description, t.Parameters
	if len(parameters) == 0 || string(parameters) == "null" {
		parameters = json.RawMessage(`{"type":"object","properties":{}}`)
	}

	if t.Type == kindCustom {
		description = strings.TrimSpace(description + "\n" + string(t.Format))
		parameters = json.RawMessage(`{"type":"object","properties":{"input":{"type":"string"}},` +
			`"required":["input"],"additionalProperties":false}`)
	}
	return marshal(fields{"name": t.Name, "description": description, "parameters": parameters})
}

// arguments returns the arguments of a call in the client's format, or an error if they are
// invalid.
func (t *tool) arguments(given string) (string, error) {
	if t.Type == kindCustom {
		var wrapped map[string]json.RawMessage
		var text string
		if json.Unmarshal([]byte(given), &wrapped) == nil && len(wrapped) == 1 &&
			json.Unmarshal(wrapped["input"], &text) == nil {
			return text, nil // many models support only this format
		}
		return given, nil
	}

	contract, err := t.contract()
	if err != nil {
		return "", err
	}
	value, violations, err := contract.Check(json.RawMessage(cmp.Or(given, "{}")))
	if err == nil && len(violations) > 0 {
		err = fmt.Errorf("the arguments of %s: %s", t.Name, violations[0])
	}
	if err != nil {
		return "", err
	}

	var b bytes.Buffer
	err = json.Compact(&b, value)
	return b.String(), err
}

// toolChoice is the client's restriction on which tools the model may call, if it is an object.
type toolChoice struct {
	named

	Type         string      `json:"type"`
	Mode         string      `json:"mode"`
	Tools        []named     `json:"tools"`
	AllowedTools *toolChoice `json:"allowed_tools"` // sent by chat completions
}

// named identifies a function, in either format.
type named struct {
	Name     string `json:"name"`
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
	Custom struct {
		Name string `json:"name"`
	} `json:"custom"`
}

func (n *named) name() string { return cmp.Or(n.Name, n.Function.Name, n.Custom.Name) }

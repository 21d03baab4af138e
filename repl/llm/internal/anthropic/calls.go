package anthropic

import (
	"encoding/json"
	"slices"

	"github.com/rlmhq/rlm/repl/llm/internal/chat"
	"github.com/rlmhq/rlm/repl/llm/internal/httpclient"
)

// tool is a function that the model may call.
type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema"`
}

// toolChoice restricts the calls of a reply.
type toolChoice struct {
	Type     string `json:"type"`
	IsSingle bool   `json:"disable_parallel_tool_use"`
}

// anyInput is the schema of a function that declares no parameters.
var anyInput = json.RawMessage(`{"type":"object"}`)

// encodeTools converts functions of a request: see [llm.Request].
func encodeTools(functions []json.RawMessage) []tool {
	all := make([]tool, 0, len(functions))
	for _, function := range functions {
		var f struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		}
		if json.Unmarshal(function, &f) != nil {
			continue // the contract in the prompt also describes the tool
		}
		if len(f.Parameters) == 0 || string(f.Parameters) == "null" {
			f.Parameters = anyInput
		}
		all = append(all, tool{f.Name, f.Description, f.Parameters})
	}
	return all
}

// toolUse is the type of a block that calls a tool.
const toolUse = "tool_use"

// content is a block of a reply: a string, or a call of a tool.
type content struct {
	Type  string          `json:"type"`
	Text  string          `json:"text"`
	Name  httpclient.Word `json:"name"`
	Input json.RawMessage `json:"input"`
}

// calls collects the calls of a reply.
type calls []*oneCall

type oneCall struct {
	index     int // of its block
	name      httpclient.Word
	begun     json.RawMessage // the arguments in the first event of the block
	arguments chat.Pieces
}

// begin adds the call of a block, if it has one. A stream begins each with empty arguments.
func (c *calls) begin(index int, block *content) error {
	if block.Type != toolUse {
		return nil
	}
	if err := chat.CheckCalls(len(*c) + 1); err != nil {
		return err
	}
	*c = append(*c, &oneCall{index: index, name: block.Name, begun: block.Input})
	return nil
}

// addDelta adds a piece of the arguments to the call of a block.
func (c *calls) addDelta(index int, piece string) {
	at := slices.IndexFunc(*c, func(one *oneCall) bool { return one.index == index })
	if at >= 0 && piece != "" {
		(*c)[at].arguments.Add(piece)
	}
}

func (c *calls) whole() (all []chat.Call) {
	for _, one := range *c {
		arguments := one.arguments.Text()
		if arguments == "" {
			arguments = string(one.begun)
		}
		if arguments == "" || arguments == "null" {
			arguments = "{}"
		}
		all = append(all, chat.Call{Name: string(one.name), Arguments: arguments})
	}
	return all
}

// isUnclear reports whether the pieces may also mean other arguments.
func (c *calls) isUnclear() bool {
	return slices.ContainsFunc(*c, func(one *oneCall) bool { return one.arguments.IsUnclear() })
}

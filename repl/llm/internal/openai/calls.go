package openai

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/rlmhq/rlm/repl/llm/internal/chat"
	"github.com/rlmhq/rlm/repl/llm/internal/httpclient"
)

// tool is a function that the model may call.
type tool struct {
	Type     string          `json:"type"`
	Function json.RawMessage `json:"function"`
}

func encodeTools(tools []json.RawMessage) []tool {
	all := make([]tool, len(tools))
	for i, t := range tools {
		all[i] = tool{"function", t}
	}
	return all
}

// toolCall is a call, or a piece of one.
type toolCall struct {
	Index    *int            `json:"index"` // in a stream; some servers leave it out
	ID       httpclient.Word `json:"id"`
	Function struct {
		Name      httpclient.Word `json:"name"`
		Arguments arguments       `json:"arguments"`
	} `json:"function"`
}

// arguments is JSON in a string. Some servers send the JSON itself.
type arguments string

// UnmarshalJSON implements [json.Unmarshaler].
func (a *arguments) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}

	if json.Unmarshal(data, (*string)(a)) != nil {
		*a = arguments(data)
	}
	return nil
}

// calls collects the calls of a reply.
type calls struct {
	all     []*oneCall
	isDelta bool // the calls arrive in pieces, so a message repeats them
}

type oneCall struct {
	id, name  httpclient.Word
	index     *int // in a stream
	arguments chat.Pieces
}

// addMessage adds the calls of a message, which are complete. With each piece, some servers send a
// message with all calls up to then.
func (c *calls) addMessage(whole httpclient.List[toolCall]) error {
	if c.isDelta || len(whole) == 0 {
		return nil
	}

	c.all = nil
	for _, w := range whole {
		if err := c.begin(&w); err != nil {
			return err
		}
	}
	return nil
}

// addDelta adds pieces of calls. Servers number the calls from 0 or from 1. A piece without an
// index belongs to the last call, unless it has a new ID.
func (c *calls) addDelta(pieces httpclient.List[toolCall]) error {
	for _, p := range pieces {
		if !c.isDelta {
			c.isDelta, c.all = true, nil
		}

		one := c.find(&p)
		if one == nil {
			if err := c.begin(&p); err != nil {
				return err
			}
			continue
		}
		one.id = cmp.Or(one.id, p.ID)
		one.name = cmp.Or(one.name, p.Function.Name)
		one.arguments.Add(string(p.Function.Arguments))
	}
	return nil
}

// find returns the call to which a piece belongs, or nil if the call is new.
func (c *calls) find(p *toolCall) *oneCall {
	if p.Index != nil {
		for _, one := range c.all {
			if one.index != nil && *one.index == *p.Index {
				return one
			}
		}
		return nil
	}

	last := len(c.all) - 1
	if last < 0 || p.ID != "" && p.ID != c.all[last].id {
		return nil
	}
	return c.all[last]
}

// begin adds a call.
func (c *calls) begin(p *toolCall) error {
	if err := chat.CheckCalls(len(c.all) + 1); err != nil {
		return err
	}
	one := &oneCall{id: p.ID, name: p.Function.Name, index: p.Index}
	one.arguments.Add(string(p.Function.Arguments))
	c.all = append(c.all, one)
	return nil
}

func (c *calls) whole() (all []chat.Call) {
	for _, one := range c.all {
		all = append(all, chat.Call{Name: string(one.name), Arguments: one.arguments.Text()})
	}
	return all
}

// isUnclear reports whether the pieces may also mean other arguments.
func (c *calls) isUnclear() bool {
	return slices.ContainsFunc(c.all, func(one *oneCall) bool { return one.arguments.IsUnclear() })
}

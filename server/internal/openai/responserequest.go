package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/server/internal/runs"
)

// responseRequest is the body of POST /v1/responses.
type responseRequest struct {
	shared

	Input              input          `json:"input"`
	Instructions       string         `json:"instructions"`
	PreviousResponseID string         `json:"previous_response_id"`
	Conversation       conversationID `json:"conversation"`
	Background         bool           `json:"background"`
	MaxOutputTokens    *whole         `json:"max_output_tokens"`
	MaxToolCalls       *whole         `json:"max_tool_calls"`
	Text               struct {
		Format json.RawMessage `json:"format"`
	} `json:"text"`
	Reasoning *struct {
		Effort string `json:"effort"`
	} `json:"reasoning"`
	SafetyIdentifier *string `json:"safety_identifier"`
	PromptCacheKey   *string `json:"prompt_cache_key"`
}

// input is a list of items. In JSON, a string is also allowed.
type input []inputItem

type inputItem struct {
	ID      string  `json:"id"`
	Type    string  `json:"type"`
	Role    string  `json:"role"`
	Content content `json:"content"`

	// The following members belong to a call of a client's function, or to its result.
	CallID    string  `json:"call_id"`
	Name      string  `json:"name"`
	Arguments string  `json:"arguments"`
	Input     string  `json:"input"` // of a custom tool
	Output    content `json:"output"`

	Compacted string `json:"encrypted_content"` // see compact.go
}

// UnmarshalJSON implements [json.Unmarshaler].
func (in *input) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*in = input{{Role: "user", Content: content{{Type: "text", Text: text}}}}
		return nil
	}
	return json.Unmarshal(data, (*[]inputItem)(in))
}

// turns returns the messages and calls among the items. It omits turns of the root that a client
// sends back, because the answer contains their findings.
func (in input) turns(find lookUp) (turns []turn, err error) {
	for i := range in {
		one, param := &in[i], fmt.Sprintf("input[%d]", i)
		if one.isReference() {
			found, err := find(one.ID, param)
			if err != nil {
				return nil, err
			}
			turns = append(turns, found...)
			continue
		}
		var t turn
		switch one.Type {
		case "", kindMessage:
			t, err = one.Content.read(one.Role, param)
		case kindCall:
			t.Role = llm.RoleAssistant
			t.Call = &earlierCall{one.Type, one.CallID, one.Name, one.Arguments}
		case kindCustomCall:
			t.Role = llm.RoleAssistant
			t.Call = &earlierCall{one.Type, one.CallID, one.Name, one.Input}
		case kindCallResult, kindCustomResult:
			t, err = one.Output.read("user", param)
			t.Call = &earlierCall{Type: one.Type, ID: one.CallID}
		case kindCompaction:
			t, err = readCompaction(one.Compacted, param)
		case kindCode, "reasoning":
			continue
		default:
			return nil, problem.Bad("input",
				"an item has the type %.40q: give messages, calls and their results", one.Type)
		}
		if err == nil && t.Call != nil && t.Call.ID == "" {
			err = problem.Bad(param, "a %s has no call_id", one.Type)
		}
		if err != nil {
			return nil, err
		}
		turns = append(turns, t)
	}

	return turns, nil
}

// read returns the request's question and the messages that the request adds.
func (c *responseRequest) read(r *http.Request, find lookUp) (q *asked, fresh []turn, err error) {
	q = &asked{background: c.Background}
	switch {
	case c.Conversation.ID != "" && c.PreviousResponseID != "":
		return nil, nil, problem.Bad("conversation",
			"a conversation has the earlier responses: omit previous_response_id")
	case c.Conversation.ID != "" && c.Store != nil && !*c.Store:
		return nil, nil, problem.Bad("store", "a response of a conversation is stored: omit store")
	case c.Background && c.Store != nil && !*c.Store:
		return nil, nil, problem.Bad("store", "a response in the background is stored: omit store")
	}
	if err := c.shared.read(r, q); err != nil {
		return nil, nil, err
	}
	if fresh, err = c.Input.turns(find); err != nil {
		return nil, nil, err
	}

	q.System = c.Instructions
	if c.Reasoning != nil {
		q.sampling.ReasoningEffort = c.Reasoning.Effort
	}
	if err := q.readTokens(c.MaxOutputTokens, "max_output_tokens"); err != nil {
		return nil, nil, err
	}
	if n := c.MaxToolCalls; n != nil {
		if *n < 1 || *n > 1_000 {
			return nil, nil, problem.Bad("max_tool_calls", "give 1 to 1000")
		}
		if q.MaxTurns == 0 || int(*n) < q.MaxTurns {
			q.MaxTurns = int(*n)
		}
	}

	if err := q.readText(c.Text.Format); err != nil {
		return nil, nil, err
	}
	err = q.offer(&c.shared)
	return q, fresh, err
}

// resource returns the response before it begins.
func (c *responseRequest) resource() resource {
	one := 1.0
	r := resource{
		ID: runs.NewID("resp_"), Object: "response", CreatedAt: unixNow(), Status: "queued", Model: c.Model,
		Output: []item{}, Tools: []tool{}, ToolChoice: json.RawMessage(`"auto"`), Truncation: "disabled",
		ParallelToolCalls: c.ParallelToolCalls == nil || *c.ParallelToolCalls,
		Text:              textSettings{json.RawMessage(`{"type":"text"}`)}, TopP: *cmp.Or(c.TopP, &one),
		Temperature:     *cmp.Or(c.Temperature, &one),
		MaxOutputTokens: (*int64)(c.MaxOutputTokens), MaxToolCalls: (*int64)(c.MaxToolCalls),
		Store: c.Store == nil || *c.Store, Background: c.Background, ServiceTier: "default",
		Metadata: c.Metadata, SafetyIdentifier: c.SafetyIdentifier, PromptCacheKey: c.PromptCacheKey,
	}
	r.Tools = append(r.Tools, c.Tools...)
	if len(c.Text.Format) > 0 {
		r.Text.Format = c.Text.Format
	}
	if len(c.ToolChoice) > 0 && string(c.ToolChoice) != "null" {
		r.ToolChoice = c.ToolChoice
	}

	if c.Metadata == nil {
		r.Metadata = map[string]string{}
	}
	if c.PreviousResponseID != "" {
		r.PreviousResponseID = &c.PreviousResponseID
	}
	if c.Conversation.ID != "" {
		r.Conversation = &c.Conversation
	}
	if c.Instructions != "" {
		r.Instructions = &c.Instructions
	}
	if c.Reasoning != nil && c.Reasoning.Effort != "" {
		r.Reasoning = &reasoning{Effort: &c.Reasoning.Effort}
	}
	return r
}

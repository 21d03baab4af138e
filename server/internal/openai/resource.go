package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/rlmhq/rlm/server/internal/failures"
)

// resource is a response. All members are present, with null for a missing value, because clients
// check that.
type resource struct {
	ID                 string            `json:"id"`
	Object             string            `json:"object"`
	CreatedAt          int64             `json:"created_at"`
	CompletedAt        *int64            `json:"completed_at"`
	Status             string            `json:"status"`
	IncompleteDetails  *incomplete       `json:"incomplete_details"`
	Model              string            `json:"model"`
	PreviousResponseID *string           `json:"previous_response_id"`
	Conversation       *conversationID   `json:"conversation,omitempty"`
	Instructions       *string           `json:"instructions"`
	Output             []item            `json:"output"`
	Error              *failure          `json:"error"`
	Tools              []tool            `json:"tools"`
	ToolChoice         json.RawMessage   `json:"tool_choice"`
	Truncation         string            `json:"truncation"`
	ParallelToolCalls  bool              `json:"parallel_tool_calls"`
	Text               textSettings      `json:"text"`
	TopP               float64           `json:"top_p"`
	PresencePenalty    float64           `json:"presence_penalty"`
	FrequencyPenalty   float64           `json:"frequency_penalty"`
	TopLogprobs        int               `json:"top_logprobs"`
	Temperature        float64           `json:"temperature"`
	Reasoning          *reasoning        `json:"reasoning"`
	Usage              *usage            `json:"usage"`
	MaxOutputTokens    *int64            `json:"max_output_tokens"`
	MaxToolCalls       *int64            `json:"max_tool_calls"`
	Store              bool              `json:"store"`
	Background         bool              `json:"background"`
	ServiceTier        string            `json:"service_tier"`
	Metadata           map[string]string `json:"metadata"`
	SafetyIdentifier   *string           `json:"safety_identifier"`
	PromptCacheKey     *string           `json:"prompt_cache_key"`
	RLM                *details          `json:"rlm,omitempty"`
}

type incomplete struct {
	Reason string `json:"reason"`
}

type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type textSettings struct {
	Format json.RawMessage `json:"format"`
}

type reasoning struct {
	Effort  *string `json:"effort"`
	Summary *string `json:"summary"`
}

type usage struct {
	InputTokens        int64         `json:"input_tokens"`
	InputTokensDetails inputDetails  `json:"input_tokens_details"`
	OutputTokens       int64         `json:"output_tokens"`
	OutputDetails      outputDetails `json:"output_tokens_details"`
	TotalTokens        int64         `json:"total_tokens"`
}

type inputDetails struct {
	CachedTokens int64 `json:"cached_tokens"`
}

type outputDetails struct {
	ReasoningTokens int64 `json:"reasoning_tokens"`
}

// These are the kinds of items.
const (
	kindMessage    = "message"
	kindCode       = "code_interpreter_call"
	kindCall       = "function_call"
	kindCallResult = "function_call_output"

	kindCustomCall   = "custom_tool_call"
	kindCustomResult = "custom_tool_call_output"
)

// item is a part of the output: a message, a turn of the root in which a snippet ran, or a call of
// a client's function.
type item struct {
	ID     string
	Type   string
	Status string
	Text   *string // a message's text; nil before there is any content
	Code   string
	Run    string // the owner of the sandbox
	Logs   string
	Call   call
}

// outputText is the content of a message.
type outputText struct {
	Type        string     `json:"type"`
	Text        string     `json:"text"`
	Annotations []struct{} `json:"annotations"`
	Logprobs    []struct{} `json:"logprobs"`
}

func newText(text string) outputText {
	return outputText{"output_text", text, []struct{}{}, []struct{}{}}
}

type logs struct {
	Type string `json:"type"`
	Logs string `json:"logs"`
}

// messageItem, codeItem, callItem and customItem are the wire formats of an item.
type messageItem struct {
	ID      string       `json:"id"`
	Type    string       `json:"type"`
	Status  string       `json:"status"`
	Role    string       `json:"role"`
	Content []outputText `json:"content"`
}

type codeItem struct {
	ID          string `json:"id"`
	Type        string `json:"type"`
	Status      string `json:"status"`
	Code        string `json:"code"`
	ContainerID string `json:"container_id"`
	Outputs     []logs `json:"outputs"`
}

type callItem struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Status    string `json:"status"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type customItem struct {
	ID     string `json:"id"`
	Type   string `json:"type"`
	Status string `json:"status"`
	CallID string `json:"call_id"`
	Name   string `json:"name"`
	Input  string `json:"input"`
}

// MarshalJSON implements [json.Marshaler].
func (i item) MarshalJSON() ([]byte, error) {
	switch i.Type {
	case kindCode:
		outputs := []logs{}
		if i.Logs != "" {
			outputs = append(outputs, logs{"logs", i.Logs})
		}
		return marshal(codeItem{i.ID, i.Type, i.Status, i.Code, i.Run, outputs})
	case kindCall:
		return marshal(callItem{i.ID, i.Type, i.Status, i.Call.ID, i.Call.Name, i.Call.Arguments})
	case kindCustomCall:
		return marshal(customItem{i.ID, i.Type, i.Status, i.Call.ID, i.Call.Name, i.Call.Arguments})
	}

	content := []outputText{}
	if i.Text != nil {
		content = append(content, newText(*i.Text))
	}
	return marshal(messageItem{i.ID, i.Type, i.Status, "assistant", content})
}

// UnmarshalJSON implements [json.Unmarshaler], for stored messages and calls.
func (i *item) UnmarshalJSON(data []byte) error {
	var m messageItem
	var c callItem
	var custom customItem
	err := errors.Join(json.Unmarshal(data, &m), json.Unmarshal(data, &c), json.Unmarshal(data, &custom))
	if err != nil {
		return err
	}
	*i = item{ID: m.ID, Type: m.Type, Status: m.Status}
	switch m.Type {
	case kindCall:
		i.Call = call{ID: c.CallID, Name: c.Name, Arguments: c.Arguments, kind: kindFunction}
	case kindCustomCall:
		i.Call = call{ID: c.CallID, Name: c.Name, Arguments: custom.Input, kind: kindCustom}
	}
	if len(m.Content) > 0 {
		i.Text = &m.Content[0].Text
	}
	return nil
}

// text returns the joined text of all messages.
func (r *resource) text() string {
	var all []string
	for i := range r.Output {
		if r.Output[i].Type == kindMessage && r.Output[i].Text != nil {
			all = append(all, *r.Output[i].Text)
		}
	}
	return strings.Join(all, "\n\n")
}

// calls returns the calls of the client's functions.
func (r *resource) calls() (all []call) {
	for i := range r.Output {
		if one := r.Output[i].Type; one == kindCall || one == kindCustomCall {
			all = append(all, r.Output[i].Call)
		}
	}
	return all
}

// functions returns the functions in the request, or nil if there are none.
func (r *resource) functions() (*functions, error) {
	s := shared{Tools: r.Tools, ToolChoice: r.ToolChoice, ParallelToolCalls: &r.ParallelToolCalls}
	f, err := s.functions()
	if err != nil || f == nil {
		return nil, err
	}

	var q asked
	err = q.readText(r.Text.Format)
	f.format = q.Schema
	return f, err
}

// nameCalls gives IDs to the calls of an answer. Repeated calls of nameCalls give the same IDs.
func (r *resource) nameCalls(calls []call) {
	for i := range calls {
		calls[i].ID = fmt.Sprintf("call_%s_%d", strings.TrimPrefix(r.ID, "resp_"), i)
	}
}

// isOver reports whether the response has ended.
func (r *resource) isOver() bool { return r.Status != "queued" && r.Status != "in_progress" }

// finish records how a response ended.
func (r *resource) finish(got *answered, err error, at int64) {
	r.Status, r.CompletedAt = "completed", &at
	r.Usage = &usage{InputTokens: got.in, OutputTokens: got.out, TotalTokens: got.in + got.out}
	r.RLM = &got.details
	switch {
	case got.details.Status == "canceled":
		r.Status = "cancelled"
	case got.details.Status == "parked":
		r.Status, r.IncompleteDetails = "incomplete", &incomplete{"parked"}
	case err != nil:
		e := failures.Of(err)
		r.Status, r.Error = "failed", &failure{e.Code, e.Detail}
	case got.incomplete != "":
		r.Status, r.IncompleteDetails = "incomplete", &incomplete{got.incomplete}
	}

	if r.Status != "completed" {
		r.CompletedAt = nil
	}
}

package llmtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/rlmhq/rlm/repl/llm"
)

// object is a JSON object to encode.
type object = map[string]any

// encode encodes a value as JSON. Everything in this package can be encoded.
func encode(value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return text
}

// decodeStrictly decodes a request and rejects fields that are not part of the format.
func decodeStrictly(body []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// splitText splits a reply between characters into pieces, like the chunks of a streaming server.
func splitText(text string) []string {
	const size = 16
	var all []string
	runes := []rune(text)
	for len(runes) > 0 {
		n := min(size, len(runes))
		if len(runes) > 1<<16 {
			n = 1 << 16 // keeps huge replies fast
		}
		all = append(all, string(runes[:n]))
		runes = runes[n:]
	}

	return all
}

// openAI is the chat completions format of OpenAI.
type openAI struct{}

func (openAI) name() string { return "openai" }

func (openAI) key(h http.Header) string {
	if key := h.Get("Api-Key"); key != "" {
		return key
	}
	return strings.TrimPrefix(h.Get("Authorization"), "Bearer ")
}

func (openAI) decode(body []byte, model string) (llm.Request, bool, error) {
	var in struct {
		Model               string         `json:"model"`
		Messages            []sent         `json:"messages"`
		MaxTokens           int            `json:"max_tokens"`
		MaxCompletionTokens int            `json:"max_completion_tokens"`
		Temperature         *float64       `json:"temperature"`
		TopP                *float64       `json:"top_p"`
		Seed                *int64         `json:"seed"`
		ReasoningEffort     string         `json:"reasoning_effort"`
		ExtraKwargs         map[string]any `json:"chat_template_kwargs"` // as an example of an extra member
		Stop                []string       `json:"stop"`
		Stream              bool           `json:"stream"`
		StreamOptions       map[string]any `json:"stream_options"`
		ResponseFormat      *struct {
			Type       string `json:"type"`
			JSONSchema struct {
				Name   string          `json:"name"`
				Schema json.RawMessage `json:"schema"`
				Strict bool            `json:"strict"`
			} `json:"json_schema"`
		} `json:"response_format"`
	}
	if err := decodeStrictly(body, &in); err != nil {
		return llm.Request{}, false, err
	}

	messages, err := decodeMessages(in.Messages, "image_url")
	if err != nil {
		return llm.Request{}, false, err
	}
	if model != "" {
		in.Model = model
	}
	r := llm.Request{
		Model: in.Model, Messages: messages, MaxTokens: in.MaxTokens + in.MaxCompletionTokens,
		Stop: in.Stop, Sampling: llm.Sampling{
			Temperature: in.Temperature, TopP: in.TopP, Seed: in.Seed, ReasoningEffort: in.ReasoningEffort,
		},
	}
	if f := in.ResponseFormat; f != nil {
		if f.Type != "json_schema" || f.JSONSchema.Name == "" {
			return r, false, errors.New("response_format is not a named json_schema")
		}
		r.Schema, r.SchemaName = f.JSONSchema.Schema, f.JSONSchema.Name
	}

	return r, in.Stream, nil
}

func (openAI) usage(u llm.Usage) object {
	return object{
		"prompt_tokens": u.InputTokens, "completion_tokens": u.OutputTokens,
		"total_tokens": u.InputTokens + u.OutputTokens,
		"prompt_tokens_details": object{
			"cached_tokens":      u.CachedTokens,
			"cache_write_tokens": u.CacheWriteTokens,
		},
		"completion_tokens_details": object{"reasoning_tokens": u.ReasoningTokens},
	}
}

func (f openAI) whole(r llm.Response) []byte {
	message := object{"role": "assistant", "content": r.Text, "refusal": nil}
	if r.Finish == llm.FinishRefusal {
		message["content"], message["refusal"] = nil, r.Text
	}
	return encode(object{
		"id": "chatcmpl-1", "object": "chat.completion", "model": r.Model,
		"usage": f.usage(r.Usage),
		"choices": []object{{
			"index": 0, "message": message,
			"finish_reason": finishOpenAI(r.Finish),
		}},
	})
}

// finishOpenAI returns the format's word for a finish reason.
func finishOpenAI(finish string) string {
	if finish == llm.FinishRefusal {
		return "stop"
	}
	return finish
}

func (f openAI) stream(r llm.Response) [][]byte {
	field := "content"
	if r.Finish == llm.FinishRefusal {
		field = "refusal"
	}
	var events [][]byte
	event := func(choices []object, usage any) {
		data := encode(object{
			"object": "chat.completion.chunk", "model": r.Model,
			"choices": choices, "usage": usage,
		})
		events = append(events, fmt.Appendf(nil, "data: %s\n\n", data))
	}
	event([]object{{"index": 0, "delta": object{"role": "assistant"}, "finish_reason": nil}}, nil)
	for _, piece := range splitText(r.Text) {
		event([]object{{"index": 0, "delta": object{field: piece}, "finish_reason": nil}}, nil)
	}
	event([]object{{"index": 0, "delta": object{}, "finish_reason": finishOpenAI(r.Finish)}}, nil)
	event([]object{}, f.usage(r.Usage))

	return append(events, []byte("data: [DONE]\n\n"))
}

func (openAI) finish() string { return "stop" }

func (openAI) failure(_ int, code, message string) []byte {
	return encode(object{"error": object{
		"message": message, "type": "invalid_request_error",
		"param": nil, "code": code,
	}})
}

// anthropic is the messages format of Anthropic.
type anthropic struct{}

func (anthropic) name() string { return "anthropic" }

func (anthropic) key(h http.Header) string { return h.Get("X-Api-Key") }

func (anthropic) decode(body []byte, _ string) (llm.Request, bool, error) {
	var in struct {
		Model        string            `json:"model"`
		MaxTokens    int               `json:"max_tokens"`
		System       string            `json:"system"`
		Messages     []sent            `json:"messages"`
		Temperature  *float64          `json:"temperature"`
		TopP         *float64          `json:"top_p"`
		ExtraKwargs  map[string]any    `json:"chat_template_kwargs"`
		Stop         []string          `json:"stop_sequences"`
		Stream       bool              `json:"stream"`
		CacheControl map[string]string `json:"cache_control"`
		OutputConfig struct {
			Format struct {
				Type   string          `json:"type"`
				Schema json.RawMessage `json:"schema"`
			} `json:"format"`
			Effort string `json:"effort"`
		} `json:"output_config"`
	}
	if err := decodeStrictly(body, &in); err != nil {
		return llm.Request{}, false, err
	}
	if in.MaxTokens <= 0 {
		return llm.Request{}, false, errors.New("max_tokens: field required")
	}

	messages, err := decodeMessages(in.Messages, "image")
	if err != nil {
		return llm.Request{}, false, err
	}
	for i, m := range messages {
		if m.Role == llm.RoleSystem || strings.TrimSpace(m.Content) == "" {
			return llm.Request{}, false,
				fmt.Errorf("messages.%d: a role of %q with a text of %d bytes", i, m.Role,
					len(m.Content))
		}
	}

	r := llm.Request{
		Model: in.Model, Messages: messages, MaxTokens: in.MaxTokens,
		Stop: in.Stop, Schema: in.OutputConfig.Format.Schema, Sampling: llm.Sampling{
			Temperature: in.Temperature, TopP: in.TopP, ReasoningEffort: in.OutputConfig.Effort,
		},
	}
	if in.System != "" {
		r.Messages = append([]llm.Message{{Role: llm.RoleSystem, Content: in.System}},
			r.Messages...)
	}

	return r, in.Stream, nil
}

func (anthropic) usage(u llm.Usage) object {
	return object{
		"input_tokens":                u.InputTokens - u.CachedTokens - u.CacheWriteTokens,
		"cache_read_input_tokens":     u.CachedTokens,
		"cache_creation_input_tokens": u.CacheWriteTokens,
		"output_tokens":               u.OutputTokens,
		"output_tokens_details":       object{"thinking_tokens": u.ReasoningTokens},
	}
}

// finishAnthropic returns the format's word for a finish reason.
func finishAnthropic(finish string) string {
	switch finish {
	case llm.FinishStop:
		return "end_turn"
	case llm.FinishLength:
		return "max_tokens"
	}

	return finish
}

// endAnthropic returns why a reply ended, and its text, which is empty for a refusal.
func endAnthropic(r llm.Response) (ending object, text string) {
	ending = object{"stop_reason": finishAnthropic(r.Finish), "stop_details": nil}
	if r.Finish == llm.FinishRefusal {
		ending["stop_details"] = object{"type": "refusal", "explanation": r.Text}
		return ending, ""
	}
	return ending, r.Text
}

func (f anthropic) whole(r llm.Response) []byte {
	message, text := endAnthropic(r)
	maps.Copy(message, object{
		"id": "msg_1", "type": "message", "role": "assistant", "model": r.Model,
		"content": []object{{"type": "text", "text": text}}, "usage": f.usage(r.Usage),
	})
	return encode(message)
}

func (f anthropic) stream(r llm.Response) [][]byte {
	var events [][]byte
	event := func(kind string, fields object) {
		fields["type"] = kind
		events = append(events, fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, encode(fields)))
	}
	used := f.usage(r.Usage)
	first := object{"output_tokens": 1}
	for name, value := range used {
		if !strings.HasPrefix(name, "output") {
			first[name] = value
		}
	}

	event("message_start", object{"message": object{
		"id": "msg_1", "type": "message", "role": "assistant", "model": r.Model,
		"content": []object{}, "stop_reason": nil, "usage": first,
	}})
	event("content_block_start",
		object{"index": 0, "content_block": object{"type": "text", "text": ""}})
	event("ping", object{})

	ending, text := endAnthropic(r)
	for _, piece := range splitText(text) {
		event("content_block_delta",
			object{"index": 0, "delta": object{"type": "text_delta", "text": piece}})
	}

	event("content_block_stop", object{"index": 0})
	event("message_delta",
		object{"delta": ending, "usage": object{
			"output_tokens":         used["output_tokens"],
			"output_tokens_details": used["output_tokens_details"],
		}})

	event("message_stop", object{})
	return events
}

func (anthropic) finish() string { return "end_turn" }

func (anthropic) failure(_ int, code, message string) []byte {
	return encode(object{"type": "error", "error": object{"type": code, "message": message}})
}

// unwrapSchema returns the schema that the client wrapped in an object with the single member
// "value", so that the function behind the server receives the caller's schema.
func unwrapSchema(schema json.RawMessage) (json.RawMessage, bool) {
	var outer map[string]json.RawMessage
	var properties map[string]json.RawMessage
	var required []string
	if json.Unmarshal(schema, &outer) != nil ||
		json.Unmarshal(outer["properties"], &properties) != nil ||
		json.Unmarshal(outer["required"], &required) != nil {
		return schema, false
	}
	if len(properties) != 1 || properties["value"] == nil || len(required) != 1 ||
		string(outer["additionalProperties"]) != "false" {
		return schema, false
	}

	inner := map[string]json.RawMessage{}
	if json.Unmarshal(properties["value"], &inner) != nil {
		return schema, false
	}

	for _, name := range []string{"$defs", "definitions", "$schema"} {
		if outer[name] != nil {
			inner[name] = outer[name]
		}
	}

	return encode(inner), true
}

// wrapValue puts the value of a reply where an enforced schema requires it. It returns a reply that
// is not JSON unchanged, since the model disobeyed.
func wrapValue(text string) string {
	if !json.Valid([]byte(text)) {
		return text
	}
	return `{"value":` + strings.TrimSpace(text) + `}`
}

package flow

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/llm"
)

// LLMCall is the name of the action that asks a model.
const LLMCall = "llm.call"

// maxTokens bounds the parameter max_tokens.
const maxTokens = 1_000_000

// llmCall asks a model. Its result is an object: content is the reply, which is a string or, with a
// schema, a value; model is the name of the model.
var llmCall = Action{
	Name: LLMCall,
	Doc:  "Asks a model.",
	Asks: true,
	Params: []Param{
		{Name: "prompt", Type: TextType, Doc: "the question to the model"},
		{
			Name: "messages", Type: ListType, Fields: messageFields,
			Doc: "a conversation in place of prompt and system",
		},
		{
			Name: "model", Type: ModelType,
			Doc: "the model; by default the state's model, otherwise the run's model",
		},
		{Name: "system", Type: TextType, Doc: "the system prompt"},
		{Name: "schema", Type: SchemaType, Doc: "the JSON Schema that the reply must meet"},
		{Name: "temperature", Type: NumberType, Doc: "the randomness of the reply"},
		{
			Name: "max_tokens", Type: WholeType, Least: 1, Most: maxTokens,
			Doc: "maximum tokens of the reply",
		},
	},
	Verify: verifyCall,
	Do: func(ctx context.Context, r *Run, with map[string]any) (any, error) {
		ask := calls.Ask{Purpose: LLMCall, Messages: messagesOf(with)}
		ask.Model, _ = with["model"].(string)
		if n, ok := with["temperature"].(json.Number); ok {
			t, err := n.Float64()
			if err != nil {
				return nil, err
			}
			ask.Temperature = &t
		}

		if n, ok := with["max_tokens"].(json.Number); ok {
			most, err := strconv.Atoi(string(n))
			if err != nil {
				return nil, err
			}
			ask.MaxTokens = most
		}

		content, err := r.reply(ctx, ask, with["schema"])
		if err != nil {
			return nil, err
		}
		return map[string]any{"content": content}, nil
	},
}

// messageFields are the members of a message.
var messageFields = []Param{
	{
		Name: "role", Type: TextType, Required: true, Doc: "system, user or assistant",
		Values: []string{string(llm.RoleSystem), string(llm.RoleUser), string(llm.RoleAssistant)},
	},
	{Name: "content", Type: TextType, Required: true, Doc: "the text of the message"},
}

// verifyCall checks that a call has a prompt or messages.
func verifyCall(with *Tree) []*Problem {
	prompt, messages, system := with.Get("prompt"), with.Get("messages"), with.Get("system")
	at, message := with, ""
	switch {
	case prompt == nil && messages == nil:
		message = `"prompt" is missing: the question to the model`
	case messages == nil:
	case prompt != nil:
		at, message = prompt, `"prompt" excludes "messages": remove one of them`
	case system != nil:
		at, message = system, `"system" excludes "messages": make it their first message`
	case messages.Kind == List && len(messages.Items) == 0:
		at, message = messages, `"messages" must have at least one message`
	}

	if message == "" {
		return nil
	}
	return []*Problem{{Line: at.Line, Column: at.Column, Message: message}}
}

// messagesOf returns the messages of a call.
func messagesOf(with map[string]any) []llm.Message {
	var messages []llm.Message
	if system, _ := with["system"].(string); system != "" {
		messages = append(messages, llm.Message{Role: llm.RoleSystem, Content: system})
	}
	if prompt, ok := with["prompt"].(string); ok {
		messages = append(messages, llm.Message{Role: llm.RoleUser, Content: prompt})
	}

	given, _ := with["messages"].([]any)
	for _, item := range given {
		members, _ := item.(map[string]any)
		role, _ := members["role"].(string)
		content, _ := members["content"].(string)
		messages = append(messages, llm.Message{Role: llm.Role(role), Content: content})
	}

	return messages
}

// reply asks for a string, or for a value if there is a contract.
func (r *Run) reply(ctx context.Context, ask calls.Ask, contract any) (any, error) {
	if contract == nil {
		response, err := r.Ask(ctx, ask)
		return response.Text, err
	}
	var err error
	if ask.Schema, err = r.Contract(contract); err != nil {
		return nil, err
	}

	return r.Typed(ctx, ask)
}

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

// llmCall asks a model. Its result is an object: content is the reply, a text or, with a
// schema, a value; model is the name of the model.
var llmCall = Action{
	Name: LLMCall,
	Doc:  "Asks a model.",
	Asks: true,
	Params: []Param{
		{Name: "prompt", Type: TextType, Required: true, Doc: "the question to the model"},
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
	Do: func(ctx context.Context, r *Run, with map[string]any) (any, error) {
		ask := calls.Ask{Purpose: LLMCall}
		prompt, _ := with["prompt"].(string)
		ask.Model, _ = with["model"].(string)
		if system, _ := with["system"].(string); system != "" {
			ask.Messages = append(ask.Messages, llm.Message{Role: llm.RoleSystem, Content: system})
		}

		ask.Messages = append(ask.Messages, llm.Message{Role: llm.RoleUser, Content: prompt})
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

// reply asks for a text, or for a value if there is a contract.
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

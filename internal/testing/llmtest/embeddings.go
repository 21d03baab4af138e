package llmtest

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/rlmhq/rlm/repl/llm"
)

// embeddings is OpenAI's format for vectors. The model's function receives a request with Embed,
// and returns a JSON list of vectors as Text. The server sends them in reverse order, with their
// indexes.
type embeddings struct{ openAI }

func (embeddings) decode(body []byte, model string) (llm.Request, bool, error) {
	var in struct {
		Model    string   `json:"model"`
		Input    []string `json:"input"`
		Encoding string   `json:"encoding_format"`
	}
	if err := decodeStrictly(body, &in); err != nil {
		return llm.Request{}, false, err
	}
	if in.Encoding != "float" || len(in.Input) == 0 {
		return llm.Request{}, false, errors.New("give input, and float as encoding_format")
	}

	r := llm.Request{Model: in.Model, Embed: true}
	if model != "" {
		r.Model = model
	}
	for _, text := range in.Input {
		r.Messages = append(r.Messages, llm.Message{Role: llm.RoleUser, Content: text})
	}
	return r, false, nil
}

func (embeddings) whole(r llm.Response) []byte {
	var vectors []json.RawMessage
	if err := json.Unmarshal([]byte(r.Text), &vectors); err != nil {
		return []byte(r.Text) // the test deliberately sends something else
	}
	var data []object
	for i, v := range slices.Backward(vectors) {
		data = append(data, object{"object": "embedding", "index": i, "embedding": v})
	}
	return encode(object{
		"object": "list", "model": r.Model, "data": data,
		"usage": object{"prompt_tokens": r.Usage.InputTokens, "total_tokens": r.Usage.InputTokens},
	})
}

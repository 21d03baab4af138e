package chat

import (
	"encoding/json"

	"github.com/rlmhq/rlm/repl/llm"
)

// AskInPrompt returns the messages with an instruction to follow a schema, for providers that
// cannot enforce one.
func AskInPrompt(messages []llm.Message, schema json.RawMessage) []llm.Message {
	return appendInstruction(messages, schema)
}

// ReadUnenforced returns the JSON of a reply to such a prompt, without the fence around it.
func ReadUnenforced(reply string) string { return removeFence(reply) }

package llm

import "github.com/rlmhq/rlm/repl/internal/finish"

// The reasons why a reply ended. Only a reply with [FinishStop] is complete.
const (
	FinishStop    = finish.Stop    // the model finished
	FinishLength  = finish.Length  // the reply was truncated, usually at the token limit
	FinishRefusal = finish.Refusal // the model or a filter declined; Text is its explanation
)

// Response is a model's reply.
type Response struct {
	Text  string
	Usage Usage
	Model string // the server's name for the model that answered
	ID    string // the server's ID of the reply; empty if it gives none
	// Finish is one of the reasons above, or "tool_calls" if the model called a tool; Text is then
	// the part before the call.
	Finish string
	// Structured is true if the server enforced the request's schema, and false if the schema
	// was only part of the prompt.
	Structured bool
	Attempts   int // requests sent, including retries; 0 if none was sent
}

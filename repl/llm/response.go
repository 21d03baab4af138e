package llm

// The reasons why a reply ended. A server may give others, which are passed on.
const (
	FinishStop    = "stop"    // the model finished
	FinishLength  = "length"  // the reply reached the token limit
	FinishRefusal = "refusal" // the model or a filter declined; Text is its explanation
)

// Response is a model's reply.
type Response struct {
	Text   string
	Usage  Usage
	Model  string // as the server names the model that answered
	ID     string // the server's ID of the reply; empty if it gives none
	Finish string // FinishStop, FinishLength, FinishRefusal, or the server's own word
	// Structured is true if the server enforced the request's schema, and false if the schema
	// was only part of the prompt.
	Structured bool
	Attempts   int // requests sent, including retries; 0 if none was sent
}

package llm

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// Role names the speaker of a [Message].
type Role string

// The roles that every provider supports.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Message is one turn of a conversation.
type Message struct {
	Role    Role   `json:"role"`
	Content string `json:"content"`
	// Images are the pictures in a user's message, for models that accept them.
	Images []Image `json:"images,omitempty"`
}

// Image is a picture in a message.
type Image struct {
	Type string `json:"type"` // image/png, image/jpeg, image/gif or image/webp
	Data []byte `json:"data"`
}

// Request is one prompt. The zero value of an optional field leaves the choice to the
// server.
type Request struct {
	Model    string    `json:"model,omitempty"` // the provider's name for the model
	Messages []Message `json:"messages"`

	// Schema is the JSON Schema of the reply, or nil for free text. A server that can enforce the
	// schema does so; for others it becomes part of the prompt. In both cases, the caller must
	// check the reply.
	Schema json.RawMessage `json:"schema,omitempty"`
	// SchemaName consists of letters, digits, - and _; it is "reply" if empty.
	SchemaName string `json:"schema_name,omitempty"`

	// Tools are functions that the model may ask to call: objects with "name", "description" and
	// "parameters", a JSON Schema. Servers that do not support tools receive the request without
	// them. A reply with calls has the Text {"calls": [{"name": …, "arguments": …}], "answer": …},
	// with the arguments of each call as a string and the reply's text as the answer.
	Tools []json.RawMessage `json:"tools,omitempty"`
	// OneCall requests at most one call of Tools. If a model makes several anyway, the reply
	// contains the first.
	OneCall bool `json:"one_call,omitempty"`

	MaxTokens int `json:"max_tokens,omitempty"` // limit of the reply; 0 is the provider's default
	Sampling
	Stop []string `json:"stop,omitempty"`

	// Embed requests embeddings of the messages instead of a reply. The Text of the response is
	// then a JSON list with a vector for each message, all of one length, each a list of
	// numbers. The fields for replies have no effect, except ExtraBody.
	Embed bool `json:"embed,omitempty"`

	// Metadata is for scripts, call logs and other logs. It is never sent to a server.
	Metadata Metadata `json:"-"`
}

// Sampling controls how a model chooses the words of a reply. A parameter that a model rejects
// is left out. Anthropic's format has no seed.
type Sampling struct {
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
	Seed        *int64   `json:"seed,omitempty"`
	// ReasoningEffort is a level that the model accepts, such as "low".
	ReasoningEffort string `json:"reasoning_effort,omitempty"`
	// ExtraBody is a JSON object whose members are added to the request's body.
	ExtraBody json.RawMessage `json:"extra_body,omitempty"`
}

// Metadata identifies the part of a run that makes a request.
type Metadata struct {
	Purpose string `json:"purpose,omitempty"` // the caller's term, such as "root" or "leaf"
	Depth   int    `json:"depth,omitempty"`   // 0 at the root
	Turn    int    `json:"turn,omitempty"`    // counted from 1
	Slot    int    `json:"slot,omitempty"`    // the index in a fan-out, from 0
}

// validate returns an error of the kind "bad request" if no server could answer the request.
func (r Request) validate() error {
	if err := r.findMistake(); err != nil {
		return &Error{Kind: kind.ErrBadRequest, Model: r.Model, Err: err}
	}
	return nil
}

// findMistake returns the first mistake in the request.
func (r Request) findMistake() error {
	spoken := 0
	for i, m := range r.Messages {
		if len(m.Images) > 0 && m.Role != RoleUser {
			return fmt.Errorf(
				"message %d has images and the role %q: only messages of the role user can have images", i, m.Role,
			)
		}
		switch m.Role {
		case RoleSystem:
		case RoleUser, RoleAssistant:
			spoken++
		default:
			return fmt.Errorf("message %d has role %q: use system, user or assistant", i, m.Role)
		}
	}

	switch {
	case spoken == 0:
		return errors.New("the request has no user or assistant message")
	case r.MaxTokens < 0:
		return fmt.Errorf("the token limit %d is negative", r.MaxTokens)
	case r.Schema != nil && !json.Valid(r.Schema):
		return errors.New("the schema is not valid JSON")
	}
	return nil
}

package chat

import (
	"fmt"
	"slices"
	"time"
)

// traits describe what requests to a model must contain or avoid, learned from its server's
// refusals. The zero value has no requirements. A copy may be changed, because no method changes a
// list in place.
type traits struct {
	// Limit is the server's name for the limit of a reply, or noLimit.
	Limit string `json:"limit,omitempty"`
	// MaxTokens is the largest limit of a reply that the server accepts, 0 if unknown.
	MaxTokens int `json:"max_tokens,omitempty"`
	// Without lists the parts of requests that the server refuses: sampling parameters, and the
	// parts below.
	Without []string `json:"without,omitempty"`
	// Schemas lists the hashes of schemas that the server refuses.
	Schemas []string `json:"schemas,omitempty"`
	// Learned is the day of the last change.
	Learned string `json:"learned"`
}

// The parts of requests that a server may refuse, in addition to sampling parameters.
const (
	schemaPart        = "schema"         // any schema
	streamPart        = "stream"         // OpenAI streams some models only to verified accounts
	wholePart         = "whole"          // whole replies; DashScope can only stream some models
	streamOptionsPart = "stream_options" // the usage at the end of a stream
	systemPart        = "system"         // messages of the role system
	toolsPart         = "tools"          // functions that the model may call
	oneCallPart       = "one call"       // the request for at most one tool call
)

// noLimit means that the server accepts no limit of replies under any name.
const noLimit = "none"

// maxSchemas is how many refused schemas of a model are remembered. If a server refuses more, it is
// assumed to refuse all.
const maxSchemas = 32

// lacks reports whether the server refuses a part.
func (t *traits) lacks(part string) bool { return slices.Contains(t.Without, part) }

// drop notes that the server refuses a part.
func (t *traits) drop(part string) {
	if !t.lacks(part) {
		t.Without = append(slices.Clone(t.Without), part)
	}
}

// refusesSchema reports whether the server refuses a schema.
func (t *traits) refusesSchema(hash string) bool {
	return t.lacks(schemaPart) || slices.Contains(t.Schemas, hash)
}

// dropSchema notes that the server refuses a schema.
func (t *traits) dropSchema(hash string) {
	if slices.Contains(t.Schemas, hash) {
		return
	}
	if t.Schemas = append(slices.Clone(t.Schemas), hash); len(t.Schemas) > maxSchemas {
		t.Schemas = nil
		t.drop(schemaPart)
	}
}

// lower notes the largest limit of a reply that the server accepts.
func (t *traits) lower(limit int) {
	if t.MaxTokens == 0 || limit < t.MaxTokens {
		t.MaxTokens = limit
	}
}

// isOld reports whether the server may have changed since the traits were learned.
func (t *traits) isOld(now time.Time) bool {
	day, err := time.Parse(time.DateOnly, t.Learned)
	return err != nil || now.Sub(day) > keptFor || day.Sub(now) > 48*time.Hour
}

// keptFor is the time for which traits are kept before they are learned again.
const keptFor = 30 * 24 * time.Hour

// sentences describes the traits for people.
func (t *traits) sentences() []string {
	var all []string
	switch t.Limit {
	case "":
	case noLimit:
		all = append(all, "requests have no limit of the reply")
	default:
		all = append(all, "the limit of the reply is sent as "+t.Limit)
	}
	if t.MaxTokens > 0 {
		all = append(all, fmt.Sprintf("the limit of the reply is at most %d tokens", t.MaxTokens))
	}

	for _, part := range t.Without {
		switch part {
		case schemaPart:
			all = append(all, "schemas are part of the prompt")
		case streamPart:
			all = append(all, "replies are not streamed")
		case wholePart:
			all = append(all, "all replies are streamed")
		case streamOptionsPart:
			all = append(all, "streams have no usage: it is estimated")
		case toolsPart:
			all = append(all, "tools are only part of the prompt")
		case oneCallPart:
			all = append(all, "requests do not ask for a single call: the first one counts")
		case systemPart:
			all = append(all, "the system message is part of the first message of the user")
		default:
			all = append(all, "requests have no "+part)
		}
	}
	if n := len(t.Schemas); n > 0 {
		all = append(all, fmt.Sprintf("schemas that the server refused are part of the prompt: %d", n))
	}
	return all
}

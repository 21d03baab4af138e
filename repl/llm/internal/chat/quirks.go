package chat

import (
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// quirks remembers what a server's models reject, so that each is tried only once. The zero
// value is ready to use; it is safe for concurrent use.
type quirks struct {
	mu       sync.Mutex
	rejected map[string]bool // by partKey, schemaKey and streamKey
}

// maxQuirks bounds what is remembered. Beyond it, everything is learned anew.
const maxQuirks = 1024

// adapt returns a request without what the server is known to reject. A schema that the
// server cannot enforce becomes part of the prompt.
func (q *quirks) adapt(r llm.Request) Request {
	adapted := Request{Request: r}
	for _, p := range parts {
		if q.isRejected(partKey(r, p)) {
			p.drop(&adapted.Sampling)
		}
	}
	if r.Schema == nil {
		return adapted
	}

	if shape, ok := newShape(r.Schema); ok && !q.isRejected(schemaKey(r)) {
		adapted.Shape = &shape
		return adapted
	}
	adapted.Messages = appendInstruction(r.Messages, r.Schema)
	return adapted
}

// part is a sampling parameter that a model may reject.
type part struct {
	name  string // as servers call it
	isSet func(s *llm.Sampling) bool
	drop  func(s *llm.Sampling)
}

// parts are all parameters that a request can do without. The extra body is not among them: its
// meaning is unknown.
var parts = []part{
	{
		"temperature",
		func(s *llm.Sampling) bool { return s.Temperature != nil },
		func(s *llm.Sampling) { s.Temperature = nil },
	},
	{"top_p", func(s *llm.Sampling) bool { return s.TopP != nil }, func(s *llm.Sampling) { s.TopP = nil }},
	{"seed", func(s *llm.Sampling) bool { return s.Seed != nil }, func(s *llm.Sampling) { s.Seed = nil }},
	{
		"effort",
		func(s *llm.Sampling) bool { return s.ReasoningEffort != "" },
		func(s *llm.Sampling) { s.ReasoningEffort = "" },
	},
}

// schemaWords are words that servers use to complain about a schema.
var schemaWords = []string{"response_format", "output_config", "schema", "structured output"}

// learn remembers what a server rejected, and reports whether to ask again without it. A
// rejected request costs no tokens. Without names the sampling parameter that was rejected.
func (q *quirks) learn(r Request, streamed bool, err error) (again bool, without string) {
	var failure *llm.Error
	if !errors.As(err, &failure) || !errors.Is(failure, kind.ErrBadRequest) || failure.Status == 0 {
		return false, ""
	}

	message := strings.ToLower(failure.Message)
	complains := func(word string) bool { return strings.Contains(message, word) }
	for _, p := range parts {
		if p.isSet(&r.Sampling) && complains(p.name) {
			q.remember(partKey(r.Request, p))
			return true, p.name
		}
	}

	switch {
	case r.Shape != nil && slices.ContainsFunc(schemaWords, complains):
		q.remember(schemaKey(r.Request))
	case streamed && complains("stream"):
		q.remember(streamKey(r.Request))
	default:
		return false, ""
	}
	return true, ""
}

// partKey identifies a model that may reject a sampling parameter.
func partKey(r llm.Request, p part) string { return r.Model + "\x00" + p.name }

// streamKey identifies a model that may not allow streaming: OpenAI streams some models only to
// verified accounts, and some servers do not stream at all.
func streamKey(r llm.Request) string { return r.Model + "\x00stream" }

// schemaKey identifies a schema that a model may reject.
func schemaKey(r llm.Request) string {
	sum := sha256.Sum256(r.Schema)
	return r.Model + "\x00" + string(sum[:])
}

// isRejected reports whether a rejection is remembered.
func (q *quirks) isRejected(key string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()

	return q.rejected[key]
}

// remember stores a rejection.
func (q *quirks) remember(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()

	if q.rejected == nil || len(q.rejected) >= maxQuirks {
		q.rejected = map[string]bool{}
	}
	q.rejected[key] = true
}

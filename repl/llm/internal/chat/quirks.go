package chat

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/rlmhq/rlm/repl/internal/usage"
	"github.com/rlmhq/rlm/repl/llm"
)

// quirks stores what the models of a server need, so that each refusal occurs only once. It is safe
// for concurrent use. The zero value stores nothing beyond the end of the process.
type quirks struct {
	file  string // the file that stores the traits; empty for none
	about string // the server's address

	once   sync.Once
	mu     sync.Mutex
	models map[string]traits
	// guesses holds the changes whose reason no refusal stated. It is not stored in the file,
	// because the server may only have had a temporary problem.
	guesses map[string]traits
	// doubted counts, by model, the streams that ended without a finish reason although the server
	// answered the same request in one piece.
	doubted map[string]int
	// enforces holds the models that accepted a schema.
	enforces map[string]bool
	// shapes maps the hash of a schema to the form that is sent, or to nil if the schema cannot be
	// sent.
	shapes map[string]*Shape
	// longest is the length of the longest prompt that a model accepted, in estimated tokens.
	longest map[string]int64
}

// maxModels bounds the models that are remembered. If there are more, everything is learned again.
const maxModels = 256

// load reads the traits that other processes have learned. If the file cannot be read, everything
// is learned again.
func (q *quirks) load() {
	q.once.Do(func() {
		q.models, q.guesses, q.doubted = map[string]traits{}, map[string]traits{}, map[string]int{}
		q.enforces, q.longest = map[string]bool{}, map[string]int64{}
		q.shapes = map[string]*Shape{}
		if q.file == "" {
			return
		}
		kept, err := readTraits(q.file, q.about)
		if err != nil {
			slog.Debug("what a server refuses is learned anew", "file", q.file, "error", err)
			return
		}
		q.models = kept
	})
}

// open sets the file that stores the traits of a server.
func (q *quirks) open(folder, server string) {
	q.file, q.about = keptName(folder, server), server
}

// of returns the known traits of a model.
func (q *quirks) of(model string) traits {
	q.load()
	q.mu.Lock()
	defer q.mu.Unlock()

	known, guess := q.models[model], q.guesses[model]
	for _, part := range guess.Without {
		known.drop(part)
	}
	for _, hash := range guess.Schemas {
		known.dropSchema(hash)
	}
	return known
}

// noteSuccess notes that a model accepted a request.
func (q *quirks) noteSuccess(r Request) {
	tokens := usage.EstimateInput(r.Request)
	q.load()
	q.mu.Lock()
	defer q.mu.Unlock()

	if tokens > q.longest[r.Model] {
		makeRoom(q.longest)
		q.longest[r.Model] = tokens
	}
	if r.Shape != nil && !q.enforces[r.Model] {
		makeRoom(q.enforces)
		q.enforces[r.Model] = true
	}
}

// isLongest reports whether a prompt is clearly longer than every prompt that a model has accepted.
func (q *quirks) isLongest(model string, tokens int64) bool {
	q.load()
	q.mu.Lock()
	defer q.mu.Unlock()

	return tokens >= suspiciousLength && tokens > q.longest[model]+q.longest[model]/4
}

// suspiciousLength is the number of tokens from which the length of a prompt can be the reason for
// a refusal without a stated reason.
const suspiciousLength = 8_000

// keep remembers changes that made a model answer.
func (q *quirks) keep(model string, changes []change) {
	q.load()
	q.mu.Lock()
	defer q.mu.Unlock()

	if len(changes) == 0 || len(model) > maxName {
		return
	}
	known, guess, isNew := q.models[model], q.guesses[model], false
	for _, c := range changes {
		if c.isOnce {
			continue
		}
		if c.isDoubtful {
			makeRoom(q.doubted)
			if q.doubted[model]++; q.doubted[model] < 2 {
				continue
			}
		}
		if c.isGuess {
			c.apply(&guess)
			continue
		}
		c.apply(&known)
		isNew = true
	}
	if len(known.Schemas)+len(guess.Schemas) > 1 && !q.enforces[model] { // it accepts none
		guess.drop(schemaPart)
	}
	makeRoom(q.guesses)
	q.guesses[model] = guess
	if !isNew {
		return
	}

	known.Learned = time.Now().UTC().Format(time.DateOnly)
	makeRoom(q.models)
	q.models[model] = known
	if q.file == "" {
		return
	}
	if err := writeTraits(q.file, q.about, model, known); err != nil {
		slog.Debug("what a server refuses was not kept", "file", q.file, "error", err)
	}
}

// makeRoom empties a table that is full.
func makeRoom[V any](table map[string]V) {
	if len(table) >= maxModels {
		clear(table)
	}
}

// adapt returns a request without the parts that the server is known to refuse. A schema that the
// server cannot enforce becomes part of the prompt.
func (q *quirks) adapt(r llm.Request, known traits, limits []string) Request {
	adapted := Request{Request: r, Limit: known.Limit, NoStreamOptions: known.lacks(streamOptionsPart)}
	if adapted.Limit == "" {
		adapted.Limit = limits[0]
	}
	if known.MaxTokens > 0 && (r.MaxTokens == 0 || r.MaxTokens > known.MaxTokens) {
		adapted.MaxTokens = known.MaxTokens
	}
	for _, p := range parts {
		if known.lacks(p.name) {
			p.drop(&adapted.Sampling)
		}
	}

	if len(r.Tools) > 0 && known.lacks(toolsPart) {
		adapted.Tools = nil
	}
	adapted.AsksOneCall = r.OneCall && len(adapted.Tools) > 0 && !known.lacks(oneCallPart)
	if r.Schema != nil {
		hash := hashSchema(r)
		if adapted.Shape = q.shape(hash, r.Schema); adapted.Shape == nil || known.refusesSchema(hash) {
			adapted.Shape, adapted.Messages = nil, appendInstruction(r.Messages, r.Schema)
		}
	}
	if known.lacks(systemPart) {
		adapted.Messages = moveSystem(adapted.Messages)
	}
	return adapted
}

// shape returns the form of a schema that is sent, or nil if none can be sent.
func (q *quirks) shape(hash string, schema json.RawMessage) *Shape {
	q.load()
	q.mu.Lock()
	shape, known := q.shapes[hash]
	q.mu.Unlock()
	if known {
		return shape
	}

	if made, ok := newShape(schema); ok {
		shape = &made
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	makeRoom(q.shapes)
	q.shapes[hash] = shape
	return shape
}

// hashSchema identifies the schema of a request.
func hashSchema(r llm.Request) string {
	sum := sha256.Sum256(r.Schema)
	return hex.EncodeToString(sum[:16])
}

// part is a sampling parameter that a model may reject.
type part struct {
	name  string // the servers' name for it
	isSet func(s *llm.Sampling) bool
	drop  func(s *llm.Sampling)
}

// parts holds all parameters that a request can omit. The extra body is not one of them, because
// its meaning is unknown.
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

// moveSystem returns the messages with the system messages at the beginning of the first user
// message. Consecutive messages of one role become one, because servers without a system role often
// require the roles to alternate.
func moveSystem(messages []llm.Message) []llm.Message {
	var system, others []llm.Message
	for _, m := range messages {
		if m.Role == llm.RoleSystem {
			system = append(system, m)
		} else {
			others = append(others, m)
		}
	}
	for i := range system {
		system[i].Role = llm.RoleUser
	}

	var joined []llm.Message
	for _, m := range append(system, others...) {
		last := len(joined) - 1
		if last < 0 || joined[last].Role != m.Role {
			joined = append(joined, m)
			continue
		}
		joined[last].Content += "\n\n" + m.Content
		joined[last].Images = slices.Concat(joined[last].Images, m.Images)
	}
	return joined
}

package reflexion

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/schema"
)

// Memory is the knowledge available when a run begins.
type Memory struct {
	// History is the conversation before the task; prompts show its last three messages.
	History []llm.Message `json:"messageHistory,omitempty"`
	// Facts and Procedures were retrieved for the task.
	Facts      []Fact      `json:"retrievedFacts,omitempty"`
	Procedures []Procedure `json:"retrievedProcedures,omitempty"`
}

// Fact is a statement with a degree of confidence.
type Fact struct {
	Content string `json:"content"`
	// Confidence is from 0 to 1.
	Confidence float64 `json:"confidence"`
}

// Procedure is a way to perform a task.
type Procedure struct {
	Content string `json:"content"`
	// SuccessRate is from 0 to 1.
	SuccessRate float64 `json:"successRate"`
}

// maxMemory bounds a file of memory, in bytes.
const maxMemory = 4 << 20

// memorySchema is the contract of a memory file: an object in the form that agents store, or a
// list of facts.
const memorySchema = `{
	"$defs": {
		"share": {"type": "number", "minimum": 0, "maximum": 1},
		"facts": {"type": "array", "maxItems": 10000, "items": {
			"type": "object", "required": ["content", "confidence"], "additionalProperties": false,
			"properties": {"content": {"type": "string", "minLength": 1}, "confidence": {"$ref": "#/$defs/share"}}}}
	},
	"anyOf": [
		{"$ref": "#/$defs/facts"},
		{"type": "object", "additionalProperties": false, "properties": {
			"sessionId": {"type": "string"},
			"currentMessage": {"type": "string"},
			"messageHistory": {"type": "array", "maxItems": 10000, "items": {
				"type": "object", "required": ["role", "content"], "additionalProperties": false,
				"properties": {"role": {"enum": ["system", "user", "assistant"]}, "content": {"type": "string"}}}},
			"retrievedFacts": {"$ref": "#/$defs/facts"},
			"retrievedProcedures": {"type": "array", "maxItems": 10000, "items": {
				"type": "object", "required": ["content", "successRate"], "additionalProperties": false,
				"properties": {"content": {"type": "string", "minLength": 1}, "successRate": {"$ref": ` +
	`"#/$defs/share"}}}}
		}}
	]
}`

var memoryContract = sync.OnceValues(func() (*schema.Contract, error) {
	return schema.Compile(json.RawMessage(memorySchema))
})

// ParseMemory reads memory as JSON of at most 4 MiB: an object with messageHistory,
// retrievedFacts and retrievedProcedures (sessionId and currentMessage are allowed and ignored), or
// a list of facts. The error names the wrong part of the JSON and the expected value.
func ParseMemory(r io.Reader) (Memory, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxMemory+1))
	if err != nil {
		return Memory{}, fmt.Errorf("cannot read the memory: %w", err)
	}
	contract, err := memoryContract()
	if err != nil {
		return Memory{}, err
	}

	checked, violations, err := contract.Check(data)
	if err == nil && len(violations) > 0 {
		err = errors.New(violations[0].String())
	}
	if err != nil {
		return Memory{}, fmt.Errorf("cannot use the memory: %w", err)
	}

	var m Memory
	if checked[firstByte(checked)] == '[' {
		err = json.Unmarshal(checked, &m.Facts)
	} else {
		err = json.Unmarshal(checked, &m)
	}

	if err != nil {
		return Memory{}, fmt.Errorf("cannot use the memory: %w", err)
	}
	return m, nil
}

// firstByte returns the offset at which a JSON value begins.
func firstByte(value json.RawMessage) int {
	at := 0
	for value[at] == ' ' || value[at] == '\t' || value[at] == '\r' || value[at] == '\n' {
		at++
	}
	return at
}

// validate reports values that a Go program can set but a file cannot contain.
func (m *Memory) validate() error {
	for i, message := range m.History {
		switch message.Role {
		case llm.RoleSystem, llm.RoleUser, llm.RoleAssistant:
		default:
			return fmt.Errorf(
				"message %d of the history has role %q: it must be system, user or assistant", i+1,
				message.Role,
			)
		}
	}

	for i, f := range m.Facts {
		if !isShare(f.Confidence) {
			return fmt.Errorf(
				"fact %d has a confidence of %v: give a number from 0 to 1", i+1, f.Confidence,
			)
		}
	}

	for i, p := range m.Procedures {
		if !isShare(p.SuccessRate) {
			return fmt.Errorf(
				"procedure %d has a success rate of %v: give a number from 0 to 1", i+1,
				p.SuccessRate,
			)
		}
	}

	return nil
}

// isShare reports whether n is from 0 to 1, which is false for NaN.
func isShare(n float64) bool { return n >= 0 && n <= 1 }

// shownMessages bounds the messages of the history in a prompt.
const shownMessages = 3

// recent returns the messages of the history that prompts show.
func (m *Memory) recent() []llm.Message { return m.History[max(0, len(m.History)-shownMessages):] }

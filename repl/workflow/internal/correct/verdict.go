package correct

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/schema"
)

// Verdict is a judgement on an output.
type Verdict struct {
	Valid bool
	// Score is from 0 to 1.
	Score float64
	// Errors are objects with a message and, if known, a path. A valid output has none; any
	// other output has at least one.
	Errors []any
	// Suggestions are strings.
	Suggestions []any
	// Reason is the judge's reason; empty if it gave none.
	Reason string

	// foreign reports that the output has no value of the type that the schema requires. Such an
	// output is never the best one, because code that reads the best output does not expect it.
	foreign bool
}

// Values returns the verdict in the form of reflection.evaluate.
func (v Verdict) Values() map[string]any {
	values := map[string]any{
		"valid": v.Valid, "score": scoreValue(v.Score), "errors": v.Errors,
		"suggestions": v.Suggestions,
	}

	if v.Reason != "" {
		values["reason"] = v.Reason
	}
	return values
}

// scoreValue returns a score as a value of the state: a number that Python reads as a
// float, even if it is whole.
func scoreValue(score float64) json.Number {
	text := strconv.FormatFloat(score, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return json.Number(text)
}

// failVerdict returns the verdict on an output that could not be judged or made.
func failVerdict(format string, args ...any) Verdict {
	return Verdict{
		Errors:      []any{map[string]any{"message": fmt.Sprintf(format, args...)}},
		Suggestions: []any{},
	}
}

// judgeContract is the contract of the answers of judges and of custom code.
var judgeContract = parseLater(`{
	"type": "object", "required": ["valid"],
	"properties": {
		"valid": {"type": "boolean", "description": "whether it passes"},
		"score": {"type": "number", "minimum": 0, "maximum": 1, "description": "how good it is"},
		"reason": {"type": "string", "description": "why, in a sentence"},
		"errors": {"type": "array", "maxItems": 100, "description": "what is wrong, empty if it ` +
	`passes", "items": {"anyOf": [
			{"type": "object", "required": ["message"], "properties": {"path": {"type": "string"}, ` +
	`"message": {"type": "string"}}},
			{"type": "string"}
		]}},
		"suggestions": {"type": "array", "maxItems": 100, "items": {"type": "string"}, "description": "how to mend it"}
	}
}`)

// parseLater returns a function that parses a contract on first use.
func parseLater(text string) func() *schema.Contract {
	return sync.OnceValue(func() *schema.Contract {
		contract, err := schema.Parse(json.RawMessage(text))
		if err != nil {
			panic(err)
		}
		return contract
	})
}

// longestReason bounds the reason, and each error and suggestion of a verdict, in characters.
// They become part of the state and of further prompts.
const longestReason = 2_000

// verdictOf reads a verdict: true, false, or an object that meets the contract.
func verdictOf(value any, contract *schema.Contract) (Verdict, error) {
	if text, ok := value.(string); ok {
		raw, violations, err := contract.CheckReply(text)
		return readVerdict(raw, violations, err)
	}
	if valid, ok := value.(bool); ok {
		value = map[string]any{"valid": valid}
	}

	raw, err := json.Marshal(value)
	if err != nil {
		return Verdict{}, err
	}
	raw, violations, err := contract.Check(raw)
	return readVerdict(raw, violations, err)
}

// readVerdict makes a verdict from a value that was checked against the contract.
func readVerdict(raw json.RawMessage, violations []schema.Violation, err error) (Verdict, error) {
	if err != nil {
		return Verdict{}, err
	}
	if len(violations) > 0 {
		return Verdict{}, errors.New(violations[0].String())
	}

	var given struct {
		Valid       bool     `json:"valid"`
		Score       *float64 `json:"score"`
		Reason      string   `json:"reason"`
		Errors      []any    `json:"errors"`
		Suggestions []any    `json:"suggestions"`
	}

	if err := json.Unmarshal(raw, &given); err != nil {
		return Verdict{}, err
	}
	v := Verdict{
		Valid: given.Valid, Reason: texts.Truncate(given.Reason, longestReason), Errors: []any{},
		Suggestions: []any{},
	}

	for _, suggestion := range given.Suggestions {
		text, _ := suggestion.(string)
		v.Suggestions = append(v.Suggestions, texts.Truncate(text, longestReason))
	}
	switch {
	case given.Score != nil:
		v.Score = math.Max(0, math.Min(1, *given.Score))
	case given.Valid:
		v.Score = 1
	}

	if v.Valid && v.Score == 0 {
		return Verdict{}, errors.New("valid is true and score is 0, which contradict each other")
	}
	if !v.Valid {
		v.Errors = errorsOf(given.Errors, v.Reason)
	}
	return v, nil
}

// errorsOf turns errors into objects, and returns at least one.
func errorsOf(given []any, reason string) []any {
	found := []any{}
	for _, e := range given {
		if message, ok := e.(string); ok {
			e = map[string]any{"message": message}
		}
		if members, ok := e.(map[string]any); ok {
			message, _ := members["message"].(string)
			members["message"] = texts.Truncate(message, longestReason)
		}
		found = append(found, e)
	}

	if len(found) == 0 {
		if reason == "" {
			reason = "the evaluator rejects the output and gives no reason"
		}
		found = append(found, map[string]any{"message": reason})
	}

	return found
}

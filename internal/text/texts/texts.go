package texts

import (
	"encoding/json"
	"fmt"
)

// Show returns an answer as text: a string unchanged, anything else as JSON.
func Show(value json.RawMessage) string {
	var s string
	if len(value) > 0 && value[0] == '"' && json.Unmarshal(value, &s) == nil {
		return s
	}
	return string(value)
}

// Quote returns text as a JSON string.
func Quote(text string) (json.RawMessage, error) {
	data, err := json.Marshal(text)
	if err != nil {
		return nil, fmt.Errorf("cannot encode a text: %w", err)
	}
	return data, nil
}

// Truncate cuts text to at most limit characters and reports how many it left out: a truncated text
// ends with "[TRUNCATED: N chars remaining]".
func Truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}

	return fmt.Sprintf(
		"%s\n[TRUNCATED: %d chars remaining]", string(runes[:limit]), len(runes)-limit,
	)
}

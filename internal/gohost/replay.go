package gohost

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/rlmhq/rlm/internal/gorun"
)

// Snippet is one snippet of a state in format replay. One that called the host is
// an object with the answers it got; every other is its source alone, as
// tiers.FormatReplay says.
type Snippet struct {
	Source string     `json:"source"`
	Calls  []Answered `json:"calls"`
}

// MarshalJSON writes a snippet without calls as a string.
func (s Snippet) MarshalJSON() ([]byte, error) {
	if len(s.Calls) == 0 {
		return json.Marshal(s.Source)
	}
	type plain Snippet
	return json.Marshal(plain(s))
}

// UnmarshalJSON reads either form.
func (s *Snippet) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		return json.Unmarshal(data, &s.Source)
	}
	type plain Snippet
	return gorun.Decode(data, (*plain)(s))
}

// The bounds of a state.
const (
	maxState    = 64 << 20
	maxSnippets = 10_000
)

// DecodeState reads the snippets of a state in format replay.
func DecodeState(data []byte) ([]Snippet, error) {
	if len(data) > maxState {
		return nil, fmt.Errorf("it is longer than %d bytes", maxState)
	}
	var snippets []Snippet
	if err := gorun.Decode(data, &snippets); err != nil {
		return nil, err
	}
	if len(snippets) > maxSnippets {
		return nil, fmt.Errorf("it has more than %d snippets", maxSnippets)
	}
	return snippets, nil
}

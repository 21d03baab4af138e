package llm

import (
	"fmt"
	"strings"
)

// hidden is what a secret prints as.
const hidden = "[hidden]"

// Secret is a key. However it is printed or encoded, its value does not appear;
// only [Secret.Reveal] gives it. The value sits behind a function because fmt
// reads unexported fields of a struct without asking their methods.
type Secret struct{ reveal func() string }

// NewSecret returns the secret with a value, with the space around it removed.
func NewSecret(value string) Secret {
	value = strings.TrimSpace(value)
	if value == "" {
		return Secret{}
	}
	return Secret{reveal: func() string { return value }}
}

// Reveal returns the value, empty if there is none.
func (s Secret) Reveal() string {
	if s.reveal == nil {
		return ""
	}
	return s.reveal()
}

// IsZero reports whether there is no value.
func (s Secret) IsZero() bool { return s.reveal == nil }

// Remove returns a text without the secret's value in it.
func (s Secret) Remove(text string) string {
	if s.IsZero() {
		return text
	}
	return strings.ReplaceAll(text, s.Reveal(), hidden)
}

// String returns a placeholder, empty if there is no value.
func (s Secret) String() string {
	if s.IsZero() {
		return ""
	}
	return hidden
}

// Format prints the placeholder for every verb and flag.
func (s Secret) Format(state fmt.State, _ rune) { fmt.Fprint(state, s.String()) }

// MarshalText encodes the placeholder, for JSON, YAML and logs.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText takes the value from a configuration file.
func (s *Secret) UnmarshalText(text []byte) error {
	*s = NewSecret(string(text))
	return nil
}

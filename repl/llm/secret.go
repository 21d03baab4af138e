package llm

import "strings"

// hidden is what a secret prints as.
const hidden = "[hidden]"

// Secret is a key whose value does not appear in any print or encoding. Only
// [Secret.Reveal] returns it.
//
// The value sits behind a function, because fmt prints the unexported fields of a
// struct without calling their methods.
type Secret struct{ reveal func() string }

// NewSecret returns a secret with the given value, white space around it removed.
func NewSecret(value string) Secret {
	value = strings.TrimSpace(value)
	if value == "" {
		return Secret{}
	}
	return Secret{reveal: func() string { return value }}
}

// Reveal returns the value, which is empty if the secret is not set.
func (s Secret) Reveal() string {
	if s.reveal == nil {
		return ""
	}
	return s.reveal()
}

// String returns a placeholder, or nothing if the secret is not set.
func (s Secret) String() string {
	if s.reveal == nil {
		return ""
	}
	return hidden
}

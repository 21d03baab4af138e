package llm

import "strings"

// hidden is printed instead of a secret.
const hidden = "[hidden]"

// Secret is a key whose value never appears when it is printed or encoded. Only [Secret.Reveal]
// returns it.
//
// The value is held by a function, because fmt prints the unexported fields of a struct without
// calling their methods.
type Secret struct{ reveal func() string }

// NewSecret returns a secret with the given value, trimmed of surrounding white space.
func NewSecret(value string) Secret {
	value = strings.TrimSpace(value)
	if value == "" {
		return Secret{}
	}
	return Secret{reveal: func() string { return value }}
}

// Reveal returns the value, or "" if the secret is not set.
func (s Secret) Reveal() string {
	if s.reveal == nil {
		return ""
	}
	return s.reveal()
}

// String returns a placeholder, or "" if the secret is not set.
func (s Secret) String() string {
	if s.reveal == nil {
		return ""
	}
	return hidden
}

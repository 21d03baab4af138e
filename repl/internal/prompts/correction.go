package prompts

import (
	"strings"

	"github.com/rlmhq/rlm/schema"
)

// Correction explains to a model the mistakes in its answer and the expected form.
func Correction(contract *schema.Contract, violations []schema.Violation) string {
	var b strings.Builder
	b.WriteString("Your answer does not meet the required schema:\n")
	for _, v := range violations {
		b.WriteString("- " + v.String() + "\n")
	}
	b.WriteString(
		"\nRequired:\n" + contract.Describe() + "\n\nAnswer again with a value that meets it.",
	)

	return b.String()
}

// Join returns violations on one line.
func Join(violations []schema.Violation) string {
	parts := make([]string, len(violations))
	for i, v := range violations {
		parts[i] = v.String()
	}
	return strings.Join(parts, "; ")
}

package router

import (
	"errors"
	"fmt"
	"strings"

	"github.com/rlmhq/rlm/tiers"
)

// ErrNoTier reports that no tier may run a snippet. The error is a [*NoTierError], which holds
// the reasons.
var ErrNoTier = errors.New("no tier may run the snippet")

// NoTierError lists the reason why each tier was refused. It wraps [ErrNoTier].
type NoTierError struct {
	// Refusals are the reasons, one for each tier.
	Refusals []Refusal
	// Effects reports whether the snippet made host calls before the last tier rejected it. Its
	// effects on the namespace are undone in any case.
	Effects tiers.Effects
	// Advice describes what the snippet can do instead, or is empty.
	Advice string
}

// Error lists the refusals, one per line, and the advice.
func (e *NoTierError) Error() string {
	var b strings.Builder
	b.WriteString(ErrNoTier.Error())
	if len(e.Refusals) == 0 {
		b.WriteString(": there is none")
	}
	for _, r := range e.Refusals {
		fmt.Fprintf(&b, "\n  tier %s: %s", r.Tier, r.Reason)
	}
	if e.Advice != "" {
		b.WriteString("\n" + e.Advice)
	}
	return b.String()
}

// Unwrap returns [ErrNoTier].
func (e *NoTierError) Unwrap() error { return ErrNoTier }

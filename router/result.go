package router

import (
	"github.com/rlmhq/rlm/tiers"
)

// Result is what became of a snippet, and where.
type Result struct {
	tiers.Result
	// Tier is where the snippet ran, empty if no tier was tried.
	Tier string
	// Plan is the decision that was followed, with the rejections on the way.
	Plan *Plan
	// Moved says that the namespace moved for the snippet, nil if it stayed.
	Moved *Move
	// Attempts are the tiers that rejected the snippet before, or could not take the
	// namespace, in order.
	Attempts []Refusal
}

// Move says that the namespace went from one tier to another.
type Move struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Report says how it went. Left holds what could not be exported, and what could not
	// be imported.
	Report tiers.Report `json:"report"`
}

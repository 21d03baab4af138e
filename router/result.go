package router

import (
	"github.com/rlmhq/rlm/tiers"
)

// Result is the outcome of a snippet, and the tier that ran it.
type Result struct {
	tiers.Result
	// Tier is the tier in which the snippet ran; empty if no tier was tried.
	Tier string
	// Plan is the plan that was followed, including rejections along the way.
	Plan *Plan
	// Moved describes the move of the namespace for the snippet; nil if it stayed.
	Moved *Move
	// Attempts are the tiers that rejected the snippet beforehand, or could not import the
	// namespace, in order.
	Attempts []Refusal
}

// Move describes how the namespace moved from one tier to another.
type Move struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Report is the outcome of the move. Left holds the values that could not be exported or
	// imported.
	Report tiers.Report `json:"report"`
}

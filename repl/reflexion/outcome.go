package reflexion

import (
	"time"

	"github.com/rlmhq/rlm/repl/ledger"
)

// The ways in which a run ends. Only StatusPassed is a success. With ledger.StatusPartial, the
// final draft is the latest one.
const (
	// StatusPassed: no judge found more than minor issues in the final draft.
	StatusPassed ledger.Status = "passed"
	// StatusRejected: the iterations are used up, and the final draft still has major
	// or critical issues.
	StatusRejected ledger.Status = "rejected"
	// StatusUnjudged: a judge gave no readable critique in any attempt, and the readable
	// critiques leave nothing to revise.
	StatusUnjudged ledger.Status = "unjudged"
)

// Outcome is the result of a run.
type Outcome struct {
	// FinalDraft is the last draft, even if it did not pass; empty if there is none.
	FinalDraft string `json:"final_draft"`
	// Iterations are the drafts with their evidence and critiques, in order.
	Iterations []Iteration `json:"iterations"`
	// TotalLLMCalls and TotalTokens (input and output together) include repeated critiques.
	TotalLLMCalls int64 `json:"total_llm_calls"`
	TotalTokens   int64 `json:"total_tokens"`
	// Success reports whether the final draft passed.
	Success bool `json:"success"`

	Status ledger.Status `json:"status"`
	// Reason explains in one sentence why the status is not passed.
	Reason string `json:"reason,omitempty"`
	// Spent is the part of Budget that the run used.
	Spent   ledger.Spending `json:"spent"`
	Budget  ledger.Budget   `json:"budget"`
	Elapsed time.Duration   `json:"elapsed_ns"`
	// Trace is the folder of the record; empty if there is none.
	Trace string `json:"trace,omitempty"`
}

// Iteration is one draft with its evidence and critique.
type Iteration struct {
	Number int    `json:"iteration_number"` // from 1
	Draft  string `json:"draft"`
	// Evidence is the evidence that the judges saw.
	Evidence []Evidence `json:"evidence"`
	// Critique is the merged critique of all judges, or nil if the run ended before it.
	Critique *Critique `json:"critique"`
	// Revised is false for the first draft and true for its revisions.
	Revised bool `json:"revised"`
}

// The sources of evidence.
const (
	sourceMemory        = "memory"
	sourceCodebase      = "codebase"
	sourceDocumentation = "documentation"
)

// Evidence is a fact or a passage to check a draft against.
type Evidence struct {
	// Source is "memory", "codebase" or "documentation".
	Source  string `json:"source"`
	Content string `json:"content"`
	// Relevance is from 0 to 1: for memory, the confidence or success rate; for a passage, its BM25
	// score as a fraction of the highest score that the query can reach.
	Relevance float64 `json:"relevance"`
	// SupportsClaim is the claim or the issue for which the passage was found. The judges decide
	// whether it supports the claim.
	SupportsClaim string `json:"supports_claim,omitempty"`
	// Location is the file and line of a passage, "path:line".
	Location string `json:"location,omitempty"`
}

// Critique is the judges' assessment of a draft.
type Critique struct {
	Issues []Issue `json:"issues"`
	// Confidence is the confidence of the least certain judge, from 0 to 1.
	Confidence float64 `json:"confidence"`
	// Passes reports that the draft is good enough. It follows from the severities of the
	// issues; the model's own verdict is ignored.
	Passes bool `json:"passes"`
	// Unreadable counts the judges without a readable critique. If there is such a judge, the draft
	// does not pass.
	Unreadable int `json:"unreadable,omitempty"`
}

// The kinds of faults.
const (
	issueMissing     = "missing"     // requested by the task but not in the draft
	issueUnsupported = "unsupported" // claimed without evidence
	issueIncorrect   = "incorrect"   // contradicted by evidence, or wrong in itself
)

// The severities. A draft with an issue above minor does not pass.
const (
	severityMinor    = "minor"
	severityMajor    = "major"
	severityCritical = "critical"
)

// rank orders severities. An unknown severity is treated as the worst.
func rank(severity string) int {
	switch severity {
	case severityMinor:
		return 0
	case severityMajor:
		return 1
	case severityCritical:
	}
	return 2
}

// Issue is one fault of a draft.
type Issue struct {
	Type         string `json:"type"`
	Description  string `json:"description"`
	Severity     string `json:"severity"`
	SuggestedFix string `json:"suggested_fix,omitempty"`
}

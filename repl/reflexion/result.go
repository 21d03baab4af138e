package reflexion

import (
	"time"

	"github.com/rlmhq/rlm/repl/ledger"
)

// The ways in which a run ends. Only StatusPassed is a success. With ledger.StatusPartial the
// final draft is the last one.
const (
	// StatusPassed: no judge found more than minor issues in the final draft.
	StatusPassed ledger.Status = "passed"
	// StatusRejected: the iterations are used up, and the final draft still has major
	// or critical issues.
	StatusRejected ledger.Status = "rejected"
	// StatusUnjudged: a judge gave no critique that can be read, however often it was
	// asked, and those that can be read leave nothing to revise.
	StatusUnjudged ledger.Status = "unjudged"
)

// Result is what became of a run.
type Result struct {
	// FinalDraft is the last draft, also if it did not pass; empty if there is none.
	FinalDraft string `json:"final_draft"`
	// Iterations are the drafts with their evidence and critiques, in order.
	Iterations []Iteration `json:"iterations"`
	// TotalLLMCalls and TotalTokens (in and out together) are of the ledger: critiques
	// that were asked for again are in them.
	TotalLLMCalls int64 `json:"total_llm_calls"`
	TotalTokens   int64 `json:"total_tokens"`
	// Success says that the final draft passed.
	Success bool `json:"success"`

	Status ledger.Status `json:"status"`
	// Reason is why the status is not passed, one sentence.
	Reason string `json:"reason,omitempty"`
	// Spent is what the run used, of Budget.
	Spent   ledger.Spending `json:"spent"`
	Budget  ledger.Budget   `json:"budget"`
	Elapsed time.Duration   `json:"elapsed_ns"`
	// Trace is the folder with the record, empty if there is none.
	Trace string `json:"trace,omitempty"`
}

// Iteration is one draft and what was found about it.
type Iteration struct {
	Number int    `json:"iteration_number"` // from 1
	Draft  string `json:"draft"`
	// Evidence is what the judges were shown.
	Evidence []Evidence `json:"evidence"`
	// Critique is that of all judges together, nil if the run ended before there was
	// one.
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

// Evidence is something that a draft can be held against.
type Evidence struct {
	// Source is "memory", "codebase" or "documentation".
	Source  string `json:"source"`
	Content string `json:"content"`
	// Relevance is from 0 to 1: of memory its confidence or success rate, of a passage
	// the share of the highest BM25 score that its query could give.
	Relevance float64 `json:"relevance"`
	// SupportsClaim is the claim or the issue that a passage was found for. Whether it
	// supports it is for the judges to say.
	SupportsClaim string `json:"supports_claim,omitempty"`
	// Location is the file and line of a passage, "path:line".
	Location string `json:"location,omitempty"`
}

// Critique is what judges say of a draft.
type Critique struct {
	Issues []Issue `json:"issues"`
	// Confidence is how sure the judges are, from 0 to 1: that of the least sure.
	Confidence float64 `json:"confidence"`
	// Passes says that the draft is good enough. It is decided from the issues'
	// severities; what a model says of it is not looked at.
	Passes bool `json:"passes"`
	// Unreadable is how many judges gave no critique that can be read. With one of
	// them no draft passes.
	Unreadable int `json:"unreadable,omitempty"`
}

// The kinds of faults.
const (
	issueMissing     = "missing"     // the task asks for it, and the draft lacks it
	issueUnsupported = "unsupported" // claimed, and no evidence bears it out
	issueIncorrect   = "incorrect"   // contradicted by evidence, or wrong in itself
)

// The severities. A draft with an issue above minor does not pass.
const (
	severityMinor    = "minor"
	severityMajor    = "major"
	severityCritical = "critical"
)

// rank orders severities. One that is not known is as bad as can be.
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

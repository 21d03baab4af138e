package ledger

// Status describes how a run of a loop ended.
type Status string

// The ways in which a run ends.
const (
	// StatusAnswered: the model gave an answer that meets its contract.
	StatusAnswered Status = "answered"
	// StatusSynthesised: the turns or the time ran out, and the model then gave its best answer.
	StatusSynthesised Status = "synthesised"
	// StatusPartial: the budget was used up first.
	StatusPartial Status = "partial"
	// StatusNoAnswer: the turns ran out without an answer that meets its contract.
	StatusNoAnswer Status = "no_answer"
	// StatusParked: a call waits for a human decision. A run with a name resumes after the
	// decision.
	StatusParked Status = "parked"
	// StatusCanceled: the caller ended the run.
	StatusCanceled Status = "canceled"
	// StatusFailed: a failure ended the run; the loop returns the error.
	StatusFailed Status = "failed"
)

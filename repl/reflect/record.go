package reflect

import (
	"time"

	"github.com/rlmhq/rlm/internal/texts"
	"github.com/rlmhq/rlm/repl/internal/record"
)

// Record is how a reflection went. It is in Raw of every output, as "rr_trace".
type runRecord struct {
	Iterations      []iterationRecord `json:"iterations"`
	SubagentCalls   []subagentCall    `json:"subagent_calls"`
	TotalIterations int               `json:"total_iterations"`
	// TimedOut says that the iterations, or the budget, were used up without an
	// accepted analysis.
	TimedOut bool `json:"timed_out"`
}

// IterationRecord is one iteration. Without code the code and what it wrote are null.
type iterationRecord struct {
	Iteration  int     `json:"iteration"` // from 0
	Code       *string `json:"code"`
	Stdout     *string `json:"stdout"`
	Stderr     *string `json:"stderr"`
	Terminated bool    `json:"terminated"` // its analysis was accepted
}

// record is the run as far as it came.
func (l *loop) record(timedOut bool) runRecord {
	return runRecord{
		Iterations: append([]iterationRecord{}, l.log...), SubagentCalls: l.helper.history(),
		TotalIterations: len(l.log), TimedOut: timedOut,
	}
}

// note takes an iteration into the record and, if it had a reply, the trajectory.
func (l *loop) note(it iteration, begun time.Time) {
	entry := iterationRecord{Iteration: it.index, Code: it.code, Terminated: it.terminated}
	if it.result != nil {
		stdout := texts.Truncate(it.result.stdout, l.cfg.MaxOutputChars)
		stderr := texts.Truncate(it.result.stderr, l.cfg.MaxOutputChars)
		entry.Stdout, entry.Stderr = &stdout, &stderr
	}

	l.log = append(l.log, entry)
	l.write(it, begun)
}

// write puts an iteration into the trajectory.
func (l *loop) write(it iteration, begun time.Time) {
	if l.trace == nil {
		return
	}
	out := record.Iteration{
		Iteration: it.index + 1, Prompt: it.sent, Response: it.response,
		IterationTime: time.Since(begun).Seconds(),
	}

	if it.done != nil {
		out.CodeBlocks = it.done.CodeBlocks(l.session)
	}
	if it.reflection != nil {
		out.FinalAnswer = it.reflection
	}

	l.trace.Turn(out)
}

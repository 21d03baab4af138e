package reflect

import (
	"fmt"
	"slices"

	"github.com/rlmhq/rlm/repl/internal/record"
	"github.com/rlmhq/rlm/repl/internal/turns"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/tiers"
)

// iteration is the state of one iteration. It is a value: a step returns a copy with its
// results filled in. Steps never write to its slices.
type iteration struct {
	// messages are the conversation up to now; index counts iterations from 0.
	messages []llm.Message
	index    int

	// response is the reply, finish the reason for its end, and sent the messages of the call.
	response, finish string
	sent             []llm.Message

	// code is the code in the reply, nil without code; then direct is the reply itself.
	code, direct *string

	// done is the turn of the code, result its summary; nil without code.
	done   *turns.Turn
	result *execution

	// terminated reports that reflection is the accepted analysis; otherwise feedback holds the
	// reply and the answer to it.
	terminated bool
	reflection *Analysis
	feedback   []llm.Message
}

// next returns the iteration that follows one that did not end the loop.
func (it iteration) next() iteration {
	return iteration{
		messages: append(slices.Clip(it.messages), it.feedback...), index: it.index + 1,
	}
}

// header returns the first line of the feedback: the remaining iterations and calls. It urges the
// model to finish if either is nearly used up.
func (it iteration) header(most int, calls int64) string {
	n := it.index + 1
	text := fmt.Sprintf("[Iteration %d/%d] [%d calls left]", n, most, calls)
	if min(int64(most-n), calls) <= 2 {
		text += " (approaching limit — finalize soon)"
	}
	return text
}

// execution is the result of code.
type execution struct {
	stdout, stderr string // stderr includes the traceback
	final          *tiers.Final
	success        bool
}

// executionOf summarises a turn of one snippet. A snippet that no tier ran is treated as failed,
// with the reason as its stderr.
func executionOf(done *turns.Turn) *execution {
	if len(done.Ran) == 0 {
		e := &execution{}
		for _, note := range done.Notes {
			e.stderr += note + "\n"
		}
		return e
	}

	ran := &done.Ran[0]
	result := record.BlockOf(ran, nil).Result
	return &execution{
		stdout: result.Stdout, stderr: result.Stderr, final: done.Final, success: !record.HasFailed(ran),
	}
}

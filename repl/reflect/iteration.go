package reflect

import (
	"fmt"
	"slices"

	"github.com/rlmhq/rlm/repl/internal/record"
	"github.com/rlmhq/rlm/repl/internal/turns"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/tiers"
)

// iteration is the state of one iteration. It is a value: a step returns it with its
// own results filled in, and what a step was given stays as it was. Its slices are
// never written to.
type iteration struct {
	// messages are the conversation so far, index counts iterations from 0.
	messages []llm.Message
	index    int

	// response is the reply, finish why it ended; sent is what the model was sent.
	response, finish string
	sent             []llm.Message

	// code is what the reply has to run, nil for none; direct is the reply itself then.
	code, direct *string

	// done is what became of the code, result the same in short; nil for no code.
	done   *turns.Turn
	result *execution

	// terminated says that reflection is the accepted analysis; otherwise feedback is
	// the reply and what the model is told about it.
	terminated bool
	reflection *Analysis
	feedback   []llm.Message
}

// next is the iteration after one that did not end the loop.
func (it iteration) next() iteration {
	return iteration{
		messages: append(slices.Clip(it.messages), it.feedback...), index: it.index + 1,
	}
}

// header is the first line of the feedback.
func (it iteration) header(most int) string {
	n := it.index + 1
	text := fmt.Sprintf("[Iteration %d/%d]", n, most)
	if n >= most-2 {
		text += " (approaching limit — finalize soon)" //nolint:misspell // models know the word in this spelling
	}
	return text
}

// execution is what became of code.
type execution struct {
	stdout, stderr string // stderr has the traceback, too
	final          *tiers.Final
	success        bool
}

// executionOf sums up a turn of one snippet. A snippet that no tier ran is no success,
// and the reason is its stderr.
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
		stdout: result.Stdout, stderr: result.Stderr, final: done.Final, success: !ran.Failed(),
	}
}

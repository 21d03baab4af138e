package reflect

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/rlmhq/rlm/repl/internal/conversation"
	"github.com/rlmhq/rlm/repl/internal/loopsession"
	"github.com/rlmhq/rlm/repl/internal/turns"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/tiers"
)

// step is one of the four steps of an iteration.
type step func(ctx context.Context, it iteration) (iteration, error)

// iterate takes the four steps in order.
func (l *loop) iterate(ctx context.Context, it iteration) (iteration, error) {
	for _, next := range []step{l.call, l.extract, l.execute, l.check} {
		var err error
		if it, err = next(ctx, it); err != nil {
			return it, err
		}
	}
	return it, nil
}

// call trims the messages and asks the model.
func (l *loop) call(ctx context.Context, it iteration) (iteration, error) {
	it.sent = l.trim(it.messages, l.cfg.MaxContextChars)
	response, err := l.ask(ctx, "root", it.sent)
	if errors.Is(err, llm.ErrContextLength) {
		half := conversation.CountChars(it.sent) / 2
		if shorter := l.trim(it.messages, half); len(shorter) < len(it.sent) {
			it.sent = shorter
			response, err = l.ask(ctx, "root", it.sent)
		}
	}
	it.response, it.finish = response.Text, response.Finish
	return it, err
}

// trim drops messages until at most that many characters remain.
func (l *loop) trim(messages []llm.Message, most int) []llm.Message {
	sent := conversation.TrimTurns(messages, 1, most)
	if len(sent) < len(messages) {
		l.tell(ledger.Event{
			Kind: ledger.EventCompaction,
			Text: strings.TrimSpace(strings.TrimPrefix(sent[0].Content, l.prompt)),
		})
	}
	return sent
}

// extract finds the code in the reply. A reply without code may be the analysis itself; a
// JSON object always is.
func (l *loop) extract(_ context.Context, it iteration) (iteration, error) {
	_, whole := direct(it.response)
	if source, ok := turns.ExtractScript(it.response, it.finish == llm.FinishLength); ok && !whole {
		it.code = &source
	} else {
		it.direct = &it.response
	}
	return it, nil
}

// execute runs the code.
func (l *loop) execute(ctx context.Context, it iteration) (iteration, error) {
	it.done = &turns.Turn{}
	if it.code == nil {
		return it, nil
	}
	done, err := l.executor.Execute(
		ctx, turns.Reply{Blocks: []loopsession.Block{{Language: tiers.Python, Source: *it.code}}},
	)

	if err == nil {
		err = l.refurnish(ctx, &done)
	}
	it.done, it.result = &done, executionOf(&done)
	return it, err
}

// The notes to a model without an accepted analysis.
const (
	premature = "You called FINAL() before exploring the data. Read the actual variables first, " +
		"then call FINAL() with evidence-based analysis."
	erroneous = "Your code had an error. Fix the bug and try again. Do NOT call FINAL() until " +
		"your code executes successfully."
	wantCode = "Your reply had neither code nor an analysis, so nothing happened. Look at the " +
		"trace with Python code in a ```python block, and call FINAL() with your analysis."
)

// check examines the result of the code, or a reply that is itself an analysis. It accepts an
// analysis or notes the problem.
func (l *loop) check(ctx context.Context, it iteration) (iteration, error) {
	value, submitted := it.submission()

	note := ""
	switch {
	case !submitted && it.code == nil:
		note = wantCode
	case !submitted:
	case it.index == 0:
		note = premature
	case it.result != nil && !it.result.success:
		note = erroneous
	default:
		reflection, err := parseAnalysis(value)
		if err == nil {
			it.terminated, it.reflection = true, &reflection
			return it, nil
		}
		note = "FINAL() was not accepted: " + err.Error() + ". Your variables are as you left them; call FINAL() again."
	}

	return l.feedback(ctx, it, note)
}

// submission returns the value that the model submitted as its analysis.
func (it iteration) submission() (value json.RawMessage, ok bool) {
	switch {
	case it.code == nil && it.finish != llm.FinishStop:
		return nil, false
	case it.code == nil:
		return direct(*it.direct)
	case it.result.final != nil:
		return it.result.final.Value, true
	}
	return nil, false
}

// feedback appends the result of a reply to the messages.
func (l *loop) feedback(ctx context.Context, it iteration, note string) (iteration, error) {
	o := turns.FeedbackOptions{
		Cap: l.cfg.MaxOutputChars, Turn: it.index + 1, Turns: l.cfg.MaxIterations,
		Header: it.header(l.cfg.MaxIterations, l.caller.Ledger.CallsLeft()),
	}

	if note != "" {
		o.Notes = append(o.Notes, note)
	}
	if it.finish == llm.FinishLength {
		o.Notes = append(o.Notes, turns.ReplyCut)
	}

	told, err := it.done.Feedback(ctx, l.session, o)
	if err != nil {
		return it, err
	}
	it.feedback = conversation.AppendReply(nil, it.response, told)
	return it, nil
}

package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/rlmhq/rlm/internal/bigtext"
	"github.com/rlmhq/rlm/internal/texts"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/internal/conversation"
	"github.com/rlmhq/rlm/repl/internal/inputs"
	"github.com/rlmhq/rlm/repl/internal/tokens"
	"github.com/rlmhq/rlm/repl/internal/turns"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/schema"
	"github.com/rlmhq/rlm/tiers"
)

// synthesize asks for the best answer so far, once, when the turns are used up.
func (l *loop) synthesize(ctx context.Context) (Outcome, error) {
	reason := fmt.Sprintf("the %d turns were used up", l.cfg.MaxTurns)
	if l.cfg.NoSynthesis {
		return Outcome{Status: ledger.StatusNoAnswer, Reason: reason}, nil
	}
	order, err := prompt("synthesis", nil)
	if err != nil {
		return Outcome{}, err
	}

	l.messages = conversation.AppendUser(l.messages, order)
	response, err := l.ask(ctx, "synthesis", l.messages)
	if err != nil {
		return Outcome{}, err
	}
	reply := turns.Extract(response.Text)
	declined := calls.CheckRefusal(l.model, response)
	if declined != nil && len(reply.Blocks) == 0 && reply.Final == nil {
		return Outcome{
			Status: ledger.StatusNoAnswer, Reason: reason + ", and " + declined.Error(),
		}, nil
	}

	done, err := l.execute(ctx, reply)
	if err != nil {
		return Outcome{}, err
	}
	value := json.RawMessage(nil)
	if done.Final != nil {
		value = done.Final.Value
	} else if len(reply.Blocks) == 0 && reply.Final == nil {
		if value, err = json.Marshal(strings.TrimSpace(texts.DropThoughts(response.Text))); err != nil {
			return Outcome{}, err
		}
	}

	if value == nil || string(value) == `""` {
		return Outcome{Status: ledger.StatusNoAnswer, Reason: reason}, nil
	}
	answer, violations := l.check(value)
	if violations != nil {
		return Outcome{
			Status: ledger.StatusNoAnswer,
			Reason: reason + ", and the last answer does not meet the schema: " + violations[0].String(),
		}, nil
	}

	l.tell(ledger.Event{Kind: ledger.EventAnswer, Purpose: "synthesis", Text: texts.Show(answer)})
	return Outcome{Status: ledger.StatusSynthesised, Answer: answer, Reason: reason}, nil
}

// compact replaces the turns with a summary once they fill their share of the model's
// window. The variable history keeps all messages.
func (l *loop) compact(ctx context.Context) error {
	limit := int64(l.cfg.CompactAt * float64(l.caller.Window(l.model)))
	if len(l.messages) <= preamble || conversation.CountTokens(l.messages) <= limit {
		return nil
	}
	order, err := prompt("compact", nil)
	if err != nil {
		return err
	}

	// The model cannot summarise messages that do not fit into its window.
	whole := l.messages
	ask := conversation.AppendUser(
		conversation.TrimTurns(whole, preamble, int(3*l.caller.Window(l.model))), order,
	)
	response, err := l.ask(ctx, "compaction", ask)
	if err != nil {
		return err
	}

	summary := strings.TrimSpace(response.Text)
	if summary == "" || response.Finish == llm.FinishRefusal {
		summary = "(none was written)" // the variables and history remain
	}
	if err := l.session.Assign(ctx, "history", l.extendHistory(whole[preamble:])); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		l.tell(ledger.Event{Kind: ledger.EventWarning, Purpose: "compaction", Error: err.Error()})
	}

	l.compactions++
	// The summary covers the last message too, so a quarter of the share is enough for
	// it. With more, the next turn would be summarised at once. The share is in tokens:
	// as many characters are a quarter of it, or all of it where each character is a
	// token.
	last := texts.Truncate(whole[len(whole)-1].Content, int(limit))
	if tokens.Estimate(last) > limit/2 {
		last = texts.Truncate(last, int(limit/4))
	}
	l.messages = conversation.AppendReply(
		whole[:preamble],
		"Summary of my work so far:\n"+summary,
		"Your earlier messages were replaced by this summary; all of them are in `history`, a "+
			"list of dicts with role and content. "+
			"Your variables are as you left them. What came last:\n"+last,
	)

	l.tell(ledger.Event{Kind: ledger.EventCompaction, Text: summary})
	return nil
}

// extendHistory adds the messages since the last compaction to the history and returns
// all of it.
func (l *loop) extendHistory(turns []llm.Message) []llm.Message {
	if l.compactions > 0 {
		turns = turns[2:] // the last summary and its frame
	}
	l.history = append(l.history, turns...)
	return l.history
}

// measureInputs returns the size of the inputs, in characters.
func (r *tree) measureInputs(ctx context.Context) (int64, error) {
	var sum int64
	for _, input := range r.cfg.Inputs {
		switch {
		case input.Text != nil:
			n, err := lengthOf(ctx, input.Text)
			if err != nil {
				return 0, err
			}
			sum += n
		case input.Dir != nil:
			for _, name := range input.Dir.Names() {
				n, err := input.Dir.Size(name)
				if err != nil {
					return 0, err
				}
				sum += n
			}
		default:
			sum += int64(len(input.Value))
		}
	}

	return sum, nil
}

// lengthOf returns the length of a text, in characters.
func lengthOf(ctx context.Context, text tiers.Text) (int64, error) {
	t, err := bigtext.Of(ctx, text)
	if err != nil {
		return 0, err
	}
	return t.Len(ctx)
}

// fits reports whether a number of characters fits into its share of the root's window.
func (r *tree) fits(chars int64) bool {
	return chars/4 <= int64(r.cfg.BypassShare*float64(r.caller.Window(r.cfg.modelAt(0))))
}

// bypass answers with one call if the inputs fit. Done is false if the loop has to
// answer: the inputs do not fit, or one is a directory.
func (r *tree) bypass(
	ctx context.Context, contract *schema.Contract,
) (outcome Outcome, done bool, err error) {
	chars, err := r.measureInputs(ctx)
	if err != nil || !r.fits(chars) {
		return outcome, false, err
	}
	text, ok, err := r.inlineInputs(ctx, chars)
	if err != nil || !ok {
		return outcome, false, err
	}

	question, err := prompt("direct", map[string]any{"Question": r.cfg.Question, "Context": text})
	if err != nil {
		return outcome, false, err
	}
	ask := calls.Ask{
		Node: "0", Purpose: "bypass", Model: r.cfg.modelAt(0), Schema: contract,
		Messages: []llm.Message{{Role: llm.RoleUser, Content: question}},
	}

	outcome = Outcome{Status: ledger.StatusAnswered, Bypassed: true}
	if contract != nil {
		outcome.Answer, err = r.caller.CompleteTyped(ctx, ask, r.cfg.Retries)
	} else {
		var response llm.Response
		if response, err = r.caller.Complete(ctx, ask); err == nil {
			err = calls.CheckRefusal(ask.Model, response)
		}
		if err == nil {
			outcome.Answer, err = json.Marshal(strings.TrimSpace(texts.DropThoughts(response.Text)))
		}
	}

	var mismatch *calls.MismatchError
	if errors.Is(err, llm.ErrContextLength) || errors.As(err, &mismatch) {
		r.caller.Tell(ledger.Event{
			Kind: ledger.EventWarning, Node: "0", Purpose: "bypass", Error: err.Error(),
		})
		return Outcome{}, false, nil
	}

	return outcome, true, err
}

// inlineInputs returns all inputs as text, or false if one is a directory.
func (r *tree) inlineInputs(ctx context.Context, chars int64) (string, bool, error) {
	var b strings.Builder
	for i, input := range r.cfg.Inputs {
		value := input.Value
		if input.Dir != nil {
			return "", false, nil
		}
		if input.Text != nil {
			n, err := lengthOf(ctx, input.Text)
			if err != nil {
				return "", false, err
			}
			value = tiers.Value(fmt.Sprintf(`{"__rlm_text__":[%d,0,%d]}`, i, n))
		}

		text, err := inputs.List(r.cfg.Inputs).Text(ctx, value, chars+1)
		if err != nil {
			return "", false, err
		}
		fmt.Fprintf(&b, "Context %s:\n%s\n\n", input.Name, text)
	}

	return strings.TrimSpace(b.String()), true, nil
}

// estimateReading returns the cost of showing a number of characters to the sub-model.
func (r *tree) estimateReading(chars int64) (ledger.Spending, error) {
	part := 2 * r.caller.Window(r.cfg.SubModel) // half a window, four characters a token
	n := (chars + part - 1) / part
	if n == 0 {
		return ledger.Spending{}, nil
	}
	one, err := r.caller.Estimate(calls.Ask{
		Model: r.cfg.SubModel,
		Messages: []llm.Message{
			{Role: llm.RoleUser, Content: strings.Repeat("    ", int(min(chars, part)/4))},
		},
	})

	return ledger.Spending{
		Calls: n, InputTokens: one.InputTokens * n, OutputTokens: one.OutputTokens * n,
		USD: one.USD * float64(n),
	}, err
}

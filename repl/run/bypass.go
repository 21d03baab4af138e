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
	"github.com/rlmhq/rlm/repl/internal/inputs"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/schema"
	"github.com/rlmhq/rlm/tiers"
)

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

// fits reports whether a number of characters fits into its share of the root's window. It
// is false if the window is unknown.
func (r *tree) fits(chars int64) bool {
	window, known := r.caller.Window(r.cfg.modelAt(0))
	return known && chars/4 <= int64(r.cfg.BypassShare*float64(window))
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

// estimateReading returns the cost of showing a number of characters to the sub-model, nil
// if its window is unknown.
func (r *tree) estimateReading(chars int64) (*ledger.Spending, error) {
	window, known := r.caller.Window(r.cfg.SubModel)
	if !known {
		return nil, nil //nolint:nilnil // documented
	}
	part := 2 * window // half a window, four characters a token
	n := (chars + part - 1) / part
	if n == 0 {
		return &ledger.Spending{}, nil
	}
	one, err := r.caller.Estimate(calls.Ask{
		Model: r.cfg.SubModel,
		Messages: []llm.Message{
			{Role: llm.RoleUser, Content: strings.Repeat("    ", int(min(chars, part)/4))},
		},
	})

	return &ledger.Spending{
		Calls: n, InputTokens: one.InputTokens * n, OutputTokens: one.OutputTokens * n,
		USD: one.USD * float64(n), Unpriced: one.Unpriced * n,
	}, err
}

package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/internal/inputs"
	"github.com/rlmhq/rlm/repl/internal/record"
	"github.com/rlmhq/rlm/repl/internal/tokens"
	"github.com/rlmhq/rlm/repl/internal/turns"
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

// lengthOf returns the length of text, in characters.
func lengthOf(ctx context.Context, text tiers.Text) (int64, error) {
	t, err := bigtext.Of(ctx, text)
	if err != nil {
		return 0, err
	}
	return t.Len(ctx)
}

// bypassShare is the fraction of the model's window that a direct question may fill.
const bypassShare = 0.5

// needsCode is a model's reply that requests the loop instead of giving a direct answer.
const needsCode = "NEEDS_CODE"

// asksForCode matches a reply that consists of needsCode alone, in any of the forms that models
// write.
var asksForCode = lazyregexp.New(`(?i)^\W*needs?[\W_]*code\W*$`)

// plansCode matches a reply that announces code instead of giving an answer.
var plansCode = lazyregexp.New(
	`(?i)^\W*(?:to [^.:]{1,80}, )?(?:i(?:'ll| will| would| need| should| can)|let(?:'s| me| us))\b` +
		`[^\n]{0,200}\b(?:code|python|script|repl)\b[^\n]{0,100}$|^\W*(?:let me|let's|i'll) [^\n]{0,80}[:…]$|` +
		`^\W*\w+ing(?:\.\.\.|…)\s*$`)

// mayBypass reports whether a run of c can be answered without a loop. Only a snippet can call
// tools and agents, and a run without input is a task for code.
func (c *Config) mayBypass() bool {
	hasInputs, hasFields := len(c.Inputs) > 0, len(c.Fields) > 0
	return c.Notes == "" && c.Tools == nil && len(c.ToolFiles) == 0 && len(c.Agents) == 0 && hasInputs != hasFields
}

// writeDirect returns the prompt that asks for a direct answer, or "" if the inputs are too
// large or are not all text.
func (r *tree) writeDirect(ctx context.Context, contract *schema.Contract) (string, error) {
	limit := int64(r.cfg.Bypass)
	if window, known := r.caller.Window(r.cfg.modelAt(0)); known {
		limit = min(limit, int64(bypassShare*float64(window)))
	}

	chars, err := r.measureInputs(ctx)
	if err != nil || chars > 4*limit { // a token rarely has more than four characters
		return "", err
	}
	text, ok, err := r.inlineInputs(ctx, chars)
	if err != nil || !ok {
		return "", err
	}

	if tokens.Estimate(r.cfg.Question)+tokens.Estimate(text) > limit {
		return "", nil
	}

	described := ""
	if contract != nil {
		described = contract.Describe()
	}

	return prompt("direct", map[string]any{
		"Question": r.cfg.Question, "Context": text, "Contract": described, "NeedsCode": needsCode,
	})
}

// bypass asks the model once, without a loop, if the inputs are small. Done is false if the loop
// must answer.
func (r *tree) bypass(
	ctx context.Context, contract *schema.Contract, trace *record.Trace,
) (outcome Outcome, done bool, err error) {
	direct, err := r.writeDirect(ctx, contract)
	if err != nil || direct == "" {
		return outcome, false, err
	}

	ask := calls.Ask{
		Node: "0", Purpose: "bypass", Model: r.cfg.modelAt(0),
		Messages: []llm.Message{{Role: llm.RoleUser, Content: direct}},
	}
	if r.cfg.System != "" {
		ask.Messages = slices.Insert(ask.Messages, 0,
			llm.Message{Role: llm.RoleSystem, Content: r.cfg.System})
	}

	response, err := r.caller.Complete(ctx, ask)
	if errors.Is(err, llm.ErrContextLength) {
		r.enterLoop(err.Error())
		return outcome, false, nil
	}
	if err == nil {
		err = calls.CheckRefusal(ask.Model, response)
	}
	if err != nil {
		return outcome, true, err
	}

	answer, reason := readDirect(response, contract)
	if answer == nil {
		r.enterLoop(reason)
		return outcome, false, nil
	}

	r.caller.Tell(ledger.Event{
		Kind: ledger.EventAnswer, Node: "0", Purpose: "bypass", Text: texts.Show(answer),
	})
	trace.Begin(r.rootLoop(contract).metadata())

	return Outcome{Status: ledger.StatusAnswered, Answer: answer, Bypassed: true}, true, nil
}

// enterLoop emits the reason why the loop takes over after a direct question.
func (r *tree) enterLoop(reason string) {
	r.caller.Tell(ledger.Event{
		Kind: ledger.EventWarning, Node: "0", Purpose: "bypass", Error: "no direct answer: " + reason,
	})
}

// readDirect returns the answer in a direct reply, or the reason why it has none.
func readDirect(
	response llm.Response, contract *schema.Contract,
) (answer json.RawMessage, reason string) {
	text := strings.TrimSpace(response.Text)
	if lack := calls.DescribeCut(response); lack != "" {
		return nil, lack
	}
	if strings.Contains(text, needsCode) || asksForCode.MatchString(text) {
		return nil, "the model asks for code"
	}
	if plansCode.MatchString(text) {
		return nil, "the reply announces code"
	}
	if reason := turns.RefuseWords(text); reason != "" {
		return nil, reason
	}

	var violations []schema.Violation
	var err error
	if contract == nil {
		answer, err = texts.Quote(text)
	} else {
		answer, violations, err = contract.CheckReply(text)
	}
	switch {
	case err != nil:
		return nil, err.Error()
	case len(violations) > 0:
		return nil, "the reply breaks the contract: " + violations[0].String()
	}

	return answer, ""
}

// inlineInputs returns all inputs as text, or false if one is a directory or not text.
func (r *tree) inlineInputs(ctx context.Context, chars int64) (string, bool, error) {
	var b strings.Builder
	for i, input := range r.cfg.Inputs {
		value := input.Value
		if input.Dir != nil {
			return "", false, nil
		}
		if input.Text != nil {
			text, err := bigtext.Of(ctx, input.Text)
			if err != nil || text.IsBinary() {
				return "", false, err
			}
			n, err := text.Len(ctx)
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

// estimateReading returns the cost of showing a number of characters to the sub-model, or nil if
// its window is unknown.
func (r *tree) estimateReading(chars int64) (*ledger.Spending, error) {
	window, known := r.caller.Window(r.cfg.SubModel)
	if !known {
		return nil, nil //nolint:nilnil // documented
	}
	part := 2 * window // half the window, at four characters per token
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

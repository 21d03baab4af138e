package run

import (
	"encoding/json"

	"github.com/rlmhq/rlm/repl/internal/prompts"
	"github.com/rlmhq/rlm/repl/internal/turns"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/schema"
	"github.com/rlmhq/rlm/tiers"
)

// takeJSON accepts the object or list in a reply without code as the answer, if the contract
// requires one.
func (l *loop) takeJSON(done *turns.Turn, response llm.Response) {
	if l.contract == nil || response.Finish != llm.FinishStop || len(done.Notes) > 0 ||
		turns.IsPutOff(response.Text) || turns.RefuseWords(response.Text) != "" {
		return
	}
	var wanted struct {
		Type any `json:"type"`
	}
	isShape := json.Unmarshal(l.contract.JSONSchema(), &wanted) == nil &&
		(wanted.Type == "object" || wanted.Type == "array")
	if !isShape {
		return // a number or a word in prose could be anything
	}

	value, violations, err := l.contract.CheckReply(response.Text)
	if err == nil && len(violations) == 0 {
		done.Final, done.IsSilent = &tiers.Final{Value: value}, false
	}
}

// judge checks an answer against the contract. If the answer violates the contract, the model
// receives the violations, and its session does not change.
func (l *loop) judge(done *turns.Turn) json.RawMessage {
	if done.Final == nil {
		return nil
	}
	if l.contract == nil && string(done.Final.Value) == "null" {
		done.Refuse("the answer was None", noValue)
		return nil
	}
	value, violations := l.check(done.Final.Value)
	if violations == nil {
		return value
	}

	l.tell(ledger.Event{Kind: ledger.EventRetry, Purpose: "answer", Error: violations[0].String()})
	done.Refuse("the answer does not meet the schema: "+violations[0].String(),
		"FINAL was not accepted. "+prompts.Correction(l.contract, violations)+
			" Your variables are as you left them; call FINAL again.")

	return nil
}

// noValue is for a model whose code passed None, often because it printed the result instead.
const noValue = "FINAL got None, so it was not accepted. Pass the value itself; " +
	`if there is none, say so in words: FINAL("none").`

// check returns the answer in the form of the contract. A string that contains the value is
// accepted as the value. An answer that takes too much work to check is also a violation, which the
// model can fix.
func (l *loop) check(value json.RawMessage) (json.RawMessage, []schema.Violation) {
	if l.contract == nil {
		return value, nil
	}
	checked, violations, err := l.contract.Check(value)
	if err != nil {
		violations = []schema.Violation{{Path: "$", Message: err.Error()}}
	}
	if len(violations) == 0 {
		return checked, nil
	}

	var text string
	if json.Unmarshal(value, &text) == nil {
		if found, wrong, err := l.contract.CheckReply(text); err == nil && len(wrong) == 0 {
			return found, nil
		}
	}

	return nil, violations
}

package run

import (
	"context"
	"errors"
	"fmt"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/repl/internal/conversation"
	"github.com/rlmhq/rlm/repl/internal/tokens"
	"github.com/rlmhq/rlm/tiers"
)

// questionShare is the fraction of the model's window that a question may fill. A longer
// question becomes an input.
const questionShare = 0.7

// moveQuestion turns a question that fills too much of the window into the last input.
func (l *loop) moveQuestion() {
	window, known := l.caller.Window(l.model)
	if known && float64(tokens.Estimate(l.question)) > questionShare*float64(window) {
		l.makeInput()
	}
}

// makeInput turns the question into the last input, once.
func (l *loop) makeInput() {
	if l.moved != nil {
		return
	}
	l.moved = bigtext.FromBytes("question", []byte(l.question))
	l.inputs = append(l.inputs[:len(l.inputs):len(l.inputs)], tiers.Input{Name: "question", Text: l.moved})
}

// movedTo returns the variable that holds the question, or "" if the question is in the
// messages.
func (l *loop) movedTo() string {
	switch {
	case l.moved == nil:
		return ""
	case len(l.inputs) == 1:
		return "context"
	}
	return fmt.Sprintf("context_%d", len(l.inputs)-1)
}

// restart starts the loop again with its question as an input, after a server rejected the first
// messages as too long. If the question is not the cause, restart returns the refusal.
func (l *loop) restart(ctx context.Context, refusal error) error {
	if l.moved != nil || 2*tokens.Estimate(l.question) < conversation.CountTokens(l.messages) {
		return refusal
	}
	if err := l.close(); err != nil {
		return err
	}
	l.makeInput()
	if err := l.begin(ctx); err != nil {
		return errors.Join(refusal, err)
	}
	return l.setFields(ctx)
}

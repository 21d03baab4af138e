package rlm

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/plan/runner"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// Limits on what a conversation shows of earlier questions.
const (
	maxHistory    = 4 << 20 // bytes of all histories in the sandbox; the oldest are left out
	maxMessage    = 50_000  // characters of a message in them
	shownEarlier  = 5       // earlier questions in a prompt
	shownQuestion = 500     // characters of such a question
	shownAnswer   = 1_000   // characters of its answer
)

// keptRunner runs a loop's snippets in the session itself.
type keptRunner struct {
	*runner.Runner

	session *Session
	ended   func()
}

// Run runs a snippet of the loop and updates the session's list of variables.
func (r keptRunner) Run(ctx context.Context, job tiers.Job) (router.Result, error) {
	return r.session.run(ctx, job)
}

// Close leaves the session open.
func (r keptRunner) Close() error {
	r.ended()
	return nil
}

// clearAnswer clears an earlier question's answer that code marked as ready. After Restore, this
// snippet also reports the session's variables.
func (s *Session) clearAnswer(ctx context.Context) error {
	if !s.cfg.Keep || len(s.histories) == 0 {
		return nil
	}
	result, err := s.run(ctx, tiers.Job{Language: tiers.Python, Source: untakenAnswer})
	if err == nil {
		s.lost = result.Lost // no caller sees this result
	}
	return err
}

const untakenAnswer = `if type(answer) is dict and answer.get("ready") is True:
    answer.update(content="", ready=False)`

// addHistory keeps the messages of a question for later questions.
func (s *Session) addHistory(ctx context.Context, messages []llm.Message) error {
	if len(messages) == 0 {
		return nil
	}
	all := append(slices.Clip(s.histories), messages)
	if err := s.runner.Extend(ctx, nil, listHistories(all)); err != nil {
		return fmt.Errorf("cannot keep the history: %w", err)
	}
	s.histories = all
	return nil
}

// leftOut replaces a history that is too old.
const leftOut = `[{"role": "system", "content": "(left out: only the last histories are kept)"}]`

// listHistories returns the variables history_0, history_1 and so on, and history.
func listHistories(histories [][]llm.Message) []tiers.Function {
	if len(histories) == 0 {
		return nil
	}
	variables := make([]tiers.Function, len(histories)+1)
	size := 0
	for i := len(histories) - 1; i >= 0; i-- {
		value := tiers.Value(leftOut)
		if size <= maxHistory {
			value = encodeHistory(histories[i])
			if size += len(value); size > maxHistory {
				value = tiers.Value(leftOut)
			}
		}
		variables[i] = tiers.Function{Name: fmt.Sprintf("history_%d", i), Value: value}
	}

	variables[len(histories)] = tiers.Function{Name: "history", Value: variables[0].Value}
	return variables
}

// encodeHistory shortens the messages and returns them as JSON.
func encodeHistory(messages []llm.Message) tiers.Value {
	short := make([]llm.Message, len(messages))
	for i, m := range messages {
		short[i] = llm.Message{Role: m.Role, Content: texts.Truncate(m.Content, maxMessage)}
	}
	data, err := json.Marshal(short)
	if err != nil {
		panic(err) // strings only
	}
	return data
}

// describe describes the session's variables and earlier questions for a prompt.
func (s *Session) describe() string {
	known := s.listVariables()
	if len(s.histories) == 0 {
		return known
	}

	var b strings.Builder
	if known != "" {
		b.WriteString(known + "\n\n")
	}
	last := len(s.histories) - 1
	fmt.Fprintf(&b, "The question goes on from earlier ones. The variables `history_0` to "+
		"`history_%d` have their messages, as lists of dicts with role and content. "+
		"The latest, quoted:", last)
	for i := max(0, last-shownEarlier+1); i <= last; i++ {
		messages := s.histories[i]
		if len(messages) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n- `history_%d`: %q was answered with %q", i,
			texts.Truncate(messages[0].Content, shownQuestion),
			texts.Truncate(messages[len(messages)-1].Content, shownAnswer))
	}
	return b.String()
}

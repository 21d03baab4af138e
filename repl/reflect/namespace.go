package reflect

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"slices"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/internal/agenttrace"
	"github.com/rlmhq/rlm/repl/internal/answers"
	"github.com/rlmhq/rlm/repl/internal/loopsession"
	"github.com/rlmhq/rlm/repl/internal/record"
	"github.com/rlmhq/rlm/repl/internal/turns"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/tiers"
)

//go:embed namespace.py
var namespace string

// stockNames restores the stock builtins, and binds the names datetime and time to the classes
// that prompts of reflections rely on; elsewhere they are modules.
const stockNames = "import builtins as __builtins__\nfrom datetime import datetime, time"

// foreign are the protocol functions that a reflection withholds: they would start loops, or use
// prompts other than the helper's.
var foreign = []string{
	"rlm_query", "rlm_query_batched", "run_parallel_sub_calls", "recursive_llm",
	"recursive_reasoner_tool", "sub_agent_call", "predict",
}

// tools returns the functions of the snippets.
func (l *loop) tools() (*repl.Tools, error) {
	tools := answers.Functions(l.helper)
	for i, tool := range tools {
		switch {
		case slices.Contains(foreign, tool.Name):
			tools[i] = answers.Withhold(
				tool.Name, "a reflection has no sub-loops, agents or signatures; use ask_llm",
			)
		case l.cfg.NoLLMQuery && tool.Name != "ask_llm":
			tools[i] = answers.Withhold(tool.Name, "this function is switched off; use ask_llm")
		}
	}

	return l.cfg.Tools.With(tools...)
}

// describeTools lists the embedder's functions for the prompt, or returns "" without any.
func describeTools(tools *repl.Tools) string {
	if tools == nil || len(tools.Functions()) == 0 {
		return ""
	}
	functions, notes := tools.Prompt()
	text := "\n\nFurther functions:\n" + functions
	if notes != "" {
		text += "\n\n" + notes
	}
	return text
}

// open starts a session with the variables and functions of the snippets.
func (l *loop) open(ctx context.Context) (*loopsession.Session, error) {
	tools, err := l.tools()
	if err != nil {
		return nil, err
	}
	session, err := loopsession.Open(ctx, loopsession.Config{
		Open: l.cfg.Open, Tools: tools, Limits: l.cfg.Limits, Deterministic: l.cfg.Deterministic,
		Ledger: l.caller.Ledger, Tell: l.tell,
	})
	if err != nil {
		return nil, err
	}
	if err := furnishSession(ctx, session, &l.subject); err != nil {
		return nil, errors.Join(err, session.Close())
	}

	return session, nil
}

// furnishSession defines the variables and builtins of a session. It defines the classes of the
// trace under the stock builtins, even in a session that was furnished before.
func furnishSession(ctx context.Context, session *loopsession.Session, s *Subject) error {
	if err := runPreparation(ctx, session, stockNames); err != nil {
		return err
	}
	if err := session.Assign(ctx, "traces", s.traces()); err != nil {
		return err
	}
	if err := session.Assign(ctx, "skillbook", s.Skillbook); err != nil {
		return err
	}
	if err := agenttrace.Bind(ctx, session, s.trace); err != nil {
		return err
	}

	return restrictBuiltins(ctx, session)
}

// restrictBuiltins sets the builtins for later snippets. They are not variables, so a session
// loses them when it moves to another sandbox.
func restrictBuiltins(ctx context.Context, session *loopsession.Session) error {
	return runPreparation(ctx, session, namespace)
}

// runPreparation runs a snippet that sets up the session.
func runPreparation(ctx context.Context, session *loopsession.Session, source string) error {
	ran, err := session.Run(ctx, loopsession.Block{Language: tiers.Python, Source: source})
	if err == nil && record.HasFailed(&ran) {
		err = fmt.Errorf("the snippet ended as %s %s", ran.Status, record.FormatFailure(&ran))
	}
	if err != nil {
		return fmt.Errorf("cannot prepare the session: %w", err)
	}
	return nil
}

// refurnish restores a session that lost or left its sandbox, so that the model can continue.
func (l *loop) refurnish(ctx context.Context, done *turns.Turn) error {
	lost, moved := done.Broke, false
	for i := range done.Ran {
		lost = lost || done.Ran[i].Lost != nil
		moved = moved || done.Ran[i].Moved != nil
	}
	var err error
	switch {
	case lost:
		err = furnishSession(ctx, l.session, &l.subject)
	case moved:
		err = restrictBuiltins(ctx, l.session)
	}

	if err == nil || ctx.Err() != nil {
		return err
	}
	l.tell(ledger.Event{Kind: ledger.EventWarning, Error: err.Error()})
	done.Notes = append(
		done.Notes, "Your session could not be made whole: "+texts.Truncate(err.Error(), 300),
	)

	return nil
}

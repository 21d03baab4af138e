package agenttrace

import (
	"context"
	_ "embed" // the Python of the classes
	"errors"
	"fmt"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/internal/loopsession"
	"github.com/rlmhq/rlm/repl/internal/record"
	"github.com/rlmhq/rlm/tiers"
)

//go:embed guest.py
var guestClasses string

// Bind defines the classes TraceStep and TraceContext and the variable trace in a session: t, or
// None if t is nil. The trace is passed as JSON, and the classes run inside the session, so a
// snippet that changes them harms only itself.
func Bind(ctx context.Context, s *loopsession.Session, t *Trace) error {
	if err := s.Assign(ctx, "trace", t); err != nil {
		return err
	}
	ran, err := s.Run(ctx, loopsession.Block{
		Language: tiers.Python, Source: guestClasses + "\ntrace = TraceContext._kept(trace)\n",
	})

	switch {
	case err != nil:
		return fmt.Errorf("cannot pass the trace to the session: %w", err)
	case ran.Exception != nil:
		return fmt.Errorf(
			"cannot pass the trace to the session: %s: %s", ran.Exception.Type,
			texts.Truncate(ran.Exception.Message, 500),
		)
	case record.HasFailed(&ran):
		return errors.New(
			"cannot pass the trace to the session: the snippet ended as " + string(ran.Status),
		)
	}

	return nil
}

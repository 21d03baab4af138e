package services

import (
	"context"
	"errors"
	"fmt"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/mcp"
	"github.com/rlmhq/rlm/repl"
)

// askFirst asks the user of the MCP client that sent the call. In a run, the call parks instead.
func askFirst(ctx context.Context, function, arguments, rule string) error {
	err := mcp.Ask(ctx, fmt.Sprintf("A snippet calls %s %s. The rule %q asks first.",
		cli.Escape(function), cli.Escape(arguments), rule))
	if errors.Is(err, repl.ErrLater) {
		return fmt.Errorf("the rule %q asks first: %w", rule, err)
	}
	return err
}

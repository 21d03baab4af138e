package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/coder/acp-go-sdk"

	"github.com/rlmhq/rlm/internal/text/texts"
)

// maxAsked bounds the text of a question for a person, in bytes.
const maxAsked = 4_000

type sessionKey struct{}

var errDenied = errors.New("the user of the client has not allowed it")

// Ask asks the client's user whether a tool call is allowed. The context is that of the call. It
// returns nil if the call is allowed.
func Ask(ctx context.Context, text string) error {
	s, ok := ctx.Value(sessionKey{}).(*session)
	if !ok {
		return errors.New("no client can be asked")
	}

	title := texts.Truncate(text, maxAsked)
	got, err := s.server.conn.RequestPermission(ctx, acp.RequestPermissionRequest{
		SessionId: s.id,
		ToolCall: acp.ToolCallUpdate{
			ToolCallId: acp.ToolCallId(fmt.Sprintf("permission-%d", s.asked.Add(1))), Title: &title,
		},
		Options: []acp.PermissionOption{
			{OptionId: "allow", Name: "Make the call", Kind: acp.PermissionOptionKindAllowOnce},
			{OptionId: "reject", Name: "Refuse it", Kind: acp.PermissionOptionKindRejectOnce},
		},
	})
	switch {
	case err != nil:
		return fmt.Errorf("the client cannot be asked: %w", err)
	case got.Outcome.Selected != nil && got.Outcome.Selected.OptionId == "allow":
		return nil
	}
	return errDenied
}

package agents

import (
	"context"

	"github.com/coder/acp-go-sdk"
)

// refusals denies all requests of a program.
type refusals struct{}

var _ acp.Client = refusals{}

// RequestPermission implements [acp.Client]: it chooses the option that refuses, or none.
func (refusals) RequestPermission(
	_ context.Context, r acp.RequestPermissionRequest,
) (acp.RequestPermissionResponse, error) {
	for _, wanted := range []acp.PermissionOptionKind{
		acp.PermissionOptionKindRejectOnce, acp.PermissionOptionKindRejectAlways,
	} {
		for _, option := range r.Options {
			if option.Kind == wanted {
				return acp.RequestPermissionResponse{
					Outcome: acp.NewRequestPermissionOutcomeSelected(option.OptionId),
				}, nil
			}
		}
	}

	return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeCancelled()}, nil
}

// SessionUpdate implements [acp.Client]. Updates do not arrive here: see process.Read.
func (refusals) SessionUpdate(context.Context, acp.SessionNotification) error { return nil }

// ReadTextFile implements [acp.Client].
func (refusals) ReadTextFile(context.Context, acp.ReadTextFileRequest) (r acp.ReadTextFileResponse, err error) {
	return r, acp.NewMethodNotFound(acp.ClientMethodFsReadTextFile)
}

// WriteTextFile implements [acp.Client].
func (refusals) WriteTextFile(context.Context, acp.WriteTextFileRequest) (r acp.WriteTextFileResponse, err error) {
	return r, acp.NewMethodNotFound(acp.ClientMethodFsWriteTextFile)
}

// CreateTerminal implements [acp.Client].
func (refusals) CreateTerminal(
	context.Context, acp.CreateTerminalRequest,
) (r acp.CreateTerminalResponse, err error) {
	return r, acp.NewMethodNotFound(acp.ClientMethodTerminalCreate)
}

// KillTerminal implements [acp.Client].
func (refusals) KillTerminal(context.Context, acp.KillTerminalRequest) (r acp.KillTerminalResponse, err error) {
	return r, acp.NewMethodNotFound(acp.ClientMethodTerminalKill)
}

// TerminalOutput implements [acp.Client].
func (refusals) TerminalOutput(
	context.Context, acp.TerminalOutputRequest,
) (r acp.TerminalOutputResponse, err error) {
	return r, acp.NewMethodNotFound(acp.ClientMethodTerminalOutput)
}

// ReleaseTerminal implements [acp.Client].
func (refusals) ReleaseTerminal(
	context.Context, acp.ReleaseTerminalRequest,
) (r acp.ReleaseTerminalResponse, err error) {
	return r, acp.NewMethodNotFound(acp.ClientMethodTerminalRelease)
}

// WaitForTerminalExit implements [acp.Client].
func (refusals) WaitForTerminalExit(
	context.Context, acp.WaitForTerminalExitRequest,
) (r acp.WaitForTerminalExitResponse, err error) {
	return r, acp.NewMethodNotFound(acp.ClientMethodTerminalWaitForExit)
}

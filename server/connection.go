package server

import (
	"context"
	"io"
	"log/slog"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/server/internal/connect"
	"github.com/rlmhq/rlm/tiers"
)

// Connection configures the rights of a program that uses the session protocol over a stream, such
// as stdin and stdout: see docs/reference/session-protocol.md.
type Connection struct {
	// Version is the version of the serving program.
	Version string
	// Limits apply to a session that sets none. MayRaise lets a session set higher ones.
	Limits   tiers.Limits
	MayRaise bool
	// Policy is the widest policy that a session may have.
	Policy rlm.Policy
	// Deterministic makes all sessions deterministic.
	Deterministic bool
	// Files lets the client name files and folders of this host: contexts, snapshots, and
	// destinations for files of snippets. Inputs configure how contexts are read from files.
	Files  bool
	Inputs inputs.Options
	Log    *slog.Logger
}

// Serve answers a client until the stream ends, and then closes its sessions. To end it earlier,
// close the stream.
func (c Connection) Serve(
	ctx context.Context, engine *rlm.Engine, in io.Reader, out io.Writer,
) error {
	return connect.Serve(ctx, engine, in, out, connect.Options{
		Version: c.Version, Limits: c.Limits, MayRaise: c.MayRaise, Policy: c.Policy,
		Deterministic: c.Deterministic, Files: c.Files, Inputs: c.Inputs, Log: c.Log,
	})
}

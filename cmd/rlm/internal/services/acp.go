package services

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/agent"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/repl/ledger"
)

const acpLong = `Answer an editor or an evaluator as its agent, by the Agent Client Protocol.

Editors such as Zed start the program and speak with it over stdin and stdout. Each of
their threads is a session, which keeps its variables from question to question. The
files that a prompt brings are contexts; --project also gives the code the whole folder
of the editor. The agent changes no files: code runs in sandboxes.

Exit codes: 0 the client has ended the connection, also during a prompt; 2 usage or bad input; 5 the
connection or the tiers broke; 130 interrupted.`

// NewACP makes the command rlm acp.
func NewACP(e *cli.Env) *cobra.Command {
	f := hostFlags{}
	f.Runs = true
	var project bool
	cmd := &cobra.Command{
		Use: "acp", Short: "Answer an editor or an evaluator as its agent", Long: acpLong,
		Example: `  rlm acp --model openai/gpt-5
  rlm acp --model openai/gpt-5 --project --max-usd 1`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.serveACP(cmd.Context(), e, project) },
	}
	flags := cmd.Flags()
	f.add(flags, e)
	flags.BoolVar(&project, "project", false, "give each session the folder of the client as a context")
	flags.StringArrayVar(&f.roots, "root", nil,
		"`folder` whose files prompts can link, besides the folder of the client; repeatable")
	return cmd
}

// serveACP serves until the client ends the connection, or the context ends.
func (f *hostFlags) serveACP(ctx context.Context, e *cli.Env, project bool) (err error) {
	if !wiring.HasModel(e) {
		return cli.Usage(wiring.ErrNoModel)
	}
	roots, err := resolveRoots(f.roots)
	if err != nil {
		return cli.Usage(err)
	}
	f.Tools.Ask = func(ctx context.Context, function, arguments, rule string) error {
		return agent.Ask(ctx, fmt.Sprintf("A snippet calls %s %s. The rule %q asks first.",
			cli.Escape(function), cli.Escape(arguments), rule))
	}

	b, err := f.open(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()

	err = agent.Serve(ctx, agent.Config{
		Version: e.Version, Note: f.Note(e),
		Open: func(ctx context.Context, folder string, progress func(ledger.Event)) (*rlm.Session, error) {
			var more []rlm.Context
			if project {
				more = append(more, f.readFile(e, folder))
			}
			return b.openSession(ctx, more, func(own *rlm.SessionConfig) {
				own.Keep, own.Ask.Progress, own.Ask.Stream = true, progress, true
			})
		},
		Read: func(folder, path string) (rlm.Context, error) {
			own, err := resolveRoots([]string{folder})
			if err != nil {
				return rlm.Context{}, err
			}
			within, err := findBelow(append(own, roots...), path)
			return f.readFile(e, within), err
		},
	}, io.NopCloser(e.Stdin), e.Stdout)
	if err != nil && ctx.Err() == nil {
		return cli.Broken(fmt.Errorf("the agent cannot end its sessions: %w", err))
	}
	return nil
}

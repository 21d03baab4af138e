package services

import (
	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/server"
)

const connectLong = `Hold sessions for a program in any language, over stdin and stdout.

The program starts rlm as a child process and speaks the session protocol: JSON-RPC
2.0, one message a line. The sessions end when the stdin of rlm ends. The program may
open the same files as you. The settings are the defaults of its sessions; no session
gets a tier or a host that the settings do not allow.`

// NewConnect makes the command rlm connect.
func NewConnect(e *cli.Env) *cobra.Command {
	quiet := false
	cmd := &cobra.Command{
		Use:   "connect",
		Short: "Hold sessions for a program, over stdin and stdout",
		Long:  connectLong,
		Example: `  echo '{"jsonrpc":"2.0","id":1,"method":"initialize","params":` +
			`{"protocol":1,"client":{"name":"sh"}}}' | rlm connect`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, note := cmd.Context(), e.NoteUnless(quiet)
			policy, err := wiring.Policy(e.Settings)
			if err != nil {
				return cli.Usage(err)
			}
			engine, err := wiring.OpenEngine(ctx, e, note)
			if err != nil {
				return err
			}
			defer engine.Close()

			reading := (&wiring.ContextFlags{}).Files.Options(e.Settings.CacheDir, note)
			reading.FilesOnly = true
			err = server.Connection{
				Version: e.Version, Limits: wiring.Limits(e.Settings, wiring.DefaultOutput), MayRaise: true,
				Policy: policy, Deterministic: e.Settings.Deterministic, Files: true,
				Inputs: withServers(reading, e.Settings.ContextServer), Log: e.Log,
			}.Serve(ctx, engine, e.Stdin, e.Stdout)
			if err != nil {
				return cli.Broken(err)
			}
			return nil
		},
	}

	flags := cmd.Flags()
	config.AddFlags(flags, config.In(config.Routing, config.Limits))
	flags.BoolVar(&quiet, "quiet", false, "print errors on stderr, but no notes")
	return cmd
}

// withServers returns options with the servers from which contexts may load files.
func withServers(o inputs.Options, servers []string) inputs.Options {
	o.Servers = servers
	return o
}

package services

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/code"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/internal/data/remote"
	"github.com/rlmhq/rlm/mcp"
	mcptools "github.com/rlmhq/rlm/mcp/tools"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/tiers"
)

// mcpFlags are the flags of `rlm mcp` that are not settings.
type mcpFlags struct {
	code.ExecFlags

	roots   []string
	address string
	direct  []string // patterns for names of tools
	handles int
	idle    time.Duration
}

const mcpLong = `Offer sandboxes, loops and tools to an MCP host, such as Claude, Cursor or VS Code.

The host gets the tools rlm_open, rlm_exec, rlm_files and rlm_close; rlm_ask, if there
is a model; and rlm_search_tools, if there are functions. With --mcp, snippets call the
tools of other MCP servers, so the host sees one rlm_exec in place of a hundred tools.

The server speaks over stdin and stdout, or over HTTP on this machine with --http. It
reads only the files below --root and those of --context.

Exit codes: 0 the host has ended the connection; 2 usage or bad input; 5 the
connection or the tiers broke; 130 interrupted.`

// NewMCP makes the command rlm mcp.
func NewMCP(e *cli.Env) *cobra.Command {
	f := mcpFlags{ExecFlags: code.ExecFlags{Runs: true}}
	cmd := &cobra.Command{
		Use: "mcp", Short: "Offer sandboxes, loops and tools to an MCP host", Long: mcpLong,
		Example: `  rlm mcp --root ~/data
  rlm mcp --mcp servers.json --model openai/gpt-5
  rlm mcp --http 127.0.0.1:8080`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.serve(cmd.Context(), e) },
	}
	flags := cmd.Flags()
	f.Contexts.Add(flags, "`file` or directory that every session has; repeatable")
	f.Tools.Add(flags, e)
	f.Files.AddMount(flags)
	flags.StringArrayVar(&f.roots, "root", nil, "`folder` whose files clients can read; repeatable")
	flags.StringVar(&f.address, "http", "",
		"`address` of this machine to serve over streamable HTTP instead, such as 127.0.0.1:8080")
	flags.StringArrayVar(&f.direct, "direct", nil, "`pattern` for MCP tools that the host also sees "+
		"and calls without a snippet, such as github__get_*; repeatable")
	flags.IntVar(&f.handles, "max-handles", 16, "maximum number of open handles")
	flags.DurationVar(&f.idle, "max-idle", time.Hour, "`time` without a call after which a handle ends")
	flags.BoolVar(&f.Quiet, "quiet", false, "print errors on stderr, but no notes")
	config.AddFlags(flags,
		config.In(config.Routing, config.Limits, config.Models, config.Run, config.Graphs))
	return cmd
}

// mcpGrace is the maximum time from a signal to the end of rlm mcp.
const mcpGrace = 10 * time.Second

// serve serves until the host ends the connection, or the context ends.
func (f *mcpFlags) serve(ctx context.Context, e *cli.Env) (err error) {
	if f.Contexts.UseStdin() {
		return cli.Usage(errors.New("stdin cannot be a context: it carries the protocol"))
	}

	e.EndWithin(mcpGrace)
	f.Tools.Ask = askFirst
	cfg, err := f.SessionConfig(e)
	if err != nil {
		return cli.Usage(err)
	}

	engine, err := wiring.OpenEngine(ctx, e, f.Note(e))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	tools, err := f.Tools.Open(ctx, e, f.Note(e))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tools.Known.Keep(context.WithoutCancel(ctx)), tools.Close()) }()

	closeModels, err := f.askModels(e, tools, &cfg)
	if err != nil {
		return err
	}
	defer closeModels()
	server, err := f.newServer(ctx, e, engine, tools, cfg)
	if err != nil {
		return cli.Usage(err)
	}
	defer func() { err = errors.Join(err, server.Close()) }()

	if f.address != "" {
		return f.serveHTTP(ctx, e, server)
	}

	err = server.ServeStdio(ctx, io.NopCloser(e.Stdin), nopWriteCloser{e.Stdout})
	if err != nil && ctx.Err() == nil {
		return cli.Broken(fmt.Errorf("the connection to the host broke: %w", err))
	}
	return nil
}

type nopWriteCloser struct{ io.Writer }

// Close implements [io.Closer].
func (nopWriteCloser) Close() error { return nil }

// askModels completes the configuration of sessions with the tools and, if the settings name a
// model, with that model.
func (f *mcpFlags) askModels(e *cli.Env, tools *wiring.Tools, cfg *rlm.SessionConfig) (closeModels func(), err error) {
	task := rlm.Task{}
	closeModels = func() {}
	if wiring.HasModel(e) {
		models, err := wiring.OpenModels(e, false)
		if err != nil {
			return nil, cli.Usage(err)
		}
		closeModels = func() { _ = models.Close() }
		err = wiring.Configure(e, &task, models)
		if err == nil {
			err = wiring.RequireModel(&task)
		}
		if err != nil {
			closeModels()
			return nil, cli.Usage(err)
		}
	}
	if err := tools.AddTo(&task); err != nil {
		closeModels()
		return nil, err
	}
	task.Config.Trace = "" // a session writes no record
	cfg.Ask, cfg.Out = task.Config, true
	return closeModels, nil
}

// newServer makes the server; its sessions have the tools.
func (f *mcpFlags) newServer(
	ctx context.Context, e *cli.Env, engine *rlm.Engine, tools *wiring.Tools, cfg rlm.SessionConfig,
) (*mcp.Server, error) {
	roots, err := resolveRoots(f.roots)
	if err != nil {
		return nil, err
	}
	functions := ""
	if cfg.Ask.Tools != nil {
		list, notes := cfg.Ask.Tools.Prompt()
		functions = strings.TrimSpace(list + "\n\n" + notes)
	}

	options := mcp.Config{
		Version: e.Version,
		Open: func(
			ctx context.Context, more []rlm.Context, progress func(ledger.Event),
		) (*rlm.Session, error) {
			own := cfg
			own.Contexts = append(own.Contexts[:len(own.Contexts):len(own.Contexts)], more...)
			own.Ask.Progress = progress
			return wiring.OpenLoaded(ctx, engine, tools, own)
		},
		Read: func(_ context.Context, path string) (mcp.Given, error) {
			reading := f.Contexts.Files.Options(e.Settings.CacheDir, f.Note(e))
			reading.Servers, reading.FilesOnly = e.Settings.ContextServer, true
			if remote.IsAddress(path) {
				if len(reading.Servers) == 0 {
					return mcp.Given{}, errors.New(
						"no server may be read: start rlm mcp with --context-server HOST")
				}
				return mcp.Given{Name: path, Context: inputs.Files(reading, path)}, nil
			}
			within, err := findBelow(roots, path)
			return mcp.Given{Name: path, Context: inputs.Files(reading, within)}, err
		},
		PathHelp: "Paths cannot be read here: the user has named no root.",
		Detect:   engine.Detect, Functions: functions, Asks: cfg.Ask.Models != nil,
		Handles: f.handles, Idle: f.idle, ToolCalls: e.Settings.MaxToolCalls, Log: e.Log, Servers: tools.Servers,
	}
	if len(roots) > 0 {
		options.PathHelp = "Paths must be below " + strings.Join(roots, ", ") + "."
	}

	if tools.Servers == nil && len(f.direct) > 0 {
		return nil, errors.New("--direct names tools of MCP servers: give --mcp, too")
	}
	if tools.Servers != nil {
		if options.Gateway, err = f.newGateway(ctx, e, tools); err != nil {
			return nil, err
		}
	}

	for i := range f.Contexts.List {
		options.Contexts = append(options.Contexts, f.Contexts.List[i].Name())
	}
	return mcp.New(options)
}

// newGateway returns the hosts' view of the MCP servers.
func (f *mcpFlags) newGateway(ctx context.Context, e *cli.Env, tools *wiring.Tools) (*mcptools.Gateway, error) {
	var allow func(context.Context, tiers.Call) error
	if tools.Approve != nil {
		allow = func(ctx context.Context, call tiers.Call) error {
			return tools.Approve(ctx, call, ledger.Spending{})
		}
	}

	gateway, err := tools.Servers.NewGateway(ctx, f.direct, allow)
	if err != nil {
		return nil, fmt.Errorf("--direct: %w", err)
	}
	for _, why := range gateway.Skipped() {
		f.Note(e)("%s", why)
	}
	return gateway, nil
}

// resolveRoots returns folders as absolute paths without links.
func resolveRoots(given []string) (roots []string, err error) {
	for _, root := range given {
		whole, err := filepath.EvalSymlinks(root)
		if err == nil {
			whole, err = filepath.Abs(whole)
		}
		if err != nil {
			return nil, fmt.Errorf("--root %s: %w", root, err)
		}
		roots = append(roots, whole)
	}
	return roots, nil
}

// findBelow returns a path without links, which must be below one of the roots. A relative path is
// resolved against the first root that contains it.
func findBelow(roots []string, path string) (string, error) {
	for _, root := range roots {
		whole := path
		if !filepath.IsAbs(path) {
			whole = filepath.Join(root, path)
		}
		resolved, err := filepath.EvalSymlinks(whole)
		if err != nil {
			continue
		}
		if rest, err := filepath.Rel(root, resolved); err == nil && filepath.IsLocal(rest) {
			return resolved, nil
		}
	}
	if len(roots) == 0 {
		return "", fmt.Errorf("cannot read %q: start rlm mcp with --root FOLDER, or pass the text itself", path)
	}
	return "", fmt.Errorf("cannot read %q: there is no such file below %s", path, strings.Join(roots, ", "))
}

// serveHTTP serves over HTTP until the context ends.
func (f *mcpFlags) serveHTTP(ctx context.Context, e *cli.Env, server *mcp.Server) error {
	host, _, err := net.SplitHostPort(f.address)
	if ip := net.ParseIP(host); err == nil && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		err = errors.New("its host must be 127.0.0.1, [::1] or localhost, because clients need no key")
	}
	if err != nil {
		return cli.Usage(fmt.Errorf("--http %s: %w", f.address, err))
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.address)
	if err != nil {
		return cli.Usage(fmt.Errorf("--http %s: %w", f.address, err))
	}
	f.Note(e)("serves MCP at http://%s/mcp", listener.Addr())

	mux := http.NewServeMux()
	mux.Handle("/mcp", server.Handler())
	web := &http.Server{
		Handler: mux, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { _ = web.Close() })
	defer stop()
	if err := web.Serve(listener); ctx.Err() == nil {
		return cli.Broken(err)
	}
	return nil
}

package services

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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

// hostFlags are the flags of `rlm mcp` and `rlm acp` that are not settings.
type hostFlags struct {
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
tools of other MCP servers, so the host sees one rlm_exec instead of a hundred tools.

The server speaks over stdin and stdout, or over HTTP on this machine with --http. It
reads only the files below --root and those of --context.

Exit codes: 0 the host has ended the connection; 2 usage or bad input; 5 the
connection or the tiers broke; 130 interrupted.`

// NewMCP makes the command rlm mcp.
func NewMCP(e *cli.Env) *cobra.Command {
	f := hostFlags{ExecFlags: code.ExecFlags{Runs: true}}
	cmd := &cobra.Command{
		Use: "mcp", Short: "Offer sandboxes, loops and tools to an MCP host", Long: mcpLong,
		Example: `  rlm mcp --root ~/data
  rlm mcp --mcp servers.json --model openai/gpt-5
  rlm mcp --http 127.0.0.1:8080`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.serve(cmd.Context(), e) },
	}
	flags := cmd.Flags()
	f.add(flags, e)
	flags.StringArrayVar(&f.roots, "root", nil, "`folder` whose files clients can read; repeatable")
	flags.StringVar(&f.address, "http", "",
		"`address` of this machine to serve over streamable HTTP instead, such as 127.0.0.1:8080")
	flags.StringArrayVar(&f.direct, "direct", nil, "`pattern` for MCP tools that the host also sees "+
		"and calls without a snippet, such as github__get_*; repeatable")
	flags.IntVar(&f.handles, "max-open-sessions", 16, "maximum number of open sessions")
	flags.DurationVar(&f.idle, "max-idle", time.Hour, "`time` without a call after which a session ends")
	return cmd
}

// add adds the flags that both commands have.
func (f *hostFlags) add(flags *pflag.FlagSet, e *cli.Env) {
	f.Contexts.Add(flags, "`file` or directory that every session has; repeatable")
	f.Tools.Add(flags, e)
	f.Files.AddMount(flags)
	flags.BoolVar(&f.Quiet, "quiet", false, "print errors on stderr, but no notes")
	config.AddFlags(flags,
		config.In(config.Routing, config.Limits, config.Models, config.Run, config.Graphs))
}

// hostGrace is the maximum time from a signal to the end of the command.
const hostGrace = 10 * time.Second

// backing holds the engine, the tools and the configuration for the sessions of a host.
type backing struct {
	engine *rlm.Engine
	tools  *wiring.Tools
	config rlm.SessionConfig // of each session
	closes []func() error
}

// open opens the engine, the tools and the models. After an error, nothing is open.
func (f *hostFlags) open(ctx context.Context, e *cli.Env) (*backing, error) {
	if f.Contexts.UseStdin() {
		return nil, cli.Usage(errors.New("stdin cannot be a context: it carries the protocol"))
	}

	e.EndWithin(hostGrace)
	b := &backing{}
	if err := f.openParts(ctx, e, b); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// openParts opens the parts one by one. After an error, some of them may be open.
func (f *hostFlags) openParts(ctx context.Context, e *cli.Env, b *backing) (err error) {
	if b.config, err = f.SessionConfig(e); err != nil {
		return cli.Usage(err)
	}
	if b.engine, err = wiring.OpenEngine(ctx, e, f.Note(e)); err != nil {
		return err
	}
	b.closes = append(b.closes, b.engine.Close)

	if b.tools, err = f.Tools.Open(ctx, e, f.Note(e)); err != nil {
		return err
	}
	b.closes = append(b.closes, func() error {
		return errors.Join(b.tools.Known.Keep(context.WithoutCancel(ctx)), b.tools.Close())
	})

	closeModels, err := f.askModels(e, b.tools, &b.config)
	if err != nil {
		return err
	}
	b.closes = append(b.closes, func() error { closeModels(); return nil })
	return nil
}

// close closes everything that is open, in reverse order.
func (b *backing) close() (err error) {
	for _, one := range slices.Backward(b.closes) {
		err = errors.Join(err, one())
	}
	return err
}

// openSession opens a session with additional contexts.
func (b *backing) openSession(
	ctx context.Context, more []rlm.Context, change func(*rlm.SessionConfig),
) (*rlm.Session, error) {
	own := b.config
	own.Contexts = append(own.Contexts[:len(own.Contexts):len(own.Contexts)], more...)
	change(&own)

	return wiring.OpenLoaded(ctx, b.engine, b.tools, own)
}

// readFile returns a file of the host as a context.
func (f *hostFlags) readFile(e *cli.Env, path string) rlm.Context {
	reading := f.Contexts.Files.Options(e.Settings.CacheDir, f.Note(e))
	reading.Servers, reading.FilesOnly = e.Settings.ContextServer, true
	return inputs.Files(reading, path)
}

// serve serves until the host ends the connection, or the context ends.
func (f *hostFlags) serve(ctx context.Context, e *cli.Env) (err error) {
	f.Tools.Ask = askFirst
	b, err := f.open(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	server, err := f.newServer(ctx, e, b)
	if err != nil {
		return cli.Usage(err)
	}
	defer func() { err = errors.Join(err, server.Close()) }()

	if f.address != "" {
		return f.serveHTTP(ctx, e, server)
	}

	if cli.IsTerminal(e.Stdin) {
		f.Note(e)("waits for the messages of an MCP host, which starts this command itself; Ctrl-C ends it")
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

// askModels adds the tools to the configuration of sessions, and the model, if the settings name
// one.
func (f *hostFlags) askModels(e *cli.Env, tools *wiring.Tools, cfg *rlm.SessionConfig) (closeModels func(), err error) {
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

// newServer makes the server, whose sessions have the tools.
func (f *hostFlags) newServer(ctx context.Context, e *cli.Env, b *backing) (*mcp.Server, error) {
	roots, err := resolveRoots(f.roots)
	if err != nil {
		return nil, err
	}
	functions, cfg, tools := "", &b.config, b.tools
	if cfg.Ask.Tools != nil {
		list, notes := cfg.Ask.Tools.Prompt()
		functions = strings.TrimSpace(list + "\n\n" + notes)
	}

	options := mcp.Config{
		Version: e.Version,
		Open: func(
			ctx context.Context, more []rlm.Context, progress func(ledger.Event),
		) (*rlm.Session, error) {
			return b.openSession(ctx, more, func(own *rlm.SessionConfig) { own.Ask.Progress = progress })
		},
		Read: func(_ context.Context, path string) (mcp.Given, error) {
			if remote.IsAddress(path) {
				if len(e.Settings.ContextServer) == 0 {
					return mcp.Given{}, errors.New(
						"no server may be read: start rlm mcp with --context-server HOST")
				}
				return mcp.Given{Name: path, Context: f.readFile(e, path)}, nil
			}
			within, err := findBelow(roots, path)
			return mcp.Given{Name: path, Context: f.readFile(e, within)}, err
		},
		PathHelp: "Paths cannot be read here: the user has named no root.",
		Detect:   b.engine.Detect, Functions: functions, Asks: cfg.Ask.Models != nil,
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
func (f *hostFlags) newGateway(ctx context.Context, e *cli.Env, tools *wiring.Tools) (*mcptools.Gateway, error) {
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
	return "", fmt.Errorf("cannot read %q: there is no such file below %s (--root adds a folder)",
		path, strings.Join(roots, ", "))
}

// serveHTTP serves over HTTP until the context ends.
func (f *hostFlags) serveHTTP(ctx context.Context, e *cli.Env, server *mcp.Server) error {
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

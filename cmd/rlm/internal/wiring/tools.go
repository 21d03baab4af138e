package wiring

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	mcptools "github.com/rlmhq/rlm/mcp/tools"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
	loop "github.com/rlmhq/rlm/repl/run"
	"github.com/rlmhq/rlm/repl/toolprogram"
	"github.com/rlmhq/rlm/tiers"
)

// maxToolFile is the maximum size of a tool file, in bytes.
const maxToolFile = 1 << 20

// ToolFlags are the flags for the user's tools.
type ToolFlags struct {
	files    []string
	commands []string
	servers  []string   // files that name MCP servers
	apis     []string   // OpenAPI documents
	apiHosts []string   // hosts that the documents may name
	approve  []string   // rules
	Known    *Knowledge // set if it is already open
	// Ask asks a person whether to make a call for which a rule requires approval. If it is nil,
	// the question appears on the terminal.
	Ask func(ctx context.Context, function, arguments, rule string) error
}

// Add adds the flags.
func (f *ToolFlags) Add(flags *pflag.FlagSet, e *cli.Env) {
	flags.StringArrayVar(&f.files, "tool", nil,
		"Python `file` whose functions snippets can call; it runs in the sandbox; repeatable")
	flags.StringArrayVar(&f.commands, "tool-command", nil,
		"`program` of this host whose functions snippets can call; repeatable")
	flags.StringArrayVar(&f.servers, "mcp", nil,
		"JSON `file` with mcpServers: snippets can call the tools of these servers; repeatable")
	flags.StringArrayVar(&f.apis, "openapi", nil,
		"OpenAPI `document`, FILE or URL: snippets can call its operations; NAME=FILE names it; repeatable")
	flags.StringArrayVar(&f.apiHosts, "openapi-host", nil,
		"`HOST` or HOST:PORT that --openapi may reach, also a private one (default: all public hosts); repeatable")
	flags.StringArrayVar(&e.Inject, "inject", nil, "header for calls of --openapi and requests of "+
		"snippets to a host, `HOST=HEADER:VARIABLE` of the environment; repeatable")
	flags.StringArrayVar(&f.approve, "approve", nil,
		"`rule` for calls of tools on this host, such as \"ask send_*\"; the first rule that fits decides; repeatable")
}

// Tools are the opened tools of a command.
type Tools struct {
	Approve  func(context.Context, tiers.Call, ledger.Spending) error
	files    []loop.ToolFile
	programs []*toolprogram.Program
	Servers  *mcptools.Servers // nil without servers
	Known    *Knowledge        // nil without a graph
}

// Open reads the files, starts the programs and loads the graphs. The caller must close the tools.
func (f *ToolFlags) Open(
	ctx context.Context, e *cli.Env, note func(string, ...any),
) (_ *Tools, err error) {
	t := &Tools{}
	defer func() {
		if err != nil {
			err = cli.Usage(errors.Join(err, t.Close()))
		}
	}()

	for _, name := range f.files {
		source, err := cli.ReadFile(e, name, maxToolFile, "the tool file")
		if err != nil {
			return nil, err
		}
		t.files = append(t.files, loop.ToolFile{Name: name, Source: source})
	}

	for _, command := range f.commands {
		program, err := toolprogram.Start(ctx, command)
		if err != nil {
			return nil, err
		}
		t.programs = append(t.programs, program)
	}

	if err := t.startServers(ctx, e, f, note); err != nil {
		return t, err
	}
	if t.Known = f.Known; t.Known == nil {
		if t.Known, err = OpenKnowledge(ctx, e, note); err != nil {
			return t, err
		}
	}
	t.Approve, err = f.readRules(e, t.names(), t.Servers)
	return t, err
}

// startServers starts the MCP servers.
func (t *Tools) startServers(
	ctx context.Context, e *cli.Env, f *ToolFlags, note func(string, ...any),
) (err error) {
	switch {
	case len(f.apis) == 0 && len(f.apiHosts) > 0:
		return errors.New("--openapi-host is for APIs: give --openapi, too")
	case len(f.apis)+len(e.Settings.AllowHost) == 0 && len(e.Inject) > 0:
		return errors.New("--inject is for APIs and hosts of snippets: give --openapi or --allow-host, too")
	case len(f.servers)+len(f.apis) == 0:
		return nil
	case len(f.servers) > 0:
		note("starts the MCP servers of %s", strings.Join(f.servers, ", "))
	}

	t.Servers, err = mcptools.Start(ctx, mcptools.Options{
		Files: f.servers, APIs: f.apis, Hosts: f.apiHosts, Inject: e.Inject, Version: e.Version,
		Warn: func(text string) { note("warning: %s", text) },
	})
	if err != nil {
		return err
	}
	t.files = append(t.files, loop.ToolFile{Name: "of the MCP servers", Source: t.Servers.Python()})
	return nil
}

// names returns the names of the tools that run on the host.
func (t *Tools) names() (names []string) {
	for _, tool := range t.list() {
		names = append(names, tool.Name)
	}
	return names
}

// AddTo gives the tools to a task.
func (t *Tools) AddTo(task *rlm.Task) (err error) {
	task.Config.ToolFiles, task.Config.Approve = t.files, t.Approve
	task.Config.Tools, err = t.OfHost()
	if err != nil {
		return cli.Usage(err)
	}
	return nil
}

// OfHost returns the tools that run on the host: those of all programs and of the graph. It
// returns nil if there are none.
func (t *Tools) OfHost() (*repl.Tools, error) {
	all := t.list()
	if len(all) == 0 {
		return nil, nil //nolint:nilnil // documented: no tools
	}
	return repl.NewTools(all...)
}

func (t *Tools) list() []repl.Tool {
	all := t.Known.tools()
	for _, program := range t.programs {
		all = append(all, program.Tools()...)
	}
	return append(all, t.Servers.Tools()...)
}

// Load runs the files in a session.
func (t *Tools) Load(ctx context.Context, session *rlm.Session) error {
	for _, file := range t.files {
		result, err := session.Run(ctx, file.Source)
		if err != nil {
			return cli.AddExitCode(fmt.Errorf("cannot load tool file %s: %w", file.Name, err))
		}
		if result.Exception != nil {
			return cli.Usage(fmt.Errorf("cannot load tool file %s: %s: %s", file.Name,
				result.Exception.Type, result.Exception.Message))
		}
	}
	return nil
}

// Close ends the programs and frees the graph.
func (t *Tools) Close() error {
	errs := []error{t.Known.Close(), t.Servers.Close()}
	for _, program := range t.programs {
		errs = append(errs, program.Close())
	}
	return errors.Join(errs...)
}

// OpenLoaded opens a session and loads the tools into it.
func OpenLoaded(
	ctx context.Context, engine *rlm.Engine, loaded *Tools, cfg rlm.SessionConfig,
) (*rlm.Session, error) {
	session, err := engine.Open(ctx, cfg)
	if err != nil {
		return nil, cli.Usage(err)
	}
	if err := loaded.Load(ctx, session); err != nil {
		return nil, errors.Join(err, session.Close())
	}
	return session, nil
}

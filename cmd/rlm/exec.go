package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	mcptools "github.com/rlmhq/rlm/mcp/tools"
	"github.com/rlmhq/rlm/tiers"
)

// maxSource bounds a source file, in bytes.
const maxSource = 64 << 20

// execFlags are the flags of `rlm exec`.
type execFlags struct {
	code     []string
	session  string // the name of a session to go on with
	contexts contextFlags
	json     bool
	quiet    bool
	explain  bool
	runs     bool // the command runs the code
	routing  routing
	files    files
	tools    toolFlags
}

// addCode adds the flags of all commands that take code.
func (f *execFlags) addCode(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&f.code, "code", "c", nil,
		"`code` to run, instead of files; repeatable")
	f.routing.add(flags)
	config.AddFlags(flags, config.In(config.Routing))
}

const execLong = `Run Python or Go in a sandbox, over contexts of any size.

The first context is the variable ` + "`context`" + `; further contexts are context_1,
context_2 and so on. A file up to 8 MiB is a str. A larger file behaves like a str,
but is not loaded into memory. A directory is a mapping of relative paths to texts.
In Go, the variables are Context, Context_1 and so on.

A snippet's output goes to stdout, followed by the value of FINAL(...). Several
snippets run in order in one session, until one fails or calls FINAL.

Exit codes: 0 success; 1 a snippet raised an exception; 2 usage or bad input; 3 no
tier may run the snippet; 4 a limit fired (stderr names it); 5 the tier broke; 130
interrupted.`

// newExec makes the command rlm exec.
func newExec(e *env) *cobra.Command {
	f := execFlags{runs: true}
	cmd := &cobra.Command{
		Use:   "exec [-c CODE | FILE... | -]",
		Short: "Run Python or Go in a sandbox, over contexts of any size",
		Long:  execLong,
		Example: `  rlm exec -c 'print(sum(range(10)))'
  rlm exec --context server.log -c 'print(context.count("ERROR"))'
  rlm exec --context notes/ prepare.py answer.py`,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := withEngine(cmd, e, &f, args, func(s *rlm.Session, jobs []tiers.Job) error {
				notes, err := s.CheckContexts(cmd.Context())
				if err != nil {
					return Broken(err)
				}
				for _, text := range notes {
					f.note(e)("%s", text)
				}
				show := &shown{e: e, flags: &f, gallery: e.newGallery(f.files.out, f.note(e))}
				return show.finish(cmd.Context(), s, runAll(cmd.Context(), e, f, s, jobs, show))
			})
			if f.json {
				return printFailure(cmd.Context(), e.stdout, err)
			}
			return err
		},
	}

	flags := cmd.Flags()
	f.addCode(flags)
	config.AddFlags(flags, config.In(config.Limits, config.Graphs))
	config.AddFlags(flags, config.Named("max_tool_calls"))
	f.files.add(flags)
	f.contexts.add(flags,
		"`file` or directory to work on, - for stdin; repeatable")
	f.tools.add(flags, e)
	e.addRaw(flags)
	addSession(flags, &f.session, "`name` of a session that keeps contexts and variables for the next command")
	flags.BoolVar(&f.explain, "explain", false,
		"also print on stderr which tier runs each snippet, and why")
	flags.BoolVar(&f.json, "json", false,
		"print one JSON object for each snippet, instead of its output")
	flags.BoolVar(&f.quiet, "quiet", false, "print errors on stderr, but no notes")
	return cmd
}

// note returns a function that writes notes on stderr.
func (f *execFlags) note(e *env) func(format string, args ...any) {
	return e.noteUnless(f.quiet)
}

// withEngine reads the code and opens a session for it.
func withEngine(
	cmd *cobra.Command,
	e *env,
	f *execFlags,
	args []string,
	use func(*rlm.Session, []tiers.Job) error,
) (err error) {
	ctx := mcptools.NewAllowance(e.settings.MaxToolCalls).In(cmd.Context())
	cmd.SetContext(ctx)
	jobs, err := f.readJobs(e, args)
	if err != nil {
		return Usage(err)
	}
	cfg, err := f.sessionConfig(e)
	if err != nil {
		return Usage(err)
	}

	engine, err := e.engine(ctx, f.note(e))
	if err != nil {
		return err
	}
	defer engine.Close()
	tools := &tools{} // a plan needs none
	if f.runs {
		if tools, err = f.tools.open(ctx, e, f.note(e)); err != nil {
			return err
		}
	}
	defer tools.Close()
	cfg.Ask.Approve = tools.approve
	if cfg.Ask.Tools, err = tools.ofHost(); err != nil {
		return Usage(err)
	}
	session, kept, err := f.openSession(ctx, e, engine, tools, cfg)
	if err != nil {
		return err
	}
	defer session.Close()
	defer func() { err = joinExit(err, kept.release()) }()

	for i := range jobs {
		if jobs[i].Language == "" {
			jobs[i].Language = engine.Detect(ctx, jobs[i].Source)
		}
	}
	err = use(session, jobs)
	if f.runs {
		err = joinExit(err, errors.Join(tools.known.keep(ctx), kept.saveAtEnd(ctx)))
	}
	return err
}

// openSession opens the session for the code, which has a talk if it has a name.
func (f *execFlags) openSession(
	ctx context.Context, e *env, engine *rlm.Engine, tools *tools, cfg rlm.SessionConfig,
) (*rlm.Session, *talk, error) {
	if f.session == "" {
		session, err := openLoaded(ctx, engine, tools, cfg)
		return session, nil, err
	}
	kept, err := e.openKept(ctx, engine, f.session, &f.contexts, cfg, f.note(e))
	if err != nil {
		return nil, nil, err
	}
	if err := tools.load(ctx, kept.session); err != nil {
		return nil, nil, errors.Join(err, kept.close())
	}
	return kept.session, kept, nil
}

// readJobs returns the snippets in order. An unknown language is empty.
func (f *execFlags) readJobs(e *env, args []string) ([]tiers.Job, error) {
	var jobs []tiers.Job
	add := func(source, file string) error {
		language, err := f.routing.languageOf(file)
		jobs = append(jobs, tiers.Job{Language: language, Source: source})
		return err
	}

	if len(f.code) > 0 && len(args) > 0 {
		return nil, errors.New("give code with -c or in files, not both; put a pattern for --context in quotes")
	}
	for _, source := range f.code {
		if err := add(source, ""); err != nil {
			return nil, err
		}
	}

	if len(f.code) == 0 && len(args) == 0 {
		if e.terminal {
			return nil, errors.New("no code: give -c CODE, a FILE, or - for stdin")
		}
		args = []string{"-"}
	}

	for _, name := range args {
		source, err := f.readSource(e, name)
		if err != nil {
			return nil, err
		}
		if err := add(source, name); err != nil {
			return nil, err
		}
	}

	return jobs, nil
}

func (f *execFlags) readSource(e *env, name string) (string, error) {
	r := e.stdin
	if name != "-" {
		file, err := e.open(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("cannot read the code: %w (to pass code instead of a file name, use -c)",
				err)
		case err != nil:
			return "", fmt.Errorf("cannot read the code: %w", err)
		}
		defer file.Close()
		r = file
	} else if f.contexts.useStdin() {
		return "", errors.New("stdin cannot be both the code and a context: " +
			"give the code with -c or in a file")
	}

	data, err := io.ReadAll(io.LimitReader(r, maxSource+1))
	if err != nil {
		return "", fmt.Errorf("cannot read the code %s: %w", name, err)
	}
	if len(data) > maxSource {
		return "", fmt.Errorf("the code %s is longer than %d MiB: pass data with --context", name,
			maxSource>>20)
	}

	return string(data), nil
}

// sessionConfig makes a session's configuration from the flags and settings.
func (f *execFlags) sessionConfig(e *env) (rlm.SessionConfig, error) {
	policy, err := policy(e.settings)
	cfg := rlm.SessionConfig{
		Deterministic: e.settings.Deterministic,
		Limits:        limits(e.settings, defaultOutput),
		Policy:        policy,
		Functions:     e.functions,
	}

	if err != nil || !f.runs {
		return cfg, err
	}
	if cfg.Mounts, err = f.files.parseMounts(); err != nil {
		return cfg, err
	}
	if err := f.files.makeOutFolder(); err != nil {
		return cfg, err
	}

	cfg.Out = f.files.out != ""
	if f.session != "" {
		return cfg, nil // the session opens its contexts
	}
	cfg.Contexts, err = f.contexts.open(e, f.note(e))
	return cfg, err
}

// runAll runs the snippets up to the first that fails or calls FINAL.
func runAll(
	ctx context.Context, e *env, f execFlags, session *rlm.Session, jobs []tiers.Job, show *shown,
) error {
	stdout, stderr := e.snippetOutput()
	for _, job := range jobs {
		if !f.json {
			job.Stdout, job.Stderr = stdout, stderr
		}
		result, err := session.RunJob(ctx, job)
		if f.explain && result.Plan != nil {
			if err := showPlan(e.stderr, result.Plan.Text(), nil); err != nil {
				return Broken(err)
			}
		}

		if err != nil {
			return addExitCode(err)
		}
		if stdout.err != nil {
			return Broken(fmt.Errorf("cannot write the output: %w", stdout.err))
		}
		if err := show.report(e.endOutput(stdout, stderr), result); err != nil {
			return err
		}
		if code := resultCode(result.Result); code != exitOK {
			return Exit(code, nil)
		}

		if result.Final != nil {
			return nil
		}
	}

	return nil
}

// resultCode returns the exit code for the result of a snippet.
func resultCode(r tiers.Result) int {
	switch {
	case r.Limit != "":
		return exitLimit
	case r.Status == tiers.StatusOK, r.Status == tiers.StatusExited && r.Exception.ExitCode == 0:
		return exitOK
	}
	return exitRaised
}

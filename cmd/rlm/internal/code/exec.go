package code

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/internal/data/tablesql"
	mcptools "github.com/rlmhq/rlm/mcp/tools"
	"github.com/rlmhq/rlm/tiers"
)

// maxSource is the maximum size of a source file, in bytes.
const maxSource = 64 << 20

// ExecFlags are the flags of `rlm exec`.
type ExecFlags struct {
	code     []string
	Session  string // the name of a session to continue
	Contexts wiring.ContextFlags
	json     bool
	Quiet    bool
	explain  bool
	Runs     bool // the command runs the code
	routing  wiring.LanguageFlag
	Files    wiring.FileFlags
	Tools    wiring.ToolFlags
	queries  map[int]bool // the numbers of the snippets in SQL
}

// addCode adds the flags of all commands that accept code.
func (f *ExecFlags) addCode(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&f.code, "code", "c", nil,
		"`code` to run, instead of files; repeatable")
	f.routing.Add(flags)
	config.AddFlags(flags, config.In(config.Routing))
}

const execLong = `Run Python, Go or SQL in a sandbox, over contexts of any size.

The first context is the variable ` + "`context`" + `; further contexts are context_1,
context_2 and so on. A file up to 8 MiB is a str. A larger file behaves like a str,
but is not loaded into memory. A directory is a mapping of relative paths to texts.
In Go, the variables are Context, Context_1 and so on. SQL queries the contexts that
are tables, by their names or those of their files.

A snippet's output goes to stdout, followed by the value of FINAL(...). Several
snippets run in order in one session, until one fails or calls FINAL.

Exit codes: 0 success; 1 a snippet raised an exception; 2 usage or bad input; 3 no
tier may run the snippet; 4 a limit fired (stderr names it); 5 the tier broke; 130
interrupted.`

// NewExec makes the command rlm exec.
func NewExec(e *cli.Env) *cobra.Command {
	f := ExecFlags{Runs: true}
	cmd := &cobra.Command{
		Use:   "exec [-c CODE | FILE... | -]",
		Short: "Run Python, Go or SQL in a sandbox, over contexts of any size",
		Long:  execLong,
		Example: `  rlm exec -c 'print(sum(range(10)))'
  rlm exec --context server.log -c 'print(context.count("ERROR"))'
  rlm exec --context notes/ prepare.py answer.py
  rlm exec --context sales.csv --lang sql -c 'select item, sum(price) from sales group by item'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			err := withEngine(cmd, e, &f, args, func(s *rlm.Session, jobs []tiers.Job) error {
				notes, err := s.CheckContexts(cmd.Context())
				if err != nil {
					return cli.Broken(err)
				}
				for _, text := range notes {
					f.Note(e)("%s", text)
				}
				if !f.Contexts.UseStdin() {
					defer e.NoteUnread(f.Note(e))
				}
				show := NewShown(e, &f)
				return show.Finish(cmd.Context(), s, runAll(cmd.Context(), e, f, s, jobs, args, show))
			})
			if f.json {
				return printFailure(cmd.Context(), e.Stdout, err)
			}
			return err
		},
	}

	flags := cmd.Flags()
	f.addCode(flags)
	config.AddFlags(flags, config.In(config.Limits, config.Graphs))
	config.AddFlags(flags, config.Named("max_tool_calls"))
	f.Files.Add(flags)
	f.Contexts.Add(flags,
		"`file` or directory to work on, - for stdin; repeatable")
	f.Tools.Add(flags, e)
	e.AddRaw(flags)
	wiring.AddSession(flags, &f.Session, "`name` of a session that keeps contexts and variables for the next command")
	flags.BoolVar(&f.explain, "explain", false,
		"also print on stderr which tier runs each snippet, and why")
	flags.BoolVar(&f.json, "json", false,
		"print one JSON object for each snippet, instead of its output")
	flags.BoolVar(&f.Quiet, "quiet", false, "print errors on stderr, but no notes")
	return cmd
}

// Note returns a function that writes notes to stderr.
func (f *ExecFlags) Note(e *cli.Env) func(format string, args ...any) {
	return e.NoteUnless(f.Quiet)
}

// withEngine reads the code and opens a session for it.
func withEngine(
	cmd *cobra.Command,
	e *cli.Env,
	f *ExecFlags,
	args []string,
	use func(*rlm.Session, []tiers.Job) error,
) (err error) {
	ctx := mcptools.NewAllowance(e.Settings.MaxToolCalls).In(tablesql.WithNotes(cmd.Context(), f.Note(e)))
	cmd.SetContext(ctx)
	if err := f.checkHyphens(cmd.Flags(), e.Args); err != nil {
		return cli.Usage(err)
	}
	jobs, err := f.readJobs(e, args)
	if err != nil {
		return cli.Usage(err)
	}
	cfg, err := f.SessionConfig(e)
	if err != nil {
		return cli.Usage(err)
	}

	engine, err := wiring.OpenEngine(ctx, e, f.Note(e))
	if err != nil {
		return err
	}
	defer engine.Close()
	tools := &wiring.Tools{} // a plan needs no tools
	if f.Runs {
		if tools, err = f.Tools.Open(ctx, e, f.Note(e)); err != nil {
			return err
		}
	}
	defer tools.Close()

	cfg.Ask.Approve = tools.Approve
	if cfg.Ask.Tools, err = tools.OfHost(); err != nil {
		return cli.Usage(err)
	}

	session, kept, err := f.OpenSession(ctx, e, engine, tools, cfg)
	if err != nil {
		return err
	}
	defer session.Close()
	defer func() { err = cli.JoinExit(err, kept.Release()) }()

	f.queries = map[int]bool{}
	for i := range jobs {
		if jobs[i].Language == wiring.SQL {
			f.queries[i] = true
			isValue := f.json && i == len(jobs)-1
			jobs[i].Language, jobs[i].Source = tiers.Python, wiring.ShowQuery(jobs[i].Source, isValue)
		}
		if jobs[i].Language == "" {
			jobs[i].Language = engine.Detect(ctx, jobs[i].Source)
		}
	}

	err = use(session, jobs)
	if f.Runs {
		err = cli.JoinExit(err, errors.Join(tools.Known.Keep(ctx), kept.SaveAtEnd(ctx)))
	}
	return err
}

// OpenSession opens the session for the code. For a named session, it also returns the talk.
func (f *ExecFlags) OpenSession(
	ctx context.Context, e *cli.Env, engine *rlm.Engine, tools *wiring.Tools, cfg rlm.SessionConfig,
) (*rlm.Session, *wiring.Talk, error) {
	if f.Session == "" {
		session, err := wiring.OpenLoaded(ctx, engine, tools, cfg)
		return session, nil, err
	}

	kept, err := wiring.OpenTalk(ctx, e, engine, f.Session, &f.Contexts, cfg, f.Note(e))
	if err != nil {
		return nil, nil, err
	}
	if err := tools.Load(ctx, kept.Session); err != nil {
		return nil, nil, errors.Join(err, kept.Close())
	}
	return kept.Session, kept, nil
}

// readJobs returns the snippets in order. The language is empty if unknown.
func (f *ExecFlags) readJobs(e *cli.Env, args []string) ([]tiers.Job, error) {
	var jobs []tiers.Job
	add := func(source, file string) error {
		language, err := f.routing.LanguageOf(file)
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
		if e.Terminal {
			return nil, errors.New("no code: give -c CODE, a FILE, or - for stdin")
		}
		args = []string{"-"}
	}

	for _, name := range args {
		if err := f.refuseData(name); err != nil {
			return nil, err
		}
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

func (f *ExecFlags) readSource(e *cli.Env, name string) (string, error) {
	r := e.Stdin
	if name != "-" {
		file, err := e.Open(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return "", fmt.Errorf("cannot read the code: %w (to pass code instead of a file name, use -c)",
				err)
		case err != nil:
			return "", fmt.Errorf("cannot read the code: %w", err)
		}
		defer file.Close()
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			return "", fmt.Errorf("cannot read the code: %s is a directory: to work on its files, pass --context %s",
				name, name)
		}
		r = file
	} else if f.Contexts.UseStdin() {
		return "", errors.New("stdin cannot be both the code and a context: " +
			"give the code with -c or in a file")
	}

	data, err := io.ReadAll(io.LimitReader(r, maxSource+1))
	if err != nil {
		return "", fmt.Errorf("cannot read the code %s: %w", name, err)
	}
	if name == "-" && len(data) == 0 {
		return "", errors.New("no code: stdin is empty: give -c CODE or a FILE")
	}
	if len(data) > maxSource {
		return "", fmt.Errorf("the code %s is longer than %d MiB: pass data with --context", name,
			maxSource>>20)
	}

	return string(data), nil
}

// SessionConfig builds a session's configuration from the flags and settings.
func (f *ExecFlags) SessionConfig(e *cli.Env) (rlm.SessionConfig, error) {
	policy, err := wiring.Policy(e.Settings)
	cfg := rlm.SessionConfig{
		Deterministic: e.Settings.Deterministic,
		Limits:        wiring.Limits(e.Settings, wiring.DefaultOutput),
		Policy:        policy,
		Functions:     e.Functions,
	}

	if err != nil || !f.Runs {
		return cfg, err
	}
	if cfg.Mounts, err = f.Files.ParseMounts(); err != nil {
		return cfg, err
	}
	if err := f.Files.MakeOutFolder(); err != nil {
		return cfg, err
	}

	cfg.Out = f.Files.Out != ""
	if f.Session != "" {
		return cfg, nil // the session opens its contexts
	}
	cfg.Contexts, err = f.Contexts.Open(e, f.Note(e))
	return cfg, err
}

// runAll runs the snippets until one fails or calls FINAL. files are the names of their files, if
// any.
func runAll(
	ctx context.Context, e *cli.Env, f ExecFlags, session *rlm.Session, jobs []tiers.Job,
	files []string, show *Shown,
) error {
	stdout, stderr := e.SnippetOutput()
	for i, job := range jobs {
		if !f.json {
			job.Stdout, job.Stderr = stdout, stderr
			if f.Session == "" {
				job.Stderr = &namedWarnings{w: stderr, files: files}
			}
		}
		result, err := session.RunJob(ctx, job)
		if f.explain && result.Plan != nil {
			if err := ShowPlan(e.Stderr, result.Plan.Text(), nil); err != nil {
				return cli.Broken(err)
			}
		}

		if err != nil {
			return cli.AddExitCode(err)
		}
		if stdout.Err != nil {
			return cli.Broken(fmt.Errorf("cannot write the output: %w", stdout.Err))
		}
		file := ""
		if i < len(files) {
			file = files[i]
		}
		advice := cmp.Or(adviseOnContext(result.Result), adviseOnData(file, result.Result),
			adviseOnModule(file, &result.Result))
		if !f.json && f.Session == "" {
			nameFiles(&result.Result, files)
		}
		if result.Exception != nil && f.queries[i] { // without the program around the query
			result.Exception.Traceback = result.Exception.Message + "\n"
		}
		if err := show.Report(e.EndOutput(stdout, stderr), result); err != nil {
			return err
		}
		if advice != "" {
			f.Note(e)("%s", advice)
		}
		if isSyntaxError(result.Result) && looksLikeQuery.MatchString(job.Source) {
			f.Note(e)("this is run as %s: if it is SQL, pass --lang sql", job.Language)
		}
		if code := ResultCode(result.Result); code != cli.ExitOK {
			return cli.Exit(code, nil)
		}

		if result.Final != nil {
			return nil
		}
	}

	return nil
}

// ResultCode returns the exit code for the result of a snippet.
func ResultCode(r tiers.Result) int {
	switch {
	case r.Limit != "":
		return cli.ExitLimit
	case r.Status == tiers.StatusOK, r.Status == tiers.StatusExited && r.Exception.ExitCode == 0:
		return cli.ExitOK
	}
	return cli.ExitRaised
}

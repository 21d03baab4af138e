package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/tiers"
)

// maxSource and maxStdin bound what is read of code and of a context on stdin.
const (
	maxSource = 64 << 20
	maxStdin  = 1 << 40
)

// execFlags are the flags of `rlm exec`.
type execFlags struct {
	code     []string
	contexts []string
	json     bool
	quiet    bool
	explain  bool
	runs     bool // the command runs the code
	routing  routing
	files    files
}

// addCode adds the flags that every command with code has.
func (f *execFlags) addCode(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&f.code, "code", "c", nil,
		"code to run, instead of files; may be repeated")

	f.routing.add(flags)
	config.AddFlags(flags, config.In(config.Routing))
}

const execLong = `Run Python or Go in a sandbox, over contexts of any size.

The snippet finds the first context as ` + "`context`" + `, further ones as context_1,
context_2, ... A file up to 8 MiB is a str; a longer one answers as a str does
without being loaded; a directory is a mapping of relative paths to texts. Go
finds them as Context, Context_1, ...

What the snippet writes goes to stdout, then the value of FINAL(...). Several
files run in order in one session, up to the first that fails or calls FINAL.

Exit codes: 0 fine, 1 the snippet raised, 2 usage or bad input, 3 no tier may
run it, 4 a limit (named on stderr), 5 the tier broke, 130 interrupted.`

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
			return withEngine(cmd, e, &f, args, func(s *rlm.Session, jobs []tiers.Job) error {
				for _, text := range s.CheckContexts(cmd.Context()) {
					f.note(e)("%s", printable(text))
				}
				return f.files.collect(cmd.Context(), s, f.note(e),
					runAll(cmd.Context(), e, f, s, jobs))
			})
		},
	}

	flags := cmd.Flags()
	f.addCode(flags)
	config.AddFlags(flags, config.In(config.Limits))
	f.files.add(flags)
	flags.StringArrayVar(&f.contexts, "context", nil,
		"file or directory to work on, - for stdin; may be repeated")

	flags.BoolVar(&f.explain, "explain", false,
		"also say on stderr where each snippet runs, and why")

	flags.BoolVar(&f.json, "json", false, "print one JSON object for each snippet instead")
	flags.BoolVar(&f.quiet, "quiet", false, "no notes on stderr, errors only")
	return cmd
}

// note returns a function that writes notes on stderr.
func (f *execFlags) note(e *env) func(format string, args ...any) {
	return func(format string, args ...any) {
		if !f.quiet {
			_, _ = fmt.Fprintf(e.stderr, "rlm: "+format+"\n", args...)
		}
	}
}

// withEngine reads the code and opens a session for it.
func withEngine(
	cmd *cobra.Command,
	e *env,
	f *execFlags,
	args []string,
	use func(*rlm.Session, []tiers.Job) error,
) error {
	ctx := cmd.Context()
	jobs, err := f.jobs(e, args)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	cfg, err := f.session(e)
	if err != nil {
		return &exitError{exitUsage, err}
	}

	engine, err := e.engine(ctx, f.note(e))
	if err != nil {
		return err
	}
	defer engine.Close()
	session, err := engine.Open(ctx, cfg)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	defer session.Close()

	for i := range jobs {
		if jobs[i].Language == "" {
			jobs[i].Language = engine.Detect(ctx, jobs[i].Source)
		}
	}
	return use(session, jobs)
}

// newEngine makes an engine by the settings. It prepares nothing.
func (e *env) newEngine(note func(string, ...any)) (*rlm.Engine, error) {
	engine, err := rlm.New(rlm.Options{
		CacheDir:   e.settings.CacheDir,
		Python:     e.settings.Python,
		DockerHost: dockerHost(),
		Log:        e.log,
		Progress:   func(what string) { note("%s", what) },
	})
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	return engine, nil
}

// engine makes an engine by the settings, ready for snippets.
func (e *env) engine(ctx context.Context, note func(string, ...any)) (*rlm.Engine, error) {
	engine, err := e.newEngine(note)
	if err != nil {
		return nil, err
	}
	if name := e.settings.Tier; name != "auto" && !knows(engine, name) {
		err = &exitError{
			exitUsage,
			fmt.Errorf("--tier %q: there is no such tier, see `rlm tiers`", name),
		}
	} else if warm := engine.Warm(ctx); warm != nil { // before a bad context is looked at, which is another mistake
		err = &exitError{exitBroken, warm}
	}

	if err != nil {
		return nil, errors.Join(err, engine.Close())
	}
	return engine, nil
}

func knows(engine *rlm.Engine, name string) bool {
	return slices.ContainsFunc(engine.Tiers(),
		func(t tiers.Tier) bool { return t.Info().Name == name })
}

// jobs returns the snippets in order. A language that is not known yet is empty.
func (f *execFlags) jobs(e *env, args []string) ([]tiers.Job, error) {
	var jobs []tiers.Job
	add := func(source, file string) error {
		language, err := f.routing.languageOf(file)
		jobs = append(jobs, tiers.Job{Language: language, Source: source})
		return err
	}

	if len(f.code) > 0 && len(args) > 0 {
		return nil, errors.New("give code by -c or by files, not by both")
	}
	for _, source := range f.code {
		if err := add(source, ""); err != nil {
			return nil, err
		}
	}

	if len(f.code) == 0 && len(args) == 0 {
		if e.terminal {
			return nil, errors.New("there is no code: give -c CODE, a FILE, or - for stdin")
		}
		args = []string{"-"}
	}

	for _, name := range args {
		source, err := f.readSource(e.stdin, name)
		if err != nil {
			return nil, err
		}
		if err := add(source, name); err != nil {
			return nil, err
		}
	}

	return jobs, nil
}

func (f *execFlags) readSource(stdin io.Reader, name string) (string, error) {
	r := stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return "", fmt.Errorf("cannot read the code: %w", err)
		}
		defer file.Close()
		r = file
	} else if f.stdinContext() {
		return "", errors.New(
			"stdin cannot be both the code and a context: give the code by -c or a file",
		)
	}

	data, err := io.ReadAll(io.LimitReader(r, maxSource+1))
	if err != nil {
		return "", fmt.Errorf("cannot read the code %s: %w", name, err)
	}
	if len(data) > maxSource {
		return "", fmt.Errorf("the code %s is longer than %d MiB: pass data by --context", name,
			maxSource>>20)
	}

	return string(data), nil
}

func (f *execFlags) stdinContext() bool {
	for _, c := range f.contexts {
		if c == "-" {
			return true
		}
	}
	return false
}

// session makes the session's configuration of the flags and settings.
func (f *execFlags) session(e *env) (rlm.SessionConfig, error) {
	policy, err := policy(e.settings)
	cfg := rlm.SessionConfig{
		Deterministic: e.settings.Deterministic,
		Limits:        limits(e.settings, defaultOutput),
		Policy:        policy,
		Functions:     functions,
	}

	if err != nil || !f.runs {
		return cfg, err
	}
	if cfg.Mounts, err = f.files.mounted(); err != nil {
		return cfg, err
	}
	if err := f.files.check(); err != nil {
		return cfg, err
	}

	cfg.Out = f.files.out != ""
	cfg.Contexts, err = contextsOf(f.contexts, e.stdin)
	return cfg, err
}

// defaultOutput is how many bytes of a snippet's output are kept for people.
const defaultOutput = 20_000

// contextsOf are the contexts of the flag --context.
func contextsOf(paths []string, stdin io.Reader) ([]rlm.Context, error) {
	var all []rlm.Context
	seen := false
	for _, path := range paths {
		if path != "-" {
			all = append(all, rlm.File(path))
			continue
		}
		if seen {
			return nil, errors.New("--context - may be given once")
		}

		seen = true
		all = append(all, rlm.Reader("stdin", stdin, maxStdin))
	}

	return all, nil
}

// runAll runs the snippets up to the first that fails or calls FINAL.
func runAll(
	ctx context.Context, e *env, f execFlags, session *rlm.Session, jobs []tiers.Job,
) error {
	stdout, stderr := &lasting{w: e.stdout}, &lasting{w: e.stderr}
	for _, job := range jobs {
		if !f.json {
			job.Stdout, job.Stderr = stdout, stderr
		}
		result, err := session.RunJob(ctx, job)
		if f.explain && result.Plan != nil {
			if err := showPlan(e.stderr, result.Plan.Text(), nil); err != nil {
				return &exitError{exitBroken, err}
			}
		}

		if err != nil {
			return runFailure(err)
		}
		if stdout.err != nil {
			return &exitError{exitBroken, fmt.Errorf("cannot write the output: %w", stdout.err)}
		}
		if err := report(e.after(stdout, stderr), f, result); err != nil {
			return err
		}
		if code := resultCode(result.Result); code != exitOK {
			return &exitError{code: code}
		}

		if result.Final != nil {
			return nil
		}
	}

	return nil
}

func runFailure(err error) error {
	var rejected *tiers.RejectedError
	if errors.Is(err, rlm.ErrNoTier) || errors.As(err, &rejected) {
		return &exitError{exitNoTier, err}
	}
	return &exitError{exitBroken, err}
}

func resultCode(r tiers.Result) int {
	switch {
	case r.Limit != "":
		return exitLimit
	case r.Status == tiers.StatusOK, r.Status == tiers.StatusExited && r.Exception.ExitCode == 0:
		return exitOK
	}
	return exitRaised
}

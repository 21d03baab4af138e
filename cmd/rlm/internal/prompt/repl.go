package prompt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/code"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/cmd/rlm/internal/live"
	"github.com/rlmhq/rlm/cmd/rlm/internal/loops"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	mcptools "github.com/rlmhq/rlm/mcp/tools"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/tiers"
)

const replLong = `Start an interactive session: Python in a sandbox that keeps all variables, over
contexts of any size.

A line that begins with ? is a question for the model. The model works in a copy of
the session, so your variables stay unchanged. rlm prints its answer and stores it in
_answer. Your own code can also call the functions that ask models, such as
llm_query(...).

Ctrl-C interrupts the running snippet, not the session. Ctrl-D ends the session.`

// shell is one interactive session.
type shell struct {
	e       *cli.Env
	in      editor
	session *rlm.Session
	asks    func(ctx context.Context, question string) (rlm.Outcome, error)
	known   *wiring.Knowledge
	// reopen opens a fresh session to replace this one. It is nil in a chat.
	reopen func(ctx context.Context) (*rlm.Session, error)
	kept   *wiring.Talk // nil without a name
	last   tiers.Usage  // the last snippet's usage
	spent  ledger.Spending
	view   *live.View
	flags  *loops.RunFlags
	shown  *code.Shown // nil in a chat
	failed bool        // the last snippet or question failed
}

// NewRepl makes the command rlm repl.
func NewRepl(e *cli.Env) *cobra.Command {
	f := loops.RunFlags{ModelIsOptional: true}
	var history string
	cmd := &cobra.Command{
		Use:   "repl",
		Short: "Start an interactive session",
		Long:  replLong,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unexpected argument %q: "+
					"pass a file or directory with --context", args[0])
			}
			return nil
		},
		Example: `  rlm repl --context server.log
  rlm repl --context notes/ --model openai/gpt-5`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return openShell(cmd.Context(), &f, e, history)
		},
	}

	flags := cmd.Flags()
	f.Contexts.Add(flags,
		"`file` or directory to work on; repeatable")
	wiring.AddSession(flags, &f.Session, "`name` of a session that keeps contexts and variables for the next command")
	f.Tools.Add(flags, e)
	f.Files.AddOut(flags)
	e.AddRaw(flags)
	flags.BoolVar(&f.Quiet, "quiet", false, "print only errors on stderr")
	flags.StringVar(&history, "history", "",
		"`file` that keeps the lines for the next session, or none "+
			"(default: a file in the cache directory)")
	config.AddFlags(flags,
		config.In(config.Routing, config.Limits, config.Models, config.Run, config.Graphs))
	return cmd
}

// openShell opens the session, and reads lines until the input ends.
func openShell(ctx context.Context, f *loops.RunFlags, e *cli.Env, history string) (err error) {
	if err := checkLines(f, e); err != nil {
		return err
	}
	ctx = mcptools.NewAllowance(e.Settings.MaxToolCalls).In(ctx)
	task, err := f.Task(e, "(asked later)")
	if err != nil {
		return cli.Usage(err)
	}
	loop, err := f.Start(ctx, e, &task)
	if err != nil {
		return err
	}
	defer loop.Close()
	task.Config.Trace = ""

	cfg := rlm.SessionConfig{
		Contexts: task.Contexts, Policy: task.Policy, Ask: task.Config,
		Limits: wiring.Limits(e.Settings, wiring.DefaultOutput), Deterministic: e.Settings.Deterministic,
		Out: f.Files.Out != "",
	}
	exec := &code.ExecFlags{Quiet: f.Quiet, Files: f.Files, Session: f.Session, Contexts: f.Contexts}
	var kept *wiring.Talk
	reopen := func(ctx context.Context) (*rlm.Session, error) {
		return wiring.OpenLoaded(ctx, loop.Engine, loop.Tools, kept.AddContexts(e, cfg, exec.Note(e)))
	}
	session, opened, err := exec.OpenSession(ctx, e, loop.Engine, loop.Tools, cfg)
	if err != nil {
		return err
	}
	kept = opened

	loop.View.Close() // a live tree would disturb the user's input line
	s := &shell{
		e: e, session: session, asks: session.Ask, view: loop.View, flags: f, reopen: reopen,
		known: loop.Tools.Known, kept: kept,
	}
	s.shown = code.NewShown(e, exec)
	s.in = newEditor(e, historyFile(history, "history"), func(line string) (string, []string) {
		return s.complete(ctx, line)
	})
	defer func() {
		err = cli.JoinExit(errors.Join(err, s.in.Close(), s.session.Close(), s.kept.Release()), s.known.Keep(ctx))
	}()

	ended := s.loop(ctx)
	return s.shown.Finish(ctx, s.session, ended)
}

// checkLines refuses flags that conflict with reading lines from stdin.
func checkLines(f *loops.RunFlags, e *cli.Env) error {
	if f.Contexts.UseStdin() {
		return cli.Usage(errors.New("--context -: stdin already provides the lines: pass contexts as files"))
	}
	if c := e.Settings; c.Trace != "none" && c.From("trace").Kind == config.FromFlag {
		return cli.Usage(errors.New("--trace: a session writes no record: omit the flag, or use rlm ask"))
	}
	return nil
}

// loop reads and runs lines until the input ends. From a pipe, the exit code is 1 if the
// last snippet failed; on a terminal, the user has seen the failure.
func (s *shell) loop(ctx context.Context) error {
	if s.e.Terminal && !s.flags.Quiet {
		_, _ = fmt.Fprintln(s.e.Stderr, "rlm "+s.e.Version+", Python in a sandbox. "+
			":help lists commands, ? asks the model, Ctrl-D ends the session.")
	}

	for {
		source, err := s.read(ctx)
		switch {
		case errors.Is(err, errAborted):
			continue
		case errors.Is(err, io.EOF):
			if s.failed && !s.e.Terminal {
				return cli.Exit(cli.ExitRaised, nil)
			}
			return nil
		case err != nil:
			return cli.Broken(fmt.Errorf("cannot read a line: %w", err))
		}

		if done, err := s.runLine(ctx, source); done || err != nil {
			return err
		}
		s.tellFailure(s.kept.Save(ctx))
	}
}

// maxTyped is the maximum size of a snippet's source, in bytes.
const maxTyped = 1 << 20

// read reads a complete snippet or command, which may have several lines.
func (s *shell) read(ctx context.Context) (source string, err error) {
	defer func() { s.in.Remember(source) }()
	source, err = s.in.Line(">>> ", "")
	isRecalled := strings.Contains(source, "\n")
	if err != nil || strings.TrimSpace(source) == "" || isCommand(source) || isRecalled {
		return source, err
	}
	for len(source) < maxTyped {
		more, err := s.needsMoreLines(ctx, source)
		if err != nil || !more {
			return source, err
		}
		line, err := s.in.Line("... ", indentAfter(source))
		if errors.Is(err, io.EOF) {
			return source, nil // the end of a pipe ends the last block
		}
		if err != nil {
			return "", err
		}

		source += "\n" + line
	}

	return "", fmt.Errorf("the snippet is longer than %d bytes", maxTyped)
}

// indentAfter returns the indentation of the next line. It is that of the last line, with four more
// spaces after a colon, and four fewer after a statement that ends a block.
func indentAfter(source string) string {
	last := source[strings.LastIndexByte(source, '\n')+1:]
	statement := strings.TrimLeft(last, " ")
	indent := last[:len(last)-len(statement)]
	word, _, _ := strings.Cut(statement, " ")

	switch {
	case strings.HasSuffix(strings.TrimSpace(statement), ":"):
		return indent + "    "
	case slices.Contains([]string{"return", "raise", "pass", "break", "continue"}, word):
		return strings.TrimSuffix(indent, "    ")
	}
	return indent
}

// isCommand reports whether a line is a command of the shell.
func isCommand(line string) bool {
	return strings.HasPrefix(line, ":") || strings.HasPrefix(line, "?")
}

// needsMoreLines reports whether a snippet is unfinished. CPython's own parser decides. An empty
// line ends a block, as at CPython's prompt.
func (s *shell) needsMoreLines(ctx context.Context, source string) (bool, error) {
	lines := strings.Split(source, "\n")
	last := lines[len(lines)-1]
	plan, err := s.session.Explain(ctx, tiers.Job{Language: tiers.Python, Source: source})
	if err != nil {
		return false, err
	}

	invalid := plan.Invalid
	for _, sign := range []string{
		"was never closed", "unterminated triple-quoted", "unexpected EOF",
		"expected 'except' or 'finally' block",
	} {
		if strings.Contains(invalid, sign) {
			return true, nil
		}
	}

	if strings.HasSuffix(last, "\\") {
		return true, nil
	}
	block := strings.HasPrefix(lines[0], "@") || strings.HasSuffix(strings.TrimSpace(lines[0]), ":")
	lacksBody := strings.Contains(invalid, "expected an indented block")
	if !block || invalid != "" && len(lines) > 1 && !lacksBody {
		return false, nil
	}

	return strings.TrimSpace(last) != "", nil
}

// runInterruptibly calls what. Ctrl-C interrupts what, and the session continues.
func (s *shell) runInterruptibly(ctx context.Context, what func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer s.e.Interrupts.Take(func() { cancel(errAborted) })()
	err := what(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errAborted) {
		_, _ = fmt.Fprintln(s.e.Stderr, "rlm: interrupted; the session continues")
		var broken *tiers.BrokenError
		if errors.As(err, &broken) && broken.Lost != nil {
			_, _ = fmt.Fprintln(s.e.Stderr, "rlm:", broken.Lost.Reason)
		}
		s.failed = true
		return nil
	}

	return err
}

// run runs a snippet.
func (s *shell) run(ctx context.Context, source string) error {
	if strings.TrimSpace(source) == "" {
		return nil
	}
	stdout, stderr := s.e.SnippetOutput()
	var result rlm.Result
	err := s.runInterruptibly(ctx, func(ctx context.Context) (err error) {
		result, err = s.session.RunJob(ctx, tiers.Job{
			Language: tiers.Python,
			Source:   source + "\n",
			Stdout:   stdout,
			Stderr:   stderr,
		})
		return err
	})

	if stdout.Err != nil {
		return cli.Broken(fmt.Errorf("cannot write the output: %w", stdout.Err))
	}
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		s.failed = true
		_, _ = fmt.Fprintln(s.e.Stderr, "rlm:", cli.Escape(err.Error()))
		return nil
	}

	s.last = result.Usage
	s.failed = s.failed && result.Status == "" ||
		code.ResultCode(result.Result) != cli.ExitOK && result.Status != ""
	return s.shown.Report(s.e.EndOutput(stdout, stderr), result)
}

// ask asks the model.
func (s *shell) ask(ctx context.Context, question string) error {
	s.failed = true
	if question = strings.TrimSpace(question); question == "" {
		_, _ = fmt.Fprintln(s.e.Stderr,
			"rlm: give a question after the ?, such as ? how many rows are there")
		return nil
	}
	if !wiring.HasModel(s.e) {
		_, _ = fmt.Fprintln(s.e.Stderr,
			"rlm: no model: restart with one, such as --model openai/gpt-5")
		return nil
	}

	var outcome rlm.Outcome
	err := s.runInterruptibly(ctx, func(ctx context.Context) (err error) {
		outcome, err = s.asks(ctx, question)
		return err
	})
	s.addCost(outcome.Spent)
	err = errors.Join(err, s.known.RememberRun(question, outcome))
	switch {
	case err != nil && ctx.Err() != nil:
		return err
	case err != nil:
		_, _ = fmt.Fprintln(s.e.Stderr, "rlm:", cli.Escape(err.Error()))
		if outcome.Answer != nil {
			return s.e.Answer(outcome.Text())
		}
	case outcome.Answer != nil:
		s.failed = false
		return s.e.Answer(outcome.Text())
	case outcome.Status != "":
		_, _ = fmt.Fprintf(s.e.Stderr, "rlm: %s: %s\n", outcome.Status, cli.Escape(outcome.Reason))
		if outcome.Partial != "" {
			_, _ = fmt.Fprintln(s.e.Stderr, cli.EscapeKeepingLines(outcome.Partial))
		}
	}

	return nil
}

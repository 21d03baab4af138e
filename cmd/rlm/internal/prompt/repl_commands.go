package prompt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/code"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/tiers"
)

const replHelp = `:ask QUESTION, ?QUESTION   ask the model, in a copy of the session; only the answer
                           comes back, as _answer
:vars                      list the variables
:context                   list the contexts
:home                      show the tier that holds the variables
:explain CODE              show which tier would run code, and why
:time                      show the time that the last snippet took
:cost                      show what the questions have cost
:save FILE                 write the variables to a file
:load FILE                 begin a new session with the variables of a file
:reset                     begin a new session without variables
:help                      show this text
:quit, exit                end the session (or Ctrl-D)
A block (if, for, def, ...) ends with an empty line.
`

// shellCommands are the commands that completion offers.
var shellCommands = []string{
	":ask ", ":vars", ":context", ":home", ":explain ", ":time", ":cost", ":save ", ":load ",
	":reset", ":help", ":quit",
}

// exitWords end a session, as at CPython's own prompt.
var exitWords = map[string]bool{"exit": true, "exit()": true, "quit": true, "quit()": true}

// runLine runs a command, a question or a snippet. An error ends the session.
func (s *shell) runLine(ctx context.Context, source string) (done bool, err error) {
	trimmed := strings.TrimSpace(source)
	if exitWords[trimmed] {
		return true, nil
	}
	if trimmed == "/help" || trimmed == "/?" { // as in rlm chat
		trimmed = ":help"
	}
	if question, ok := strings.CutPrefix(trimmed, "?"); ok {
		return false, s.ask(ctx, question)
	}
	if trimmed == "" || !strings.HasPrefix(trimmed, ":") {
		return false, s.run(ctx, source)
	}

	command, rest, _ := strings.Cut(trimmed, " ")
	rest = strings.TrimSpace(rest)
	switch command {
	case ":quit", ":q", ":exit":
		return true, nil
	case ":ask":
		return false, s.ask(ctx, rest)
	case ":save":
		s.tellFailure(s.save(ctx, rest))
		return false, nil
	case ":load":
		s.tellFailure(s.load(ctx, rest))
		return false, nil
	case ":reset":
		s.tellFailure(s.replace(ctx, nil))
		return false, nil
	}
	return false, s.show(ctx, command, rest)
}

// show runs a command that only prints.
func (s *shell) show(ctx context.Context, command, rest string) error {
	var err error
	switch command {
	case ":vars":
		return s.showTable(func(w io.Writer) {
			for _, v := range s.session.Variables() {
				_, _ = fmt.Fprintf(w, "%s\t%s\n", cli.Escape(v.Name), cli.Escape(v.Kind))
			}
		})
	case ":context":
		return s.showTable(s.listContexts)
	case ":home":
		plan, err := s.session.Explain(ctx, tiers.Job{Language: tiers.Python})
		if err != nil {
			return err
		}
		home := plan.Home
		if home == "" {
			home = "none yet"
		}
		_, err = fmt.Fprintln(s.e.Stdout, home)
		return err
	case ":explain":
		plan, err := s.session.Explain(ctx, tiers.Job{Source: rest})
		if err != nil {
			return err
		}
		return code.ShowPlan(s.e.Stdout, plan.Text(), nil)
	case ":time":
		round := func(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
		_, err = fmt.Fprintf(s.e.Stdout, "%v, of these %v computing and %v in %s\n",
			round(s.last.Wall), round(s.last.Active), round(s.last.HostWait),
			quantity.Plural(s.last.HostCalls, "host call", ""))
	case ":cost":
		_, err = fmt.Fprintln(s.e.Stdout, s.spent)
	case ":help":
		_, err = io.WriteString(s.e.Stdout, replHelp)
	default:
		s.failed = true
		_, _ = fmt.Fprintf(s.e.Stderr, "rlm: unknown command %s: :help lists the commands\n",
			cli.Escape(command))
	}
	return err
}

func (s *shell) showTable(write func(io.Writer)) error {
	w := tabwriter.NewWriter(s.e.Stdout, 0, 0, 2, ' ', 0)
	write(w)
	return w.Flush()
}

// listContexts lists the contexts under the names that snippets use.
func (s *shell) listContexts(w io.Writer) {
	if s.kept != nil { // including those of earlier commands
		for i := range s.kept.Kept.Contexts {
			_, _ = fmt.Fprintf(w, "context_%d\t%s\n", i, cli.Escape(s.kept.Kept.Contexts[i].String()))
		}
		return
	}
	for i := range s.flags.Contexts.List {
		given := &s.flags.Contexts.List[i]
		name, kind := "context", "text"
		if i > 0 {
			name = fmt.Sprintf("context_%d", i)
		}
		if given.Variable != "" {
			name += ", " + given.Variable
		}
		if info, err := os.Stat(given.Paths[0]); err == nil && info.IsDir() {
			kind = "directory"
		}
		if given.IsJSON {
			kind = "JSON"
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\n", name, kind, cli.Escape(given.Name()))
	}
}

// tellFailure prints the error of a command. The session continues.
func (s *shell) tellFailure(err error) {
	if err != nil {
		s.failed = true
		_, _ = fmt.Fprintln(s.e.Stderr, "rlm:", cli.Escape(err.Error()))
	}
}

// addCost adds up the cost of questions.
func (s *shell) addCost(spent ledger.Spending) {
	s.spent.Calls += spent.Calls
	s.spent.InputTokens += spent.InputTokens
	s.spent.OutputTokens += spent.OutputTokens
	s.spent.USD += spent.USD
	s.spent.Unpriced += spent.Unpriced
}

// save writes the variables to a file. An existing file is replaced as a whole.
func (s *shell) save(ctx context.Context, name string) error {
	if name == "" {
		return errors.New("cannot save the variables: give a file, such as :save notes.rlm")
	}
	err := cli.ReplaceFile(name, func(w io.Writer) error { return s.session.Snapshot(ctx, w) })
	if err != nil {
		return fmt.Errorf("cannot save the variables: %w", err)
	}
	return nil
}

// load replaces the session with one that has the variables from a file.
func (s *shell) load(ctx context.Context, name string) error {
	if name == "" {
		return errors.New("cannot load variables: give a file that :save has written")
	}
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("cannot load variables: %w", err)
	}
	defer file.Close()
	return s.replace(ctx, func(fresh *rlm.Session) error {
		report, err := fresh.Restore(ctx, file)
		if err != nil {
			return fmt.Errorf("cannot load variables from %s: %w", name, err)
		}
		wiring.NoteLosses(report, func(format string, args ...any) {
			_, _ = fmt.Fprintf(s.e.Stderr, "rlm: "+format+"\n", args...)
		})
		return nil
	})
}

// replace replaces this session with a fresh one, or keeps it if that fails. It copies the files
// below /out first.
func (s *shell) replace(ctx context.Context, prepare func(*rlm.Session) error) error {
	fresh, err := s.reopen(ctx)
	if err != nil {
		return err
	}
	if prepare != nil {
		if err := prepare(fresh); err != nil {
			return errors.Join(err, fresh.Close())
		}
	}

	old := s.session
	s.session, s.asks, s.last = fresh, fresh.Ask, tiers.Usage{}
	if s.kept != nil {
		s.kept.Session = fresh
	}
	return errors.Join(s.shown.Finish(ctx, old, nil), old.Close())
}

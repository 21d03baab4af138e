package prompt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/cmd/rlm/internal/loops"
)

const chatLong = `Ask a model one question after another, over inputs of any size.

Each line is a question, from the terminal or a pipe. All questions share one session:
the model's code finds the variables, the contexts and the messages of the earlier
questions. With --session NAME, the next chat or run continues the session.

/help lists the commands. Ctrl-C interrupts the question, not the session. Ctrl-D ends
the chat.`

const chatHelp = `A line is a question to the model. It can use the contexts and the earlier answers.
/context      list the contexts
/vars         list the variables of the session
/cost         show what the questions have cost
/help         show this text
/quit, exit   end the chat (or Ctrl-D)
`

// runCommand runs a command of the chat. A line that only begins with a slash is a question.
func (s *shell) runCommand(ctx context.Context, line string) (isCommand, done bool, err error) {
	switch word := strings.ToLower(strings.TrimSpace(line)); {
	case word == "/help", word == "/?", word == ":help", word == "help":
		_, err = io.WriteString(s.e.Stdout, chatHelp)
	case word == "/quit", word == "/exit", word == "/bye", word == ":quit", exitWords[word]:
		done = true
	case word == "/context", word == "/vars", word == "/cost":
		err = s.show(ctx, ":"+word[1:], "")
	case strings.HasPrefix(word, "/") && !strings.ContainsAny(word[1:], "/ "):
		s.failed = true
		_, err = fmt.Fprintf(s.e.Stderr, "rlm: unknown command %s: /help lists the commands\n", cli.Escape(word))
	default:
		return false, false, nil
	}
	return true, done, err
}

// NewChat makes the command rlm chat.
func NewChat(e *cli.Env) *cobra.Command {
	f := loops.RunFlags{Talks: true}
	var history string
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Ask a model one question after another, in one session",
		Long:  chatLong,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unexpected argument %q: chat reads one question per line from stdin; "+
					"rlm ask asks a single question", args[0])
			}
			return nil
		},
		Example: `  rlm chat --context server.log --model openai/gpt-5
  rlm chat --context notes/ --session notes --model openai/gpt-5 < questions.txt`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return openChat(cmd.Context(), &f, e, history)
		},
	}

	flags := cmd.Flags()
	f.Contexts.Add(flags, "`file` or directory to work on; repeatable")
	f.AddSession(flags)
	f.Tools.Add(flags, e)
	flags.BoolVar(&f.Quiet, "quiet", false, "print only errors on stderr")
	flags.StringVar(&history, "history", "",
		"`file` that keeps the typed questions for the next chat, or none "+
			"(default: a file in the cache directory)")
	config.AddFlags(flags,
		config.In(config.Routing, config.Limits, config.Models, config.Run, config.Graphs))
	return cmd
}

// openChat opens the session, and reads questions until the input ends.
func openChat(ctx context.Context, f *loops.RunFlags, e *cli.Env, history string) (err error) {
	if err := checkLines(f, e); err != nil {
		return err
	}
	task, err := f.NewTask(e, "(asked later)")
	if err != nil {
		return cli.Usage(err)
	}
	loop, err := f.Start(ctx, e, &task)
	if err != nil {
		return err
	}
	defer loop.Close()
	task.Config.Trace = ""
	talk, err := f.OpenTalk(ctx, e, loop.Engine, &task, loop.View.Note)
	if err != nil {
		return err
	}

	loop.View.Close() // a live tree would disturb the user's input line
	s := &shell{
		e: e, session: talk.Session, asks: talk.Ask, view: loop.View, flags: f,
		known: loop.Tools.Known,
	}
	s.in = newEditor(e, historyFile(history, "chat-history"), nil)
	defer func() {
		err = cli.JoinExit(errors.Join(err, s.in.Close(), talk.Close()), s.known.Keep(ctx))
	}()
	return s.chat(ctx)
}

// chat reads questions until the input ends. From a pipe, the exit code reports whether the last
// question was answered; on a terminal, the user has seen the result.
func (s *shell) chat(ctx context.Context) error {
	if s.e.Terminal && !s.flags.Quiet {
		_, _ = fmt.Fprintln(s.e.Stderr, "rlm "+s.e.Version+": one question per line, "+
			"/help lists the commands, Ctrl-D ends the chat.")
	}

	for {
		question, err := s.in.Line("? ", "")
		switch {
		case errors.Is(err, errAborted):
			continue
		case errors.Is(err, io.EOF):
			if s.failed && !s.e.Terminal {
				return cli.Exit(cli.ExitNoAnswer, nil)
			}
			return nil
		case err != nil:
			return cli.Broken(fmt.Errorf("cannot read a line: %w", err))
		}

		if strings.TrimSpace(question) == "" {
			continue
		}
		s.in.Remember(question)
		if isCommand, done, err := s.runCommand(ctx, question); done || err != nil {
			return err
		} else if isCommand {
			continue
		}
		if err := s.ask(ctx, question); err != nil {
			return err
		}
	}
}

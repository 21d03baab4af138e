package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
)

const chatLong = `Ask a model one question after another, over inputs of any size.

Each line is a question, from the terminal or a pipe. All questions share one session:
the model's code finds the variables, the contexts and the messages of the earlier
questions. With --session NAME, the next chat or run continues the session.

Ctrl-C interrupts the question, not the session. Ctrl-D ends the chat.`

// newChat makes the command rlm chat.
func newChat(e *env) *cobra.Command {
	f := runFlags{talks: true}
	var history string
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Ask a model one question after another, in one session",
		Long:  chatLong,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("unexpected argument %q: chat reads one question per line from stdin; "+
					"rlm run asks a single question", args[0])
			}
			return nil
		},
		Example: `  rlm chat --context server.log --model openai/gpt-5
  rlm chat --context notes/ --session notes --model openai/gpt-5 < questions.txt`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.chat(cmd.Context(), e, history)
		},
	}

	flags := cmd.Flags()
	f.contexts.add(flags, "`file` or directory to work on; repeatable")
	f.addSession(flags)
	f.tools.add(flags, e)
	flags.BoolVar(&f.quiet, "quiet", false, "print only errors on stderr")
	flags.StringVar(&history, "history", "",
		"`file` that keeps the typed questions for the next chat, or none "+
			"(default: a file in the cache directory)")
	config.AddFlags(flags,
		config.In(config.Routing, config.Limits, config.Models, config.Run, config.Graphs))
	return cmd
}

// chat opens the session, and reads questions until the input ends.
func (f *runFlags) chat(ctx context.Context, e *env, history string) (err error) {
	if err := f.checkLines(e); err != nil {
		return err
	}
	task, err := f.newTask(e, "(asked later)")
	if err != nil {
		return Usage(err)
	}
	loop, err := f.start(ctx, e, &task)
	if err != nil {
		return err
	}
	defer loop.close()
	task.Config.Trace = ""
	talk, err := f.openTalk(ctx, e, loop.engine, &task, loop.view.note)
	if err != nil {
		return err
	}

	loop.view.close() // a live tree would disturb the lines that the user types
	s := &shell{
		e: e, session: talk.session, asks: talk.ask, view: loop.view, flags: f,
		known: loop.tools.known,
	}
	s.in = newEditor(e, historyFile(history, "chat-history"), nil)
	defer func() {
		err = joinExit(errors.Join(err, s.in.Close(), talk.close()), s.known.keep(ctx))
	}()
	return s.chat(ctx)
}

// chat reads questions until the input ends. From a pipe, the exit code tells whether the last
// question has an answer; on a terminal, the user has seen it.
func (s *shell) chat(ctx context.Context) error {
	if s.e.terminal && !s.flags.quiet {
		_, _ = fmt.Fprintln(s.e.stderr, "rlm "+s.e.version+": one question per line, Ctrl-D ends the chat.")
	}

	for {
		question, err := s.in.Line("? ", "")
		switch {
		case errors.Is(err, errAborted):
			continue
		case errors.Is(err, io.EOF):
			if s.failed && !s.e.terminal {
				return Exit(exitNoAnswer, nil)
			}
			return nil
		case err != nil:
			return Broken(fmt.Errorf("cannot read a line: %w", err))
		}

		if strings.TrimSpace(question) == "" {
			continue
		}
		s.in.Remember(question)
		if err := s.ask(ctx, question); err != nil {
			return err
		}
	}
}

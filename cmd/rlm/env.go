package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/mattn/go-isatty"
	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
)

// env is the environment of a sub-command.
type env struct {
	life           context.Context //nolint:containedctx // of the command: its interruption ends opens of pipes
	stdin          io.Reader
	terminal       bool     // stdin is a terminal
	input          *os.File // stdin as a file, nil if it is none
	stdout, stderr io.Writer
	raw            bool // control sequences may reach a terminal
	log            *slog.Logger
	settings       *config.Loaded
	interrupts     *interrupts
	pause          func() (resume func()) // of the live view, nil for none
	args           []string               // of the command line
	inject         []string               // headers for hosts, of a flag
	version        string                 // of the program
	// functions are host functions for snippets, besides those of the protocol. Only tests set
	// them.
	functions []rlm.Function
}

// addRaw adds the flag --raw.
func (e *env) addRaw(flags *pflag.FlagSet) {
	flags.BoolVar(&e.raw, "raw", false,
		"let a snippet's control sequences, such as colours, reach the terminal")
}

// endWithin ends the process if the command takes longer than a grace to end after a signal.
func (e *env) endWithin(grace time.Duration) {
	e.interrupts.endWithin(grace, func() {
		_, _ = fmt.Fprintf(e.stderr, "rlm: killed, because a request did not end within %s of the signal\n", grace)
		os.Exit(exitBroken)
	})
}

// noteUnless is note for a command with a flag --quiet.
func (e *env) noteUnless(quiet bool) func(format string, args ...any) {
	return func(format string, args ...any) {
		if !quiet {
			_, _ = fmt.Fprintf(e.stderr, "rlm: %s\n", escape(fmt.Sprintf(format, args...)))
		}
	}
}

// isTerminal reports whether a reader or a writer is a terminal.
func isTerminal(w any) bool {
	if l, ok := w.(*lineStarter); ok {
		w = l.w
	}
	f, ok := w.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

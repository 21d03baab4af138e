package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
)

// Env is the environment of a sub-command.
type Env struct {
	Life           context.Context //nolint:containedctx // the command's; its end interrupts opens of pipes
	Stdin          io.Reader
	Terminal       bool     // stdin is a terminal
	Input          *os.File // stdin if it is a file, else nil
	Stdout, Stderr io.Writer
	noted          bool // stdin has unread data, and a note says so
	raw            bool // control sequences may reach a terminal
	Log            *slog.Logger
	Settings       *config.Loaded
	Interrupts     *Interrupts
	Pause          func() (resume func()) // pauses the live view; nil without a live view
	Args           []string               // from the command line
	Inject         []string               // headers for hosts, from a flag
	Version        string                 // the program's version
	// Functions are additional host functions for snippets. Only tests set them.
	Functions []rlm.Function
}

// AddRaw adds the flag --raw.
func (e *Env) AddRaw(flags *pflag.FlagSet) {
	flags.BoolVar(&e.raw, "raw", false,
		"let a snippet's control sequences, such as colours, reach the terminal")
}

// EndWithin ends the process if the command runs longer than grace after a signal.
func (e *Env) EndWithin(grace time.Duration) {
	e.Interrupts.endWithin(grace, func() {
		_, _ = fmt.Fprintf(e.Stderr, "rlm: killed, because a request did not end within %s of the signal\n", grace)
		os.Exit(exitBroken)
	})
}

// NoteUnless returns a function that writes notes to stderr, or nothing if quiet is set.
func (e *Env) NoteUnless(quiet bool) func(format string, args ...any) {
	return func(format string, args ...any) {
		if !quiet {
			_, _ = fmt.Fprintf(e.Stderr, "rlm: %s\n", Escape(fmt.Sprintf(format, args...)))
		}
	}
}

// IsTerminal reports whether a reader or a writer is a terminal.
func IsTerminal(w any) bool {
	if l, ok := w.(*lineStarter); ok {
		w = l.w
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

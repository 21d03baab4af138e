package prompt

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/peterh/liner"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
)

// errAborted reports that Ctrl-C was pressed.
var errAborted = errors.New("interrupted")

// editor reads lines.
type editor interface {
	// Line returns a line without its line end, io.EOF at the end of the input, or errAborted. A
	// terminal shows the indent as if the user had typed it. A recalled block has several lines.
	Line(prompt, indent string) (string, error)
	// Remember adds a block of lines to the history as a single entry.
	Remember(block string)
	Close() error
}

// newEditor returns a line editor if stdin and stdout are a terminal, and a plain reader
// otherwise. complete receives a line up to the cursor, and returns its beginning and the possible
// continuations.
func newEditor(e *cli.Env, history string, complete func(string) (string, []string)) editor {
	if !e.Terminal || !cli.IsTerminal(e.Stdout) {
		return &pipeEditor{bufio.NewReaderSize(e.Stdin, 64<<10)}
	}
	t := &lineEditor{
		state:      liner.NewLiner(),
		history:    history,
		out:        e.Stdout,
		interrupts: e.Interrupts,
	}

	t.state.SetCtrlCAborts(true)
	t.state.SetTabCompletionStyle(liner.TabPrints)
	if complete != nil {
		t.state.SetWordCompleter(func(line string, at int) (string, []string, string) {
			head, words := complete(string([]rune(line)[:at]))
			return head, words, string([]rune(line)[at:])
		})
	}
	if t.history == "" {
		return t
	}

	if file, err := os.Open(t.history); err == nil {
		_, err = t.state.ReadHistory(io.LimitReader(file, maxTyped))
		if err = errors.Join(err, file.Close()); err != nil {
			e.Log.Warn("cannot read the history", "error", err)
		}
	}

	return t
}

// historyFile returns the history file, by default the named file in the cache directory. It
// returns an empty string if there is no history.
func historyFile(flag, name string) string {
	if flag == "none" {
		return ""
	}
	if flag != "" {
		return flag
	}

	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "rlm", name)
}

// pipeEditor reads lines from a pipe or a file.
type pipeEditor struct{ in *bufio.Reader }

func (p *pipeEditor) Line(string, string) (string, error) {
	var line []byte
	for {
		piece, err := p.in.ReadSlice('\n')
		if line = append(line, piece...); len(line) > maxTyped {
			return "", fmt.Errorf("a line is longer than %d bytes", maxTyped)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (!errors.Is(err, io.EOF) || len(line) == 0):
			return "", err
		}

		for len(line) > 0 && (line[len(line)-1] == '\n' || line[len(line)-1] == '\r') {
			line = line[:len(line)-1]
		}
		return string(line), nil
	}
}

func (p *pipeEditor) Remember(string) {}

func (p *pipeEditor) Close() error { return nil }

// FastestTyped is less time than a person needs to type a line. Pasted lines arrive faster.
const FastestTyped = 50 * time.Millisecond

// lineEditor is a terminal with history and completion.
type lineEditor struct {
	state      *liner.State
	history    string
	out        io.Writer
	interrupts *cli.Interrupts
}

func (t *lineEditor) Line(prompt, indent string) (string, error) {
	// If the terminal is too narrow for editing, or of unknown size, Ctrl-C arrives as a signal.
	// The system has already discarded the line.
	defer t.interrupts.Take(func() { _, _ = fmt.Fprint(t.out, "\n"+prompt) })()
	began := time.Now()
	line, err := t.state.PromptWithSuggestion(prompt, indent, len(indent))
	if time.Since(began) < FastestTyped {
		line = strings.TrimPrefix(line, indent) // a pasted line has its own indent
	}
	if errors.Is(err, io.EOF) {
		_, _ = fmt.Fprintln(t.out) // the next output begins on a new line
	}
	if errors.Is(err, liner.ErrPromptAborted) {
		return "", errAborted
	}
	return strings.ReplaceAll(line, lineEnd, "\n"), err
}

// lineEnd stands for a line end in a block that is edited as one line.
const lineEnd = "\u2424"

func (t *lineEditor) Remember(block string) {
	if block = strings.TrimRight(block, " \n"); block != "" {
		t.state.AppendHistory(strings.ReplaceAll(block, "\n", lineEnd))
	}
}

// Close writes the history into a file that only its owner can read, and restores the terminal.
func (t *lineEditor) Close() error {
	var errs []error
	if t.history != "" {
		if err := t.save(); err != nil {
			errs = append(errs, fmt.Errorf("cannot write the history: %w", err))
		}
	}
	return errors.Join(append(errs, t.state.Close())...)
}

func (t *lineEditor) save() error {
	if err := os.MkdirAll(filepath.Dir(t.history), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(t.history, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}

	_, err = t.state.WriteHistory(file)
	return errors.Join(err, file.Close())
}

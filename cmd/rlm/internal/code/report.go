package code

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/internal/plan/results"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/tiers"
)

// Shown prints the results of snippets.
type Shown struct {
	e       *cli.Env
	flags   *ExecFlags
	gallery *Gallery
	last    *results.Result // with --json, not printed yet, since files may be added
	listed  map[string]bool // the files that --json has named
	// enforced is the last enforcement of limits that --json printed.
	enforced []tiers.Enforcement
}

// NewShown returns a printer of results, configured by the flags.
func NewShown(e *cli.Env, flags *ExecFlags) *Shown {
	return &Shown{e: e, flags: flags, gallery: NewGallery(e, flags.Files.Out, flags.Note(e))}
}

// Finish ends the output. It collects the files of the session. ended is the error of the session,
// or nil.
func (s *Shown) Finish(ctx context.Context, session *rlm.Session, ended error) error {
	ended = s.flags.Files.Collect(ctx, session, s.flags.Note(s.e), ended)
	if s.last != nil && s.flags.Files.Out != "" {
		files, err := results.ListFolder(s.flags.Files.Out, MaxInline, s.listed)
		if err != nil {
			return errors.Join(ended, cli.Broken(err))
		}
		s.last.Files = append(s.last.Files, files...)
	}
	return errors.Join(ended, s.printLast())
}

// printLast prints the object for the last snippet.
func (s *Shown) printLast() error {
	if s.last == nil {
		return nil
	}
	last := s.last
	s.last = nil
	if err := cli.PrintLine(s.e.Stdout, last); err != nil {
		return cli.Broken(err)
	}
	return nil
}

// printJSON stores the result of a snippet, and prints the previous result.
func (s *Shown) printJSON(r rlm.Result) error {
	err := s.printLast()
	s.last = results.Describe(r)
	s.last.OmitKnown(&s.enforced)
	if s.listed == nil {
		s.listed = map[string]bool{}
	}
	for _, one := range r.Artefacts {
		s.listed[one.Name] = true
		s.last.Files = append(s.last.Files, results.DescribeFile(one.Name, one.Type, one.Data, MaxInline))
	}
	if s.flags.Files.Out == "" { // nothing will be added
		err = errors.Join(err, s.printLast())
	}
	return err
}

// Report prints the result of a snippet, except its output, which has already been written. e
// provides the writer for notes after the output.
func (s *Shown) Report(e *cli.Env, r rlm.Result) error {
	f := s.flags
	note := f.Note(e)
	if r.Moved != nil {
		note("the session moved from tier %s to %s, with %s", r.Moved.From, r.Moved.To,
			quantity.Plural(r.Moved.Report.Moved, "variable", ""))
		for _, left := range r.Moved.Report.Left {
			note("left behind: %s (%s): %s", left.Name, left.Type, left.Reason)
		}
	}

	if err := s.gallery.take("", r.Artefacts, f.json); err != nil {
		return err
	}
	if f.json {
		return s.printJSON(r)
	}
	if err := printAnswer(e, r); err != nil {
		return cli.Broken(err)
	}

	if r.Exception != nil && r.Exception.Traceback != "" {
		_, _ = io.WriteString(e.Stderr, e.Harmless(e.Stderr, r.Exception.Traceback))
	}
	exited := r.Status == tiers.StatusExited && r.Exception != nil
	if exited && r.Exception.ExitCode != 0 && r.Exception.Traceback == "" {
		note("the snippet exited with status %d", r.Exception.ExitCode)
	}

	if r.Limit != "" {
		_, _ = fmt.Fprintf(e.Stderr, "rlm: limit: %s%s\n", r.Limit, limitHint(r.Result, e.Settings))
	}
	for _, d := range r.Denied {
		note("%s is refused: %s", d.Target, d.Reason)
	}

	if r.Lost != nil {
		note("%s", r.Lost.Reason)
	}
	return nil
}

func limitHint(r tiers.Result, c *config.Loaded) string {
	switch r.Limit {
	case tiers.LimitWall, tiers.LimitActive:
		return fmt.Sprintf(" (the snippet took longer than %v; raise --timeout)", c.Timeout)
	case tiers.LimitMemory:
		return fmt.Sprintf(" (the snippet needed more than %s; raise --memory)", c.Text("memory"))
	case tiers.LimitOutput:
		return fmt.Sprintf(" (%s bytes more were written and dropped; raise --max-output)",
			quantity.Comma(r.Dropped))
	case tiers.LimitFuel:
		return fmt.Sprintf(" (the snippet did more work than %d; raise --fuel)", c.Fuel)
	case tiers.LimitHostCalls:
	}

	return ""
}

// printAnswer prints the value of FINAL. It writes an answer of bytes to a file or a pipe
// unchanged.
func printAnswer(e *cli.Env, r rlm.Result) error {
	if r.Final == nil {
		return nil
	}
	if n := len(r.Artefacts); n > 0 && !cli.IsTerminal(e.Stdout) {
		if last := r.Artefacts[n-1]; isAnswer(r.Final.Value, last) {
			_, err := e.Stdout.Write(last.Data)
			return err
		}
	}
	return printFinal(e, r.Final.Value)
}

// isAnswer reports whether a value describes an artefact that was made from an answer.
func isAnswer(value tiers.Value, a tiers.Artefact) bool {
	var named struct{ File string }
	return strings.HasPrefix(a.Name, "answer-") && json.Unmarshal(value, &named) == nil &&
		named.File == a.Name
}

// printFinal prints a str unchanged, as print does, and any other value as JSON.
func printFinal(e *cli.Env, value tiers.Value) error {
	text := string(results.ValidJSON(value))
	if bytes.HasPrefix(value, []byte{'"'}) {
		var err error
		if text, err = textOf(value); err != nil {
			return fmt.Errorf("cannot decode the final value: %w", err)
		}
	}

	_, err := fmt.Fprintln(e.Stdout, e.Harmless(e.Stdout, text))
	return err
}

// textOf decodes a JSON string, and keeps bytes that are not valid UTF-8. Such a byte is never part
// of an escape, so the parts between such bytes can be decoded one by one.
func textOf(value tiers.Value) (string, error) {
	var b strings.Builder
	for rest := bytes.TrimSuffix(value[1:], []byte{'"'}); len(rest) > 0; {
		n := 0
		for n < len(rest) {
			r, size := utf8.DecodeRune(rest[n:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			n += size
		}

		var part string
		quoted := slices.Concat([]byte{'"'}, rest[:n], []byte{'"'})
		if err := json.Unmarshal(quoted, &part); err != nil {
			return "", err
		}

		b.WriteString(part)
		if rest = rest[n:]; len(rest) > 0 {
			b.WriteByte(rest[0])
			rest = rest[1:]
		}
	}

	return b.String(), nil
}

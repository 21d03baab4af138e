package main

import (
	"io"
	"os"
	"slices"
)

// outputWriter writes the output of a snippet. It keeps the first error, for callers that
// check it later.
type outputWriter struct {
	w       io.Writer
	escapes bool   // w is a terminal, which must get no control sequence
	rest    []byte // begins a character or a line end
	err     error
	open    bool // the last line is unfinished
}

// snippetOutput returns the writers for a snippet's output.
func (e *env) snippetOutput() (stdout, stderr *outputWriter) {
	return &outputWriter{w: e.stdout, escapes: e.isEscaped(e.stdout)},
		&outputWriter{w: e.stderr, escapes: e.isEscaped(e.stderr)}
}

// Write writes b, unless an earlier Write failed.
func (o *outputWriter) Write(b []byte) (int, error) {
	if o.err != nil || len(b) == 0 {
		return 0, o.err
	}
	text := b
	if o.escapes {
		text, o.rest = cutIncomplete(slices.Concat(o.rest, b))
		text = []byte(escapeKeepingLines(string(text)))
	}

	n, err := o.w.Write(text)
	if o.err = err; err != nil {
		return min(n, len(b)), err
	}
	o.open = b[len(b)-1] != '\n'
	return len(b), nil
}

// flush writes what waits for the rest of a character.
func (o *outputWriter) flush() {
	if len(o.rest) > 0 && o.err == nil {
		_, o.err = io.WriteString(o.w, escapeKeepingLines(string(o.rest)))
		o.rest = nil
	}
}

// endOutput returns the environment for notes after a snippet's output. If the output ended
// within a line that the user sees, the first note begins a new line.
func (e *env) endOutput(stdout, stderr *outputWriter) *env {
	stdout.flush()
	stderr.flush()
	if stderr.open || stdout.open && sameFile(e.stdout, e.stderr) {
		later := *e
		later.stderr = &lineStarter{w: e.stderr}
		return &later
	}
	return e
}

// lineStarter writes a line end before its first output.
type lineStarter struct {
	w    io.Writer
	done bool
}

// Write writes b, the first time after a line end.
func (n *lineStarter) Write(b []byte) (int, error) {
	if !n.done && len(b) > 0 {
		n.done = true
		if _, err := io.WriteString(n.w, "\n"); err != nil {
			return 0, err
		}
	}
	return n.w.Write(b)
}

// sameFile reports whether two writers are one terminal, or one file.
func sameFile(a, b io.Writer) bool {
	var infos [2]os.FileInfo
	for i, w := range []io.Writer{a, b} {
		f, ok := w.(*os.File)
		if !ok {
			return false
		}
		var err error
		if infos[i], err = f.Stat(); err != nil {
			return false
		}
	}

	return os.SameFile(infos[0], infos[1])
}

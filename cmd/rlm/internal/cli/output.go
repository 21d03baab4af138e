package cli

import (
	"io"
	"os"
	"slices"
)

// OutputWriter writes the output of a snippet. It keeps the first error, which callers check
// later.
type OutputWriter struct {
	w       io.Writer
	escapes bool   // w is a terminal, which must receive no control sequences
	rest    []byte // an incomplete character or line end
	Err     error
	open    bool // the last line is unfinished
}

// SnippetOutput returns the writers for a snippet's output.
func (e *Env) SnippetOutput() (stdout, stderr *OutputWriter) {
	return &OutputWriter{w: e.Stdout, escapes: e.isEscaped(e.Stdout)},
		&OutputWriter{w: e.Stderr, escapes: e.isEscaped(e.Stderr)}
}

// Write writes b, unless an earlier Write failed.
func (o *OutputWriter) Write(b []byte) (int, error) {
	if o.Err != nil || len(b) == 0 {
		return 0, o.Err
	}
	text := b
	if o.escapes {
		text, o.rest = cutIncomplete(slices.Concat(o.rest, b))
		text = []byte(EscapeKeepingLines(string(text)))
	}

	n, err := o.w.Write(text)
	if o.Err = err; err != nil {
		return min(n, len(b)), err
	}
	o.open = b[len(b)-1] != '\n'
	return len(b), nil
}

// Flush writes the bytes of an incomplete character.
func (o *OutputWriter) Flush() {
	if len(o.rest) > 0 && o.Err == nil {
		_, o.Err = io.WriteString(o.w, EscapeKeepingLines(string(o.rest)))
		o.rest = nil
	}
}

// EndOutput returns the environment for notes after a snippet's output. If the output ended in the
// middle of a visible line, the first note begins a new line.
func (e *Env) EndOutput(stdout, stderr *OutputWriter) *Env {
	stdout.Flush()
	stderr.Flush()

	if stderr.open || stdout.open && sameFile(e.Stdout, e.Stderr) {
		later := *e
		later.Stderr = &lineStarter{w: e.Stderr}
		return &later
	}
	return e
}

// lineStarter writes a line end before its first output.
type lineStarter struct {
	w    io.Writer
	done bool
}

// Write writes b, preceded by a line end on the first call.
func (n *lineStarter) Write(b []byte) (int, error) {
	if !n.done && len(b) > 0 {
		n.done = true
		if _, err := io.WriteString(n.w, "\n"); err != nil {
			return 0, err
		}
	}
	return n.w.Write(b)
}

// sameFile reports whether two writers are the same terminal or file.
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

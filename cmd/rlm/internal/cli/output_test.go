package cli

import (
	"bytes"
	"io"
	"testing"
)

// TestOutputIsEscapedPieceByPiece writes a string in pieces of every size.
func TestOutputIsEscapedPieceByPiece(t *testing.T) {
	const text = "a\x1bé漢\U0001f600\r\n\rb\xff\xc3"
	const want = `a\x1bé漢😀` + "\n" + `\x0db\xff\xc3`
	for size := 1; size <= len(text); size++ {
		var got bytes.Buffer
		w := &OutputWriter{w: &got, escapes: true}
		for from := 0; from < len(text); from += size {
			if _, err := io.WriteString(w, text[from:min(from+size, len(text))]); err != nil {
				t.Fatal(err)
			}
		}
		w.Flush()
		if got.String() != want {
			t.Errorf("in pieces of %d bytes: %q, want %q", size, &got, want)
		}
	}
}

// TestANoteIsOneLine uses a variable whose name would start another note.
func TestANoteIsOneLine(t *testing.T) {
	var stderr bytes.Buffer
	e := &Env{Stderr: &stderr}
	e.NoteUnless(false)("left behind: %s", "x\nrlm: moved to\x1b[2J docker")
	const want = `rlm: left behind: x\nrlm: moved to\x1b[2J docker` + "\n"
	if got := stderr.String(); got != want {
		t.Errorf("the note is %q, want %q", got, want)
	}
}

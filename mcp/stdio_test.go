package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/rlmhq/rlm/mcp/tools"
)

type nopOut struct{ io.Writer }

func (nopOut) Close() error { return nil }

// newStdio returns a transport that reads an input, and the buffer for its output.
func newStdio(in io.Reader) (*stdio, *bytes.Buffer) {
	var out bytes.Buffer
	closer := io.NopCloser(in)
	return &stdio{
		lines: bufio.NewReader(tools.BoundLines(closer)), in: closer, out: nopOut{&out},
		waiting: map[jsonrpc.ID]bool{}, asked: map[jsonrpc.ID]bool{}, changed: make(chan struct{}, 1),
	}, &out
}

// TestTheEndWaitsForAnswersWithinBounds checks that the server waits up to a minute for answers,
// except for those of requests that wait for the client.
func TestTheEndWaitsForAnswersWithinBounds(t *testing.T) {
	first, err := jsonrpc.MakeID(1.0)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		happens func(*stdio)
		waited  time.Duration
		left    int
	}{
		"an answer": {func(s *stdio) {
			time.Sleep(time.Second)
			s.note(func() { delete(s.waiting, first) })
		}, time.Second, 0},
		"a question to the client": {func(s *stdio) {
			time.Sleep(time.Second)
			s.note(func() { s.asked[first] = true })
		}, time.Second, 1},
		"nothing": {func(*stdio) {}, lastAnswers, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := newStdio(strings.NewReader(""))
				s.waiting[first] = true
				begun := time.Now()
				go c.happens(s)

				s.awaitAnswers(context.Background())
				if waited := time.Since(begun); waited != c.waited || s.unanswered() != c.left {
					t.Errorf("after %v, %d are left", waited, s.unanswered())
				}
			})
		})
	}
}

// FuzzLines checks that the library receives only lines with one JSON value, and that every other
// line gets an error.
func FuzzLines(f *testing.F) {
	f.Add("{\"a\": 1}\nnot json\r\n\n[1] 2\n{\"last\": null}")
	f.Fuzz(func(t *testing.T, text string) {
		s, out := newStdio(strings.NewReader(text))
		passed, err := io.ReadAll(stdioReader{s})
		if err != nil {
			return // the input exceeds a bound
		}

		lines := strings.Split(string(passed), "\n")
		for _, line := range lines[:len(lines)-1] {
			if !json.Valid([]byte(line)) {
				t.Errorf("%q was passed on", line)
			}
		}
		given := 0
		for line := range strings.SplitSeq(text, "\n") {
			if len(bytes.TrimSpace([]byte(line))) > 0 {
				given++
			}
		}
		if refused := strings.Count(out.String(), "-32700"); refused+len(lines)-1 != given {
			t.Errorf("of %d lines, %d were passed on and %d refused", given, len(lines)-1, refused)
		}
	})
}

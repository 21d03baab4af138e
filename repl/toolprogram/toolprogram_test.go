package toolprogram

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl"
)

// FuzzLines checks that, whatever a program writes, its tools are usable or rejected, and that an
// answer goes only to its own call.
func FuzzLines(f *testing.F) {
	for _, line := range []string{
		`{"tools":[{"name":"a","description":"b","parameters":{"type":"object"}}]}`,
		`{"tools":[{"name":"a"},{"name":"a"}]}`, `{"tools":[{"name":"FINAL"}]}`,
		`{"tools":[{"name":"a","parameters":{"type":"object","properties":{"b\nc":{}}}}]}`,
		`{"id":1,"result":{"x":[]}}`, `{"id":1,"error":"e"}`, `{"id":2}`, `{"id":1e9}`, `[]`, ``,
	} {
		f.Add([]byte(line))
	}

	f.Fuzz(func(t *testing.T, line []byte) {
		p := &Program{waiting: map[int64]chan answer{}}
		if err := p.declare(line); err == nil {
			if _, err := repl.NewTools(p.Tools()...); err != nil {
				t.Errorf("accepted tools are refused later: %v", err)
			}
		}

		_, waiting, err := p.enlist()
		if err != nil {
			t.Fatal(err)
		}
		if err := p.receive(line); err == nil && len(waiting) == 1 {
			if a := <-waiting; a.ID != 1 {
				t.Errorf("call 1 got the answer to %d", a.ID)
			}
		}
	})
}

// TestStartNamesWhatIsMissing checks that an unusable program results in an immediate error, and
// that the wait for the first line ends with the caller's context.
func TestStartNamesWhatIsMissing(t *testing.T) {
	for command, want := range map[string]string{
		"  ": "is empty", "no-such-program-here": "cannot start",
	} {
		t.Run(command, func(t *testing.T) {
			if _, err := Start(t.Context(), command); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q", command, err, want)
			}
		})
	}

	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stopped")
	cancel(stop)
	if _, err := Start(ctx, "cat"); !errors.Is(err, stop) {
		t.Errorf("a cancelled start: %v", err)
	}
}

package tiersuite

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/rlmhq/rlm/tiers"
)

const (
	stylesFile = "testdata/parallel.py"
	// together is the number of calls that must be under way before the host answers one. With so
	// many concurrent calls, 64 calls of 50 ms take 0.2 s.
	together = 16
)

// Style is a style of parallel programs: a snippet that makes 64 host calls.
type Style struct{ Name, Source string }

// ListStyles returns the styles, and the snippet that prepares a session for them.
func ListStyles(t *testing.T) (prepare string, styles []Style) {
	t.Helper()
	prepare, text, _ := strings.Cut(readFixture(t, stylesFile), kindMark)
	for _, part := range strings.Split(text, "\n"+kindMark) {
		name, source, _ := strings.Cut(part, "\n")
		styles = append(styles, Style{name, source})
	}
	return prepare, styles
}

// Answering is a host that answers llm_query(p) with "re: " + p when the function returns. The
// function's parameter is the number of the snippet.
type Answering func(ctx context.Context, snippet int) error

// Config returns the configuration of a session with this host.
func (a Answering) Config() tiers.Config {
	return tiers.Config{Host: a, Functions: []tiers.Function{{Name: "llm_query"}}}
}

// Call waits until the function returns, and answers.
func (a Answering) Call(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	prompt, err := textArgument(call)
	if err != nil {
		return nil, err
	}
	if err := a(ctx, call.Snippet); err != nil {
		return nil, err
	}
	return json.Marshal("re: " + prompt)
}

// CheckAnswers is Python code to append to a style. It fails unless all answers are present.
const CheckAnswers = "\nassert sorted(answers) == sorted('re: ' + p for p in prompts), answers\n"

// testParallel runs each style with a host that gives no answer until several calls have arrived.
func (s *suite) testParallel(t *testing.T) {
	prepare, styles := ListStyles(t)
	var meetings sync.Map // number of the snippet -> *meeting
	meet := Answering(func(ctx context.Context, snippet int) error {
		v, _ := meetings.LoadOrStore(snippet, &meeting{full: make(chan struct{})})
		return v.(*meeting).wait(ctx, together)
	})

	box := s.open(t, meet.Config())
	box.mustRun(t, prepare)
	for _, style := range styles {
		t.Run(style.Name, func(t *testing.T) {
			box.mustRun(t, style.Source+CheckAnswers)
			box.checkAlive(t)
		})
	}
}

package answers

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestAnswersWithTheTextOfAFailureAreFound(t *testing.T) {
	var a Answers
	if text := a.FindFailure([]byte(`"Error: cannot reach the server"`)); text != "" {
		t.Errorf("found %q without a failure", text)
	}
	a.failures.note(t.Context(), &Query{Prompt: []byte(`"a"`)}, errors.New("cannot reach the server of the model gpt"))
	a.failures.note(t.Context(), &Query{Prompt: []byte(`"b"`)}, errors.New("broke"))
	for answer, want := range map[string]bool{
		`"Error: cannot reach the server of the model gpt"`:                        true,
		`"it said: CANNOT REACH THE SERVER OF THE MODEL GPT."`:                     true,
		`{"a": ["red", {"b": "cannot reach the server of the model gpt, sorry"}]}`: true,
		`{"cannot reach the server of the model gpt": 1}`:                          true,
		`["Error: broke"]`:          true,
		`"the toy broke"`:           false,
		`"cannot reach the top"`:    false,
		`["Error: disk full", 1.5]`: false,
	} {
		t.Run(fmt.Sprintf("%.60s", answer), func(t *testing.T) {
			if text := a.FindFailure([]byte(answer)); (text != "") != want {
				t.Errorf("%s: found %q", answer, text)
			}
		})
	}
}

// TestFailuresCountUntilTheyAreRepeated checks that a failure counts until its call succeeds, and
// that the message to the model and the stored signs are bounded.
func TestFailuresCountUntilTheyAreRepeated(t *testing.T) {
	var a Answers
	ask := func(prompt string, err error) { a.failures.note(t.Context(), &Query{Prompt: []byte(prompt)}, err) }
	for _, prompt := range []string{"a", "b", "c", "d", "e"} {
		ask(prompt, errors.New("broke at "+prompt))
	}
	ask("a", nil)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	a.failures.note(ended, &Query{Prompt: []byte("f")}, context.Canceled)

	want := "4 of 6 sub-calls failed: Error: broke at b; Error: broke at c; Error: broke at d"
	if got := a.TakeFailed(); got.String() != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := a.TakeFailed(); got.Count != 0 || got.Of != 0 {
		t.Errorf("a further turn has %q", got)
	}
	for i := range 2 * maxSigns {
		ask("a", fmt.Errorf("failure %d of the model", i))
	}
	if n := len(a.failures.signs); n > maxSigns {
		t.Errorf("%d texts are kept", n)
	}
}

package hook_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/hook"
	"github.com/rlmhq/rlm/repl/run"
)

func ExampleOutput() {
	task := rlm.Task{Config: run.Config{Triggers: run.Triggers{OutputChars: 100}}}
	answer := func(context.Context, rlm.Task) (rlm.Outcome, error) { // or engine.Ask
		return rlm.Outcome{Answer: []byte(`"two tests failed"`)}, nil
	}
	for _, output := range []string{"ok, 12 tests", strings.Repeat("a long line\n", 100)} {
		hooked, err := hook.Output(context.Background(), strings.NewReader(output), task, answer)
		fmt.Printf("%q %s %v\n", hooked.Trigger, hooked.Text, err)
	}

	// Output:
	// "" ok, 12 tests <nil>
	// "large_output" two tests failed <nil>
}

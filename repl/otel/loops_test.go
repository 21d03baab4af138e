package otel_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	engine "github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/otlp"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/repl/distill"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/otel"
	"github.com/rlmhq/rlm/repl/reflexion"
	"github.com/rlmhq/rlm/repl/run"
	"github.com/rlmhq/rlm/repl/workflow"
	"github.com/rlmhq/rlm/router"
)

// replies is a registry in which every model answers according to the purpose of the call and
// the last message.
type replies func(purpose, last string) string

func (f replies) Resolve(name string) (llm.Model, error) {
	return llm.Model{
		Name:  name,
		ID:    name,
		Facts: llm.Facts{Window: 100_000},
		Provider: llm.Func(func(r llm.Request) (llm.Response, error) {
			return llm.Response{
				Text: f(r.Metadata.Purpose, r.Messages[len(r.Messages)-1].Content),
			}, nil
		}),
	}, nil
}

// outline returns the tree of spans, one per line in order of their start, indented by depth.
// There must be one trace.
func (r *receiver) outline(t *testing.T) string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	spans := slices.Clone(r.spans)
	slices.SortStableFunc(spans, func(a, b *otlp.Span) int {
		return int( //nolint:gosec // times of this test
			int64(a.Start) - int64(b.Start),
		)
	})
	var b strings.Builder
	var below func(parent, indent string)
	below = func(parent, indent string) {
		for _, s := range spans {
			if s.ParentID == parent {
				b.WriteString(indent + s.Name + "\n")
				below(s.ID, indent+"  ")
			}
			if s.TraceID != spans[0].TraceID {
				t.Fatal("there are several traces")
			}
		}
	}
	below("", "")
	return b.String()
}

// TestEachLoopIsOneTrace runs each loop and checks that its events become one trace, with a span
// for each iteration and node, and child spans for the calls.
func TestEachLoopIsOneTrace(t *testing.T) {
	shared, err := engine.New(engine.Options{CacheDir: testcache.Dir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := shared.Close(); err != nil {
			t.Error(err)
		}
	}()
	for name, c := range map[string]struct {
		loop   string
		run    func(t *testing.T, progress func(ledger.Event)) error
		want   string
		failed string // the error on the root's span
	}{
		"reflexion": {loop: "reflexion", run: func(t *testing.T, progress func(ledger.Event)) error {
			t.Helper()
			_, err := reflexion.Run(t.Context(), reflexion.Config{
				Task: "x", Model: "m", Progress: progress,
				Models: replies(func(purpose, last string) string {
					switch {
					case purpose != "critique":
						return "the " + purpose
					case strings.Contains(last, "the draft\n"):
						return `{"issues": [{"type": "missing", "description": "an end", ` +
							`"severity": "major"}], "confidence": 1}`
					}
					return `{"issues": [], "confidence": 1}`
				}),
			})
			return err
		}, want: `
reflexion_run
  reflexion_iteration_1
    chat m
    chat m
  reflexion_iteration_2
    chat m
    chat m
`},
		"workflow": {loop: "workflow", run: func(t *testing.T, progress func(ledger.Event)) error {
			t.Helper()
			file, err := workflow.Parse("w.yaml", []byte(`
nodes:
  - name: make
    uses: reflection.loop
    with:
      generator: {action: llm.call, prompt: make}
      corrector: {action: llm.call, prompt: mend}
      evaluator: {type: schema, schema: {type: object, required: [a]}}
  - name: use
    run: |
      return {"b": state["a"]}
`))
			if err != nil {
				return err
			}
			_, err = file.Run(t.Context(), workflow.Config{
				Model: "m", Progress: progress,
				Open: shared.Opener(router.Policy{Pin: "wasm"}),
				Models: replies(func(_, last string) string {
					return map[string]string{
						"make": "none",
						"mend": `{"a": 1}`,
					}[last]
				}),
			}, nil)
			return err
		}, want: `
workflow_run
  workflow_node
    workflow_iteration_1
      chat m
    workflow_iteration_2
      chat m
  workflow_node
`},
		"a workflow that fails": {loop: "workflow", run: func(t *testing.T, progress func(ledger.Event)) error {
			t.Helper()
			file, err := workflow.Parse("w.yaml", []byte("nodes: [{name: a, run: return 1 / 0}, "+
				"{name: b, run: return 1}]"))
			if err != nil {
				return err
			}
			_, err = file.Run(t.Context(), workflow.Config{
				Progress: progress,
				Open:     shared.Opener(router.Policy{Pin: "wasm"}),
			}, nil)
			var failed *workflow.NodeError
			if !errors.As(err, &failed) {
				return fmt.Errorf("it ended as %w", err)
			}
			return nil
		}, want: `
workflow_run
  workflow_node
`, failed: `w.yaml: node "a": run ended by ZeroDivisionError: division by zero`},
		"distill": {loop: "distill", run: func(t *testing.T, progress func(ledger.Event)) error {
			t.Helper()
			corpus, err := distill.Parse(strings.NewReader(`{"error": "a"}`+"\n"+`{"error": "b"}`), "auto")
			if err != nil {
				return err
			}
			cfg := distill.Config{Run: run.Config{
				Model: "m", Progress: progress, Open: shared.Opener(router.Policy{Pin: "wasm"}),
				Models: replies(func(purpose, _ string) string {
					return map[string]string{
						"bypass": "[]", "leaf": "one kind",
						"root": "```repl\n" +
							`FINAL([{"name": llm_query("which?"), "summary": "s", "root_cause": "r", ` +
							`"keywords": [], "failures": [0, 1]}])` + "\n```",
					}[purpose]
				}),
			}}
			cfg.Run.Triggers.Traces = 1
			_, err = distill.Run(t.Context(), corpus, cfg)
			return err
		}, want: `
distill_run
  distill_step_1
    rlm_run
      rlm_iteration_1
        chat m
        chat m
  distill_step_2
    rlm_run
      chat m
`},
	} {
		t.Run(name, func(t *testing.T) {
			r := listen(t)
			o := r.observe(t, otel.Config{Loop: c.loop})
			if err := c.run(t, o.Event); err != nil {
				t.Fatal(err)
			}
			if err := o.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			if got := r.outline(t); got != c.want[1:] {
				t.Errorf("the spans are\n%swant\n%s", got, c.want[1:])
			}
			root := r.span(t, strings.Fields(c.want)[0])
			if got := root.Attributes; got["rlm.status"] == "" ||
				(c.failed == "") != (got["rlm.total_input_tokens"] != "0") {
				t.Errorf("the root has %v", got)
			}
			if root.Message != c.failed {
				t.Errorf("the root failed by %q, want %q", root.Message, c.failed)
			}
		})
	}
}

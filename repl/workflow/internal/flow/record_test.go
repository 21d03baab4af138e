package flow_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
)

func TestTheRecordHasAllThatHappened(t *testing.T) {
	file := parse(t, `
name: counting
nodes:
  - name: ask
    uses: llm.call
    with: {prompt: "A word?"}
  - name: count
    run: |
      print("counting")
      return {"n": len(state["content"])}
  - name: divide
    run: return 1 / 0
`)
	cfg := config(says("four"))
	first := filepath.Join(t.TempDir(), "trace")
	cfg.Trace = first
	var told []string
	cfg.Progress = func(e ledger.Event) {
		told = append(told, strings.TrimSpace(e.Node+" "+string(e.Kind)+" "+e.Status))
	}
	outcome, err := file.Run(t.Context(), cfg, nil)
	if err == nil || outcome.Trace != cfg.Trace {
		t.Errorf("got %+v, %v", outcome, err)
	}
	want := []string{
		"0 run_started", "0.1 loop_started", "0.1 reply stop", "0.1 loop_ended done",
		"0.2 loop_started", "0.2 snippet ok", "0.2 loop_ended done", "0.3 loop_started",
		"0.3 snippet raised", "0.3 loop_ended failed", "0 run_ended failed",
	}
	if strings.Join(told, ", ") != strings.Join(want, ", ") {
		t.Errorf("told were %q", told)
	}
	for name, texts := range map[string][]string{
		trajectory.File: {
			`"environment_type":"workflow"`, `"file":"w.yaml"`, `"root_model":"test/default"`,
		},
		"sub_0001/" + trajectory.File: {
			`"name":"ask"`, `"node":"0.1"`, `"content":"A word?"`, `"response":"four"`,
			`"final_answer":{"content":"four"}`,
		},
		"sub_0002/" + trajectory.File: {
			`"uses":"Python"`,
			`"code":"print(\"counting\")\nreturn {\"n\": len(state[\"content\"])}\n"`,
			`"stdout":"counting\n"`, `"final_answer":{"n":4}`,
		},
		"sub_0003/" + trajectory.File: {`ZeroDivisionError: division by zero`, `"final_answer":null`},
		trajectory.EventsFile: {
			`"text":"w.yaml: counting"`, `"text":"ask: llm.call"`, `"purpose":"llm.call"`,
		},
	} {
		t.Run(fmt.Sprintf("%.60s", name), func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(cfg.Trace, name))
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range texts {
				if !strings.Contains(string(data), text) {
					t.Errorf("%s lacks %s:\n%s", name, text, data)
				}
			}
		})
	}
	// A node that the budget stopped has not failed.
	cfg.Trace, cfg.Budget.Calls, told = "", 1, nil
	twice := parse(
		t,
		"nodes:\n  - {uses: llm.call, with: {prompt: x}}\n  - {uses: llm.call, with: {prompt: x}}\n",
	)
	outcome, err = twice.Run(t.Context(), cfg, nil)
	if err != nil || outcome.Status != ledger.StatusPartial ||
		!slices.Contains(told, "0.2 loop_ended partial") {
		t.Errorf("got %+v, %v, told %q", outcome, err, told)
	}
	cfg.Trace = first
	var setup *repl.SetupError
	_, err = file.Run(t.Context(), cfg, nil)
	if !errors.As(err, &setup) || !strings.Contains(err.Error(), "name a new or empty folder") {
		t.Errorf("a second run into the same folder: %v", err)
	}
}

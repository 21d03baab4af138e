package results_test

import (
	"encoding/json"
	"testing"

	"github.com/rlmhq/rlm/internal/plan/results"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// TestTheNamesOfAResultStay checks the JSON names of a result, on which clients depend. Types of
// package tiers define some of them.
func TestTheNamesOfAResultStay(t *testing.T) {
	result := router.Result{Tier: "wasm", Result: tiers.Result{
		Status:    tiers.StatusRaised,
		Exception: &tiers.Exception{Type: "SystemExit", Message: "3", Traceback: "T", ExitCode: 3},
		Denied:    []tiers.Denial{{Target: "a:1", Reason: "why"}},
		Lost:      &tiers.Loss{Reason: "gone"},
	}}
	got, err := json.Marshal(results.Describe(result))
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"status":"raised","tier":"wasm","stdout":"","final":false,` +
		`"exception":{"type":"SystemExit","message":"3","traceback":"T","exit_code":3},` +
		`"denied":[{"target":"a:1","reason":"why"}],"lost":{"snippets":[],"reason":"gone"},` +
		`"usage":{"active_ms":0,"wall_ms":0,"host_wait_ms":0,"queued_ms":0,"fuel":0,` +
		`"peak_memory_bytes":0,"host_calls":0,"output_bytes":0}}`
	if string(got) != want {
		t.Errorf("%s\nwant %s", got, want)
	}

	joined, err := json.Marshal(results.JoinLosses(&tiers.Loss{Reason: "a"}, &tiers.Loss{Reason: "b"}))
	if err != nil || string(joined) != `{"snippets":[],"reason":"a b"}` {
		t.Errorf("%s, %v", joined, err)
	}
}

//go:build linux && (amd64 || arm64)

package workers

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/scripted"
	"github.com/rlmhq/rlm/repl/run"
	"github.com/rlmhq/rlm/tiers"
)

// models resolves every name to a model that answers by rules.
type models struct{ llm.Provider }

// Resolve implements repl.Models.
func (m models) Resolve(name string) (llm.Model, error) {
	return llm.Model{Name: name, ID: name, Provider: m.Provider}, nil
}

func openEngine(t *testing.T) *rlm.Engine {
	t.Helper()
	engine, err := rlm.New(rlm.Options{Tiers: func(tiers.Tier) ([]tiers.Tier, error) {
		return []tiers.Tier{openTier(t, Options{})}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return engine
}

// TestAnEngineRunsWholeLoopsInWorkers checks a loop that calls models in the parent and runs
// snippets in a worker.
func TestAnEngineRunsWholeLoopsInWorkers(t *testing.T) {
	root := "```repl\nanswers = llm_query_batched(['a', 'b'])\nsub = rlm_query('count', context)\n" +
		"FINAL([len(context), answers, sub])\n```"
	sub, leaf := "```repl\nFINAL(str(len(context)))\n```", "a leaf"
	script, err := scripted.New(
		scripted.Rule{When: scripted.When{Purpose: "root"}, Reply: &root},
		scripted.Rule{When: scripted.When{Purpose: "sub"}, Reply: &sub},
		scripted.Rule{Reply: &leaf},
	)
	if err != nil {
		t.Fatal(err)
	}

	outcome, err := openEngine(t).Ask(t.Context(), rlm.Task{
		Contexts: []rlm.Context{rlm.Text("t", strings.Repeat("five.", 20_000))},
		Config:   run.Config{Question: "how long?", Models: models{script}, Model: "test/m"},
	})
	got := strings.ReplaceAll(string(outcome.Answer), " ", "")
	if err != nil || got != `[100000,["aleaf","aleaf"],"100000"]` {
		t.Errorf("%s, %+v, %v", got, outcome.Status, err)
	}
}

// TestASessionHasItsContextsAndFunctions checks each kind of context in a worker.
func TestASessionHasItsContextsAndFunctions(t *testing.T) {
	folder := t.TempDir()
	long := strings.Repeat("a long line of text\n", 600_000) // becomes a str without a copy
	for name, text := range map[string]string{"a.txt": "first", "b/c.txt": "second é", "long.log": long} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	double := rlm.FuncOf(repl.Tool{
		Name: "double", Signature: "double(n)",
		Raw: func(_ context.Context, call tiers.Call) (tiers.Value, error) {
			return tiers.Value("[" + string(call.Args[0]) + "," + string(call.Args[0]) + "]"), nil
		},
	})
	session, err := openEngine(t).Open(t.Context(), rlm.SessionConfig{
		Contexts: []rlm.Context{
			rlm.File(filepath.Join(folder, "long.log")), rlm.File(folder), rlm.Value("v", []int{1, 2}),
			rlm.Text("t", "a short text"),
		},
		Functions: []rlm.Function{double},
	})
	if err != nil {
		t.Fatal(err)
	}
	prints(t, session, "len(context), context.count('long'), type(context).__name__", "(12000000, 600000, 'str')")
	prints(t, session, "sorted(context_1), context_1['b/c.txt'], len(context_1['long.log'])",
		"(['a.txt', 'b/c.txt', 'long.log'], 'second é', 12000000)")
	prints(t, session, "context_2, context_3, double(21)", "([1, 2], 'a short text', [21, 21])")

	if err := session.AddContext(t.Context(), rlm.Text("more", "added").As("more")); err != nil {
		t.Fatal(err)
	}
	prints(t, session, "kept = [more]; kept", "['added']")
	fork, err := session.Fork(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := session.Close(); err != nil {
		t.Fatal(err)
	}
	prints(t, fork, "kept, context_1['a.txt'], double(1)", "(['added'], 'first', [1, 1])")

	var state bytes.Buffer
	if err := fork.Snapshot(t.Context(), &state); err != nil || state.Len() == 0 {
		t.Errorf("%d bytes, %v", state.Len(), err)
	}
}

func prints(t *testing.T, session *rlm.Session, source, want string) {
	t.Helper()
	r, err := session.Run(t.Context(), source)
	if err != nil || r.Status != tiers.StatusOK || r.Echo != want {
		t.Errorf("%s: %.300q, %+v, %v; want %s", source, r.Echo, r.Exception, err, want)
	}
}

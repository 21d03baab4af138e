package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestExamplesOfTheSeedRun(t *testing.T) {
	// All tests share the cache, because it takes long to compile the interpreter.
	t.Setenv("XDG_CACHE_HOME", filepath.Join(os.TempDir(), fmt.Sprintf("rlm-test-cache-%d", os.Getuid())))
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{
			"chunk and filter by boolean sub-agents",
			[]string{"-model", "scripted/chunk-filter.yaml", "-context", "saltram.txt", "Where did Saltram live?"},
			`answered: {"homes": ["In those years Saltram lodged with a widow near the common at ` +
				`Wimbledon, in two rooms above her shop", "By spring Saltram had given up the ` +
				`rooms and lived as a guest at a house on the river"], "sure": true} ` +
				`(2 turns, 5 sub-loops, 7 calls)`,
		},
		{
			"root contract of type bool",
			[]string{
				"-model", "scripted/root-contract.yaml", "-context", "change.diff",
				"-type", "bool", "Is this change a security risk?",
			},
			`answered: true (2 turns, 0 sub-loops, 2 calls)`,
		},
		{
			"multi-step CSV analysis",
			[]string{
				"-model", "scripted/csv-outliers.yaml", "-context", "orders.csv",
				"Find the outliers by the IQR method and say what they are.",
			},
			`answered: {"rows": 40, "outliers": ["13", "29"], "kinds": {"bulk order": 1, ` +
				`"refund": 1}} (3 turns, 0 sub-loops, 5 calls)`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, progress bytes.Buffer
			if err := answer(t.Context(), c.args, &out, &progress); err != nil {
				t.Fatalf("%v\n%s", err, progress.String())
			}
			if got := out.String(); got != c.want+"\n" {
				t.Errorf("got %s\nwant %s\n%s", got, c.want, progress.String())
			}
		})
	}
}

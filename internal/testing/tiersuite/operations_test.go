package tiersuite_test

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/internal/testing/tiersuite"
	"github.com/rlmhq/rlm/tiers"
)

const operationsScript = "testdata/operations.py"

// TestEveryOperation compares the values of expressions over a text in tier wasm with those in
// CPython over the same file. In a sandbox of 1 GiB, some results do not fit.
func TestEveryOperation(t *testing.T) {
	skip.UnderRace(t)
	python, tier := skip.WithoutCPython(t), openWasm(t)
	script, err := os.ReadFile(operationsScript)
	if err != nil {
		t.Fatal(err)
	}

	const small = 1 << 10 // the suite of each tier uses 9 MB
	sizes := map[string]int{"1KB": small}
	if os.Getenv(hugeTexts) != "" {
		sizes["1GiB"] = 1 << 30
	}
	for name, size := range sizes {
		for _, kind := range tiersuite.KindsOfText() {
			t.Run(name+"/"+kind, func(t *testing.T) {
				path := writeFile(t, func(w io.Writer) error { return tiersuite.WriteText(w, kind, size) })
				isHuge := size > small
				asked := tiersuite.TextExpressions(kind, isHuge)
				atOnce := len(asked)
				if isHuge {
					atOnce = 1 // two results may not fit together
				}
				list, err := json.Marshal(asked)
				if err != nil {
					t.Fatal(err)
				}
				file := filepath.Join(t.TempDir(), "expressions.json")
				if err := os.WriteFile(file, list, 0o600); err != nil {
					t.Fatal(err)
				}

				// Over 1 GiB, each side takes half an hour.
				var want []string
				cpython, ctx := errgroup.WithContext(t.Context())
				cpython.Go(func() error {
					return runCPython(ctx, python, &want, operationsScript, path, file)
				})
				got := evaluate(t, openOver(t, tier, path), string(script), asked, atOnce)
				if err := cpython.Wait(); err != nil {
					t.Fatal(err)
				}

				var tooLong, noRoom []string
				for i, e := range asked {
					switch {
					case isTooLong[want[i]] && isHuge:
						noRoom = append(noRoom, e) // in CPython, which can use all of the machine's memory
					case isTooLong[got[i]] && isHuge:
						tooLong = append(tooLong, e)
					case got[i] != want[i]:
						t.Errorf("%s\n    got  %s\n    want %s", e, got[i], want[i])
					}
				}
				t.Logf("%d operations compared, too long: %s; CPython had no room for: %s",
					len(asked)-len(tooLong)-len(noRoom), strings.Join(tooLong, ", "),
					strings.Join(noRoom, ", "))
				if len(tooLong)+len(noRoom) > len(asked)/5 {
					t.Errorf("%d of %d operations were too long, and %d for CPython",
						len(tooLong), len(asked), len(noRoom))
				}
			})
		}
	}
}

// isTooLong lists the outcomes of operations whose result does not fit into the sandbox.
var isTooLong = map[string]bool{"raises MemoryError": true, "raises OverflowError": true}

// evaluate returns the outcomes of expressions over the context. Each snippet evaluates several
// expressions.
func evaluate(
	t *testing.T, box tiers.Sandbox, script string, expressions []string, atOnce int,
) (outcomes []string) {
	t.Helper()
	for some := range slices.Chunk(expressions, atOnce) {
		list, err := json.Marshal(some)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		r, err := box.Run(t.Context(), tiers.Job{Source: fmt.Sprintf(
			"%s\nprint(json.dumps([outcome(e, context) for e in json.loads(%q)]))", script, list,
		)})
		if err != nil {
			t.Fatalf("%s: %v", list, err)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Logf("%s took %s", list, took.Round(time.Second))
		}

		got := []string{"raises MemoryError"}
		if r.Limit != tiers.LimitMemory {
			if err := json.Unmarshal([]byte(r.Stdout), &got); err != nil {
				t.Fatalf("%s: %s %s %+v", list, r.Status, r.Limit, r.Exception)
			}
		}
		if len(got) != len(some) {
			t.Fatalf("%s: %d outcomes", list, len(got))
		}
		outcomes = append(outcomes, got...)
	}
	return outcomes
}

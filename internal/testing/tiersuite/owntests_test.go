package tiersuite_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/tiers"
)

// ownTests is the folder of the script that runs all of CPython's own tests.
const ownTests = "../../../scripts/cpython-tests"

// quickTests are modules of CPython's own tests that take a few seconds, and do not depend on a
// clock. They test syntax, objects, calls, numbers, strings, collections, and some of the standard
// library, and share a session.
var quickTests = strings.Fields(`
	test_grammar test_patma test_exceptions test_generators test_coroutines test_contextlib
	test_descr test_dataclasses test_weakref test_gc test_call test_builtin test_float
	test_struct test_format test_string test_re test_csv test_list test_dict test_tuple
	test_functools test_textwrap test_marshal`)

// TestCPythonsOwnTests runs quick modules of CPython's own tests in both engines of tier wasm, in
// deterministic sessions. All failures must be expected, and both engines must have the same
// results, fuel and memory use. scripts/cpython-tests.sh runs all modules.
func TestCPythonsOwnTests(t *testing.T) {
	skip.Short(t, "it runs many modules of tests in both engines")
	lib := skip.WithoutCPythonsSources(t)
	expected := expectedFailures(t)
	driver, err := os.ReadFile(filepath.Join(ownTests, "driver.py"))
	if err != nil {
		t.Fatal(err)
	}
	var sessions []*rlm.Session
	for _, engine := range []string{"aot", "wazero"} {
		sessions = append(sessions, openForOwnTests(t, engine, lib))
	}

	for _, module := range quickTests {
		t.Run(module, func(t *testing.T) {
			var first moduleRun
			for i, session := range sessions {
				run := runOwnTests(t, session, module, string(driver))
				if i == 0 {
					first = run
					compareFailures(t, run.report, expected[module])
				} else if run != first {
					t.Errorf("the engines differ: %+v and %+v", first, run)
				}
			}
		})
	}
}

// moduleRun is the result of a module of tests.
type moduleRun struct {
	report string // lines of tab-separated fields; see the driver
	fuel   uint64
	memory int64
}

// openForOwnTests opens a deterministic session of tier wasm that lasts as long as the test.
func openForOwnTests(t *testing.T, engine, lib string) *rlm.Session {
	t.Helper()
	e, err := rlm.New(rlm.Options{WasmEngine: engine, CacheDir: testcache.Dir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })

	// A context above 8 MiB makes the runtime install its own re, csv, json and io.
	long := rlm.Text("long", strings.Repeat("x", 9_000_000))
	s, err := e.Open(t.Context(), rlm.SessionConfig{
		Contexts:      []rlm.Context{rlm.File(lib), long},
		Deterministic: true,
		Limits:        tiers.Limits{Wall: time.Hour, Active: time.Hour, Memory: 1 << 30, Output: 4 << 20},
		Policy:        rlm.Policy{Pin: rlm.TierWasm},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func runOwnTests(t *testing.T, s *rlm.Session, module, driver string) moduleRun {
	t.Helper()
	r, err := s.Run(t.Context(), fmt.Sprintf("module = %q\n%s", module, driver))
	if err != nil || r.Status != tiers.StatusOK || r.Final == nil {
		t.Fatalf("%s %+v, %v", r.Status, r.Exception, err)
	}
	var report string
	if err := json.Unmarshal(r.Final.Value, &report); err != nil {
		t.Fatal(err)
	}
	return moduleRun{report, r.Usage.Fuel, r.Usage.PeakMemory}
}

// expectedFailures returns the tests that cannot pass, by module.
func expectedFailures(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(ownTests, "expected.txt"))
	if err != nil {
		t.Fatal(err)
	}
	expected := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Split(line, "\t"); len(fields) == 3 {
			expected[fields[0]] = append(expected[fields[0]], fields[1])
		}
	}
	return expected
}

// compareFailures compares the failures in a report with the expected ones. A report without tests
// is also a failure.
func compareFailures(t *testing.T, report string, expected []string) {
	t.Helper()
	var failed []string
	ran := 0
	for line := range strings.Lines(report) {
		switch fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); fields[0] {
		case "@result":
			ran, _ = strconv.Atoi(fields[2])
		case "@fail":
			failed = append(failed, fields[1])
			if !slices.Contains(expected, fields[1]) {
				t.Errorf("%s fails: %s", fields[1], fields[2])
			}
		}
	}
	if ran == 0 {
		t.Errorf("no test ran:\n%s", report)
	}
	for _, name := range expected {
		if !slices.Contains(failed, name) {
			t.Errorf("%s should fail", name)
		}
	}
}

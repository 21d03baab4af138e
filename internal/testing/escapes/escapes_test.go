package escapes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rlmhq/rlm/internal/testing/harm"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

// TestEscapeOnCPython is the negative control of the corpus. It checks that each case touches its
// canary or does its harm on a CPython without a sandbox. Attacks on sessions and host calls need a
// tier, and have their controls there. One case in three runs, and make escape runs all.
func TestEscapeOnCPython(t *testing.T) {
	skip.Short(t, "it waits until each attack has done its harm")
	skip.UnderRace(t)
	python := skip.WithoutCPython(t)
	for i, c := range Cases(t) {
		if c.needsSession() || i%3 != 0 && !runsAll() {
			continue
		}
		t.Run(c.ID(), func(t *testing.T) {
			t.Parallel()
			switch {
			case c.keys["unsafe"] != "":
				t.Skip("not without a sandbox: " + c.keys["unsafe"])
			case c.keys["root"] != "" && os.Geteuid() != 0:
				t.Skip("not as this user: " + c.keys["root"])
			}

			kind, touched, said := runWithoutSandbox(t, python, c)
			for range racesLost {
				if c.keys["harm"] != "" || touched != "" {
					break
				}
				kind, touched, said = runWithoutSandbox(t, python, c)
			}

			switch want := harm.Kind(c.keys["harm"]); {
			case want != "" && !harm.Alike(kind, want):
				t.Errorf("it does %q, not %q: %.2000s", kind, want, said)
			case want == "" && touched == "" && c.keys["where"] != "":
				t.Skip("not on this machine, but where " + c.keys["where"])
			case want == "" && touched == "":
				t.Errorf("it touches nothing (harm: %q): %.2000s", kind, said)
			}
		})
	}
}

// racesLost bounds how often a case may touch nothing. A case that swaps a file for a link may be
// stopped at any moment, and is harmless in one of four.
const racesLost = 9

// runWithoutSandbox runs a case without a sandbox, and returns the harm that it did, what it
// touched, and its output.
func runWithoutSandbox(t *testing.T, python string, c Case) (kind harm.Kind, touched, said string) {
	t.Helper()
	watch := newCanaries(t, c.Source+c.Then, secretOfBare)
	out := filepath.Join(t.TempDir(), "out")
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}

	watch.setWord("OUT", out)
	wall := 30 * time.Second // cases that end by themselves depend on the speed of the machine
	if want := harm.Kind(c.keys["harm"]); want != harm.None && harm.Alike(want, harm.Hangs) {
		wall = time.Second
	}
	env := []string{environment + "=" + secretOfBare, cmp.Or(c.keys["env"], "NONE=")}
	if c.Class == "egress" {
		beyond := newWorld(t)
		watch.hideIn(beyond)
		env = append(env, beyond.serveNaively(t))
	}
	if c.Class == "contexts" {
		watch.makeContexts(t)
	}
	first, then := c.prepare(t, c.Source, watch), ""
	if c.Then != "" {
		then = c.prepare(t, c.Then, watch)
	}
	switch {
	case c.keys["one"] != "":
		first, then = first+then, ""
	case c.Then != "" && !c.After:
		said, end := harm.KeepPython(t, python, first, env...)
		defer end()
		first, then = sayAgain(then, said), ""
	}

	kind, said = harm.WatchPython(t, python, first, wall, env...)
	if then != "" {
		kind, said = harm.WatchPython(t, python, sayAgain(then, said), wall, env...)
	}
	return kind, watch.findTouched(t, said+copyNaively(t, out)), said
}

// sayAgain inserts the first line of one tenant's output into the source of another.
func sayAgain(source, said string) string {
	line, _, _ := strings.Cut(said, "\n")
	return strings.ReplaceAll(source, "CANARY_SAID", strconv.Quote(line))
}

// secretOfBare is the secret in the environment of an interpreter without a sandbox.
const secretOfBare = "canary-of-an-interpreter-without-a-sandbox" //nolint:gosec // for a test

// copyNaively collects files without regard to their kinds, and returns their contents.
func copyNaively(t *testing.T, out string) string {
	t.Helper()
	said, problem := inspectFolder(t, out)
	if problem != "" {
		said += secretOfBare
	}
	if entries, err := os.ReadDir(out); err != nil || len(entries) == 0 || problem != "" {
		return said
	}

	copied := filepath.Join(t.TempDir(), "copied")
	if text, err := exec.CommandContext(t.Context(), "cp", "-rL", out, copied).CombinedOutput(); err != nil {
		t.Logf("%v: %s", err, text) // a broken link
	}
	more, _ := inspectFolder(t, copied)
	return said + more
}

// TestTheCorpusIsWhole counts the cases, and checks the declarations of each case.
func TestTheCorpusIsWhole(t *testing.T) {
	cases := Cases(t)
	if len(cases) < 480 {
		t.Errorf("%d cases are too few", len(cases))
	}
	keys := "with harm unsafe fake where before env one open root fresh ends local docker"
	for _, c := range cases {
		if c.Tries == "" || strings.ContainsAny(c.Tries, "|`") || strings.TrimSpace(c.Source) == "" {
			t.Errorf("%s does not say what it tries", c.ID())
		}
		for key, value := range c.keys {
			if !strings.Contains(keys, key) || value == "" {
				t.Errorf("%s: there is no key %q, or it is empty", c.ID(), key)
			}
		}

		if strings.Contains(c.Control(), "|") || strings.HasSuffix(c.Control(), ": ") {
			t.Errorf("%s has neither a control nor a reason", c.ID())
		}

		watch := newCanaries(t, c.Source+c.Then, "")
		watch.hideIn(newWorld(t))
		watch.words["CANARY_SAID"] = `""`
		filled := watch.fill(c.Source + c.Then)
		if canaryWord.MatchString(filled) && c.Name != "own_environment" {
			t.Errorf("%s has a word that stands for nothing", c.ID())
		}
	}
}

// TestTheTestsBeyondTheCorpusExist looks for each test that the matrix names.
func TestTheTestsBeyondTheCorpusExist(t *testing.T) {
	root := findTop(t)
	for _, a := range beyondTheCorpus {
		dir, name, _ := strings.Cut(a.test, " ")
		files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		found := slices.ContainsFunc(files, func(file string) bool {
			text, err := os.ReadFile(file)
			return err == nil && strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)")
		})
		if !found || a.control == "" || strings.HasSuffix(a.control, ": ") {
			t.Errorf("%q: there is no %s, or no control", a.tries, a.test)
		}
	}
}

// TestTheMatrixHasAllCases checks that the document has a row for each case of the corpus, and no
// empty cell.
func TestTheMatrixHasAllCases(t *testing.T) {
	m, cases := readMatrix(t), Cases(t)
	text, err := os.ReadFile(m.path)
	if err != nil {
		t.Fatal(err)
	}
	if string(text) != m.render(cases) {
		t.Error("docs/generated/security-matrix.md is not as make escape writes it")
	}

	for _, c := range cases {
		for _, tier := range matrixTiers {
			if cell := m.columns[tier][c.ID()]; cell == "" || strings.HasPrefix(cell, Escaped) {
				t.Errorf("%s in tier %s: %q", c.ID(), tier, cell)
			}
		}
	}
}

// TestTheReadmeCountsTheAttacks compares the readme's numbers with the corpus.
func TestTheReadmeCountsTheAttacks(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(findTop(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	cases, without := Cases(t), 0
	for _, c := range cases {
		if strings.HasPrefix(c.Control(), "none: ") {
			without++
		}
	}

	want := fmt.Sprintf("Tests run %d attacks against every tier that can run them. "+
		"Controls prove that all but %d are real", len(cases), without)
	gaps := 0
	for _, column := range readMatrix(t).columns {
		for _, verdict := range column {
			if verdict == Open {
				gaps++
			}
		}
	}

	known := fmt.Sprintf("the %d known gaps", gaps)
	if gaps == 1 {
		known = "the one known gap"
	}
	readme := strings.Join(strings.Fields(string(text)), " ")
	for _, want := range []string{want, known} {
		if !strings.Contains(readme, want) {
			t.Errorf("README.md does not say: %s", want)
		}
	}
}

// TestCanariesFeelATouch checks that each canary detects a direct touch.
func TestCanariesFeelATouch(t *testing.T) {
	source := "CANARY_TCP CANARY_UDP CANARY_DNS CANARY_SOCKET CANARY_VICTIM"
	if touched := newCanaries(t, source, "x").findTouched(t, ""); touched != "" {
		t.Errorf("nobody has touched anything: %s", touched)
	}
	for name, touch := range map[string]string{
		"listener TCP": "exec 3<>/dev/tcp/127.0.0.1/CANARY_TCP",
		"listener UDP": "echo x >/dev/udp/127.0.0.1/CANARY_UDP",
		"listener DNS": "echo x >/dev/udp/127.0.0.1/CANARY_DNS", "host's folder": "chmod 0700 CANARY_OPEN",
		"ended a process":      "kill CANARY_VICTIM; sleep 0.2",
		"the secret of a file": "cat CANARY_FILE", "secret of the environment": "echo 'variable'",
	} {
		t.Run(name, func(t *testing.T) {
			c := newCanaries(t, source, "variable")
			said, err := exec.CommandContext(t.Context(), "bash", "-c", c.fill(touch)).CombinedOutput()
			if err != nil {
				t.Skipf("there is no bash: %v: %s", err, said)
			}
			if touched := c.findTouched(t, string(said)); !strings.Contains(touched, name) {
				t.Errorf("%s: %q", name, touched)
			}
		})
	}
}

// TestTheHostFeelsItsCost checks that each cost is detected, by causing it directly on the host.
func TestTheHostFeelsItsCost(t *testing.T) {
	skip.UnderRace(t)
	if cost := lookAtHost(t, "local").findCost(t); cost != "" {
		t.Errorf("nothing has happened: %s", cost)
	}
	for want, pay := range map[string]func(h *host, stop chan struct{}){
		"memory grew": func(*host, chan struct{}) {
			for i, b := 0, make([]byte, 2*mostHostMemory); i < len(b); i += 4096 {
				b[i] = 1
			}
		},
		"processor time": func(h *host, _ chan struct{}) { h.processor -= 2 * mostHostProcessor },
		"1 goroutines":   func(_ *host, stop chan struct{}) { go func() { <-stop }() },
		"1 descriptors": func(*host, chan struct{}) {
			f, err := os.Open(os.DevNull)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.Close() })
		},
	} {
		t.Run(want, func(t *testing.T) {
			before, stop := lookAtHost(t, "local"), make(chan struct{})
			before.settles = 50 * time.Millisecond
			pay(&before, stop)
			if cost := before.findCost(t); !strings.Contains(cost, want) {
				t.Errorf("want %q, got %q", want, cost)
			}
			close(stop)
		})
	}
}

// still is a tier whose snippets never end.
type still struct{ tiers.Tier }

func (s still) Open(context.Context, tiers.Config) (tiers.Sandbox, error) { return s, nil }

func (still) Run(ctx context.Context, _ tiers.Job) (tiers.Result, error) {
	<-ctx.Done()
	return tiers.Result{}, errors.New("stopped")
}

func (still) Close() error { return nil }

// TestANeighbourFeelsThatItStandsStill is the control of the classes time and calltrees. It checks
// that a session whose snippets hang is detected.
func TestANeighbourFeelsThatItStandsStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if n := (&escape{tier: still{}}).startNeighbour(t).end(t); n != 0 {
			t.Errorf("a session that stood still has answered %d times", n)
		}
	})
}

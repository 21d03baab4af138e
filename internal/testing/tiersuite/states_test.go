package tiersuite_test

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/docker"
	"github.com/rlmhq/rlm/tiers/local"
	"github.com/rlmhq/rlm/tiers/wasm"
)

const (
	statesFile   = "testdata/states.py"
	statesUpdate = "RLM_STATES_UPDATE" // a run with this variable writes statesDoc
	statesDoc    = "../../../docs/generated/moves.md"
	statesBegin  = "## Kinds by class\n" // the line of statesDoc after which the test writes
	leastStates  = 300
	statesPython = "/usr/bin/python3" // tier local's Python in the documented journey
)

// The separators that states.py writes between kinds, and between the parts of a kind.
const (
	betweenKinds = "\x1e"
	betweenParts = "\x1f"
)

// state is a kind of state: a snippet that creates it, and code that shows how it behaves.
type state struct {
	class, name, make, use string
	number                 string   // the suffix of the names of its variables
	names                  []string // names under which a report may also list its loss
}

// The classes of kinds that need a tier with processes, or a tier with processes and packages.
const (
	ofProcesses = "processes"
	ofPackages  = "packages"
)

// The possible endings of a kind after a move, from best to worst.
const (
	same   = "same"
	named  = "named"
	silent = "SILENT"
)

// TestEveryKindOfStateMovesOrIsNamed creates all kinds of state in one session, which then moves
// from tier to tier and from version to version of Python. After each move, every kind must behave
// as in the previous sandbox, or the report must name it.
func TestEveryKindOfStateMovesOrIsNamed(t *testing.T) {
	webassembly := openWasm(t)
	kinds := generateStates(t, webassembly)
	if len(kinds) < leastStates {
		t.Fatalf("%d kinds of state, want %d", len(kinds), leastStates)
	}

	native := openLocal(t, statesPython)
	if testing.Short() {
		kinds = slices.DeleteFunc(sample(kinds, 6), func(k state) bool { return k.class == ofPackages })
		moveStates(t, kinds, webassembly, native, webassembly)
		return
	}

	container := docker.New(docker.Options{Host: os.Getenv("DOCKER_HOST"), Warm: -1})
	closeAtEnd(t, container)
	skip.WithoutTier(t, docker.Name, container.Probe(t.Context()))
	journey := []tiers.Tier{webassembly, container, native, webassembly}
	settleStates(t, kinds, moveStates(t, kinds, journey...), journey)

	for _, python := range filepath.SplitList(os.Getenv("RLM_OLD_PYTHONS")) {
		if python != statesPython {
			t.Run(python, func(t *testing.T) {
				moveStates(t, kinds, webassembly, openLocal(t, python), webassembly)
			})
		}
	}
}

func openWasm(t *testing.T) tiers.Tier {
	t.Helper()
	tier := wasm.New(wasm.Options{CacheDir: testcache.Dir()})
	closeAtEnd(t, tier)
	skip.WithoutTier(t, wasm.Name, tier.Probe(t.Context()))
	return tier
}

func openLocal(t *testing.T, python string) tiers.Tier {
	t.Helper()
	tier := local.New(local.Options{Python: python, Warm: -1})
	closeAtEnd(t, tier)
	skip.WithoutTier(t, local.Name, tier.Probe(t.Context()))
	return tier
}

func closeAtEnd(t *testing.T, resource interface{ Close() error }) {
	t.Helper()
	t.Cleanup(func() {
		if err := resource.Close(); err != nil {
			t.Error(err)
		}
	})
}

func openBox(t *testing.T, tier tiers.Tier) tiers.Sandbox {
	t.Helper()
	box, err := tier.Open(t.Context(), tiers.Config{Limits: tiers.Limits{Output: 10 << 20}})
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, box)
	return box
}

// generateStates runs states.py in a sandbox.
func generateStates(t *testing.T, tier tiers.Tier) (kinds []state) {
	t.Helper()
	source, err := os.ReadFile(statesFile)
	if err != nil {
		t.Fatal(err)
	}
	listed := mustRun(t, openBox(t, tier), "states.py", string(source))
	for i, kind := range strings.Split(strings.TrimSpace(listed), betweenKinds) {
		parts := strings.Split(kind, betweenParts)
		kinds = append(kinds, state{
			class: parts[0], name: parts[1], make: parts[2], use: parts[3], names: parts[4:],
			number: fmt.Sprintf("_%03d", i),
		})
	}
	return kinds
}

func mustRun(t *testing.T, box tiers.Sandbox, name, source string) string {
	t.Helper()
	r, err := box.Run(t.Context(), tiers.Job{Source: source})
	if err != nil {
		t.Fatalf("cannot run %s: %v", name, err)
	}
	if r.Status != tiers.StatusOK {
		t.Errorf("%s: %s %+v", name, r.Status, r.Exception)
	}
	return r.Stdout
}

// ending describes the result of moving a kind of state, and the reason.
type ending struct{ verdict, reason string }

// moveStates creates the kinds in the first tier, moves them on to each other tier, and returns the
// worst ending of each kind.
func moveStates(t *testing.T, kinds []state, journey ...tiers.Tier) map[string]ending {
	t.Helper()
	from, made := openBox(t, journey[0]), 0
	endings := map[string]ending{}
	for i, tier := range journey[1:] {
		// Kinds that need processes are created last, in the first tier with processes.
		for ; made < len(kinds) && (i > 0 || !needsProcesses(kinds[made])); made++ {
			mustRun(t, from, kinds[made].name, kinds[made].make+"\npass") // without pass, _ would also have the value
		}

		to := openBox(t, tier)
		left := moveOn(t, from, to)
		checkNames(t, kinds[:made], left)
		before, after := useStates(t, from, kinds[:made]), useStates(t, to, kinds[:made])
		for _, kind := range kinds[:made] {
			if endings[kind.number].verdict == named {
				continue // the kind was lost, and the report named it
			}
			e := judge(kind, left, before[kind.number], after[kind.number])
			endings[kind.number] = e
			if e.verdict == silent {
				t.Errorf("%s: the move to %s changes it, and does not say so:\n%s\n---\n%s\nmade by:\n%s",
					kind.name, tier.Info().Name, before[kind.number], after[kind.number], kind.make)
			}
		}
		from = to
	}
	return endings
}

func needsProcesses(kind state) bool { return kind.class == ofProcesses || kind.class == ofPackages }

// isNamed reports whether a report's entry is about a kind.
func (s state) isNamed(left tiers.Left) bool {
	return strings.Contains(left.Name, s.number) || slices.Contains(s.names, left.Name)
}

// checkNames fails the test if the report names something that no kind created. Variables of
// modules that the tier lacks belong to several kinds.
func checkNames(t *testing.T, kinds []state, left []tiers.Left) {
	t.Helper()
	for _, l := range left {
		isModule := strings.HasPrefix(l.Reason, "No module named")
		if !isModule && !slices.ContainsFunc(kinds, func(k state) bool { return k.isNamed(l) }) {
			t.Errorf("the report names %+v, which no kind has made", l)
		}
	}
}

func judge(kind state, left []tiers.Left, before, after string) ending {
	if i := slices.IndexFunc(left, kind.isNamed); i >= 0 {
		return ending{named, left[i].Reason}
	}
	if before != after {
		return ending{verdict: silent}
	}
	return ending{verdict: same}
}

func moveOn(t *testing.T, from, to tiers.Sandbox) []tiers.Left {
	t.Helper()
	source, isSource := from.(tiers.Exporter)
	target, isTarget := to.(tiers.Exporter)
	if !isSource || !isTarget {
		t.Fatal("a sandbox is not an Exporter")
	}
	moving, err := source.Export(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	report, err := target.Import(t.Context(), moving)
	if err != nil {
		t.Fatal(err)
	}
	return report.Left
}

// user is code that shows how all kinds behave. It leaves nothing in the namespace, and keeps the
// source of the kinds out of the session.
const user = `
import sys
namespace, found = sys.modules['__main__'].__dict__, []
for kind in uses.split('\x1e'):
    number, source = kind.split('\x1f')
    lines = []
    def show(*values): lines.append(' '.join(map(str, values)))
    try:
        exec(compile(source, 'use', 'exec'), {**namespace, 'show': show})
    except BaseException as error:
        lines.append(f'{type(error).__name__}: {error}')
    found.append(number + '\x1f' + '\n'.join(lines))
sys.stdout.write('\x1e'.join(found))
`

// useStates returns the behaviour of each kind, by the kind's number.
func useStates(t *testing.T, box tiers.Sandbox, kinds []state) map[string]string {
	t.Helper()
	uses := make([]string, len(kinds))
	for i, kind := range kinds {
		uses[i] = kind.number + betweenParts + kind.use
	}
	hidden := base64.StdEncoding.EncodeToString([]byte(strings.Join(uses, betweenKinds)))
	encoded := base64.StdEncoding.EncodeToString([]byte(user))
	source := fmt.Sprintf("(lambda decode: exec(decode(%q), {'uses': decode(%q)}))("+
		"lambda text: __import__('base64').b64decode(text).decode())", encoded, hidden)
	shown := mustRun(t, box, "the uses", source)

	behaviour := map[string]string{}
	for _, kind := range strings.Split(shown, betweenKinds) {
		number, text, _ := strings.Cut(kind, betweenParts)
		behaviour[number] = text
	}
	if len(behaviour) != len(kinds) {
		t.Fatalf("%d kinds were used, want %d", len(behaviour), len(kinds))
	}
	return behaviour
}

// sample returns every nth kind.
func sample(kinds []state, n int) []state {
	var chosen []state
	for i := 0; i < len(kinds); i += n {
		chosen = append(chosen, kinds[i])
	}
	return chosen
}

// settleStates compares the endings with the document, or writes its tables.
func settleStates(t *testing.T, kinds []state, endings map[string]ending, journey []tiers.Tier) {
	t.Helper()
	document, err := os.ReadFile(statesDoc)
	if err != nil {
		t.Fatal(err)
	}
	prose, tables, found := strings.Cut(string(document), statesBegin)
	if !found {
		t.Fatalf("%s has no line %q", statesDoc, statesBegin)
	}

	if os.Getenv(statesUpdate) != "" {
		text := prose + statesBegin + describeJourney(t, journey) + renderStates(kinds, endings)
		if err := os.WriteFile(statesDoc, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, kind := range kinds {
		if row := stateRow(kind, endings); !strings.Contains(tables, row) {
			t.Errorf("%s lacks the row %q: make kinds writes it anew", statesDoc, row)
		}
	}
}

// describeJourney returns the versions of Python for which the tables are generated.
func describeJourney(t *testing.T, journey []tiers.Tier) string {
	t.Helper()
	var stops []string
	for _, tier := range journey {
		version := mustRun(t, openBox(t, tier), "the version", "import platform; print(platform.python_version())")
		stops = append(stops, fmt.Sprintf("%#q (CPython %s)", tier.Info().Name, strings.TrimSpace(version)))
	}
	return "\nMade by a move through\n" + strings.Join(stops, ",\n") + ".\n"
}

// renderStates returns the tables: counts by class, losses with their reasons, and all kinds.
func renderStates(kinds []state, endings map[string]ending) string {
	var classes []string
	counts := map[string]int{} // by class and verdict, and for all classes
	for _, kind := range kinds {
		if !slices.Contains(classes, kind.class) {
			classes = append(classes, kind.class)
		}
		verdict := endings[kind.number].verdict
		counts[kind.class+verdict]++
		counts[verdict]++
	}

	var b strings.Builder
	b.WriteString("\n| class | kinds | same | named | silent |\n| --- | --- | --- | --- | --- |\n")
	for _, class := range append(classes, "") {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d |\n", cmp.Or(class, "**all**"),
			counts[class+same]+counts[class+named]+counts[class+silent],
			counts[class+same], counts[class+named], counts[class+silent])
	}

	escape := strings.NewReplacer("|", `\|`, "<", `\<`)
	b.WriteString("\n## What the report names\n\n| kind | reason |\n| --- | --- |\n")
	for _, kind := range kinds {
		if e := endings[kind.number]; e.verdict == named {
			reason := regexp.MustCompile(`_\d{3}\b`).ReplaceAllString(e.reason, "")
			fmt.Fprintf(&b, "| %s | %s |\n", kind.name, escape.Replace(reason))
		}
	}

	b.WriteString("\n## All kinds\n\n| class | kind | after the moves |\n| --- | --- | --- |\n")
	for _, kind := range kinds {
		b.WriteString(stateRow(kind, endings))
	}
	return b.String()
}

func stateRow(kind state, endings map[string]ending) string {
	return fmt.Sprintf("| %s | %s | %s |\n", kind.class, kind.name, endings[kind.number].verdict)
}

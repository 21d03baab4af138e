package escapes

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// escapeUpdate is the environment variable that makes a run write its column of
// the matrix.
const escapeUpdate = "RLM_ESCAPE_UPDATE"

// matrixTiers lists the columns.
var matrixTiers = []string{"interp", "wasm", "docker", "local"}

// matrixBegins is the line of the document after which everything is generated.
const matrixBegins = "## Verdicts by class\n"

// matrix is the document: one verdict per case and tier.
type matrix struct {
	path, prose string
	columns     map[string]map[string]string // by tier and case
}

// readMatrix reads docs/generated/security-matrix.md.
func readMatrix(t *testing.T) *matrix {
	t.Helper()
	m := &matrix{path: matrixPath(t), columns: map[string]map[string]string{}}
	text, err := os.ReadFile(m.path)
	if err != nil {
		t.Fatal(err)
	}

	prose, tables, found := strings.Cut(string(text), matrixBegins)
	if !found {
		t.Fatalf("%s has no line %q", m.path, matrixBegins)
	}
	m.prose = prose
	for _, tier := range matrixTiers {
		m.columns[tier] = map[string]string{}
	}

	for line := range strings.Lines(tables) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) < 2+len(matrixTiers) || !strings.Contains(cells[0], "`") {
			continue
		}
		id := strings.Trim(strings.TrimSpace(cells[0]), "`")
		for i, tier := range matrixTiers {
			if cell := strings.TrimSpace(cells[i+2]); cell != "" {
				m.columns[tier][id] = cell
			}
		}
	}

	return m
}

// matrixPath returns the path of the document.
func matrixPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(findTop(t), "docs", "generated", "security-matrix.md")
}

// findTop finds the root of the repository, starting from the folder of any package.
func findTop(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("there is no go.mod above this folder")
		}
	}
}

// settleColumn compares a tier's verdicts with its column, or writes it.
func settleColumn(t *testing.T, tier string, column map[string]string) {
	t.Helper()
	m := readMatrix(t)
	if os.Getenv(escapeUpdate) != "" {
		maps.Copy(m.columns[tier], column) // a run of some cases keeps the other verdicts
		if err := os.WriteFile(m.path, []byte(m.render(Cases(t))), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}

	for _, id := range slices.Sorted(maps.Keys(column)) {
		if want := m.columns[tier][id]; column[id] != want {
			t.Errorf("%s in tier %s: %s, and docs/generated/security-matrix.md says %q: make escape writes it anew",
				id, tier, column[id], want)
		}
	}
}

// render returns the document.
func (m *matrix) render(cases []Case) string {
	var b strings.Builder
	b.WriteString(m.prose + matrixBegins + "\n| class | cases |")
	rule := "| --- | --- |"
	for _, tier := range matrixTiers {
		b.WriteString(" `" + tier + "` |")
		rule += " --- |"
	}

	b.WriteString("\n" + rule + "\n")
	for _, class := range classes {
		m.renderRow(&b, class, class, cases)
	}
	m.renderRow(&b, "**all**", "", cases)
	b.WriteString("\n## Verdicts by case\n\n| case | what it tries |")

	for _, tier := range matrixTiers {
		b.WriteString(" `" + tier + "` |")
	}
	b.WriteString(" control |\n" + rule + " --- |\n")
	for _, c := range cases {
		fmt.Fprintf(&b, "| `%s` | %s |", c.ID(), strings.ReplaceAll(c.Tries, "|", `\|`))
		for _, tier := range matrixTiers {
			b.WriteString(" " + m.columns[tier][c.ID()] + " |")
		}
		b.WriteString(" " + c.Control() + " |\n")
	}
	renderBeyond(&b)

	return b.String()
}

// renderRow counts the verdicts of a class, or of all classes if it is empty.
func (m *matrix) renderRow(b *strings.Builder, title, class string, cases []Case) {
	counts, total := map[string]map[string]int{}, 0
	for _, tier := range matrixTiers {
		counts[tier] = map[string]int{}
	}
	for _, c := range cases {
		if class != "" && c.Class != class {
			continue
		}
		total++
		for _, tier := range matrixTiers {
			kind, _, _ := strings.Cut(m.columns[tier][c.ID()], ":")
			counts[tier][kind]++
		}
	}

	fmt.Fprintf(b, "| %s | %d |", title, total)
	for _, tier := range matrixTiers {
		var parts []string
		for _, kind := range []string{Blocked, Contained, "limit", NotRoutable, Open, Escaped} {
			if n := counts[tier][kind]; n > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", n, kind))
			}
		}
		b.WriteString(" " + strings.Join(parts, ", ") + " |")
	}

	b.WriteByte('\n')
}

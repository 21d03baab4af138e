package server

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/server/internal/workers"
)

// metricName finds the metrics in an expression.
var metricName = regexp.MustCompile(`\b(?:rlm|process|go)_[a-z0-9_]+`)

// TestTheAlertsAndTheDashboardNameMetricsOfTheServer checks deploy/ and the table of
// docs/how-to/operations.md against the server's metrics.
func TestTheAlertsAndTheDashboardNameMetricsOfTheServer(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	m := newMetrics("test")
	m.watch(s.server.manager, s.server.kept)
	m.watchWorkers(noWorkers{})
	m.seen("GET /", 200, time.Second)
	m.ended("default", "answered", time.Second)
	m.ran("ok", time.Second)
	m.charged("default", ledger.Spending{Calls: 1})
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, family := range families {
		name := family.GetName()
		known[name] = true
		if family.GetType().String() == "HISTOGRAM" {
			known[name+"_bucket"], known[name+"_sum"], known[name+"_count"] = true, true, true
		}
	}

	root := ".."
	named := map[string]bool{}
	for path, expressions := range map[string][]string{
		"alerts": alertExpressions(t, filepath.Join(root, "deploy/compose/prometheus/alerts.yaml")),
		"dashboard": dashboardExpressions(t,
			filepath.Join(root, "deploy/compose/grafana/dashboards/rlm.json")),
		"operations": {metricsTable(t, filepath.Join(root, "docs/how-to/operations.md"))},
	} {
		if len(expressions) == 0 {
			t.Errorf("%s has no expressions", path)
		}
		for _, expression := range expressions {
			if found := metricName.FindAllString(expression, -1); len(found) == 0 {
				t.Errorf("%s: %q names no metric", path, expression)
			} else {
				for _, name := range found {
					if named[name] = true; !known[name] {
						t.Errorf("%s: the server has no metric %s", path, name)
					}
				}
			}
			if strings.Count(expression, "(") != strings.Count(expression, ")") {
				t.Errorf("%s: %q has other numbers of ( and )", path, expression)
			}
		}
	}
	for _, family := range families {
		if name := family.GetName(); strings.HasPrefix(name, "rlm_") && !named[name] && name != "rlm_build_info" {
			t.Errorf("docs/how-to/operations.md does not name the metric %s", name)
		}
	}
}

// noWorkers is a tier without workers.
type noWorkers struct{ workers.Tier }

func (noWorkers) Stats() workers.Stats { return workers.Stats{} }

func alertExpressions(t *testing.T, path string) (all []string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert, Expr, For string
				Annotations      map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			if rule.Alert == "" || rule.Annotations["summary"] == "" {
				t.Errorf("an alert has no name or no summary: %+v", rule)
			}
			if _, err := time.ParseDuration(rule.For); rule.For != "" && err != nil {
				t.Errorf("%s: %v", rule.Alert, err)
			}
			if rule.Alert != "RLMIsDown" { // based on a metric that Prometheus provides
				all = append(all, rule.Expr)
			}
		}
	}
	return all
}

func dashboardExpressions(t *testing.T, path string) (all []string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(data, &board); err != nil {
		t.Fatal(err)
	}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			all = append(all, target.Expr)
		}
	}
	return all
}

// metricsTable returns the first cell of each row in the table of metrics.
func metricsTable(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(data), "\n## Metrics\n")
	if !found {
		t.Fatalf("%s has no section on metrics", path)
	}
	section, _, _ := strings.Cut(rest, "\n## ")
	var cells strings.Builder
	for line := range strings.Lines(section) {
		if row, isRow := strings.CutPrefix(line, "| `"); isRow {
			cell, _, _ := strings.Cut(row, " |")
			cells.WriteString(cell + "\n")
		}
	}
	return cells.String()
}

package server

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/server/internal/access"
)

// metricNames matches the metrics in a Prometheus expression.
var metricNames = regexp.MustCompile(`\b(rlm_|process_|go_)[a-z_]+`)

// TestTheDeploymentAsksForMetricsThatExist checks that the server has each metric of the alerts and
// the dashboard after a run.
func TestTheDeploymentAsksForMetricsThatExist(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), locked)
	key := s.key(access.Key{Name: "prometheus", Scopes: []access.Scope{access.Metrics}})
	s.runToEnd(s.key(access.Key{Name: "alice"}))
	s.want(s.do("GET", "/v1/runs", key, nil), 403, "lacks the scope read")
	shown := s.do("GET", "/metrics", key, nil)
	s.want(shown, 200, "rlm_runs_total")

	for _, name := range []string{"prometheus/alerts.yaml", "grafana/dashboards/rlm.json"} {
		text, err := os.ReadFile(filepath.Join("..", "deploy", "compose", name))
		if err != nil {
			t.Fatal(err)
		}
		found := metricNames.FindAllString(string(text), -1)
		slices.Sort(found)
		for _, metric := range slices.Compact(found) {
			if !strings.Contains(shown.body, "\n"+metric+"{") && !strings.Contains(shown.body, "\n"+metric+" ") {
				t.Errorf("%s asks for %s, which the server does not have", name, metric)
			}
		}
		if len(found) < 5 {
			t.Errorf("%s asks for %v alone", name, found)
		}
	}
}

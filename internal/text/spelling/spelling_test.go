package spelling_test

import (
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/text/spelling"
)

func TestTheNearestNameIsFound(t *testing.T) {
	known := []string{"generator", "evaluator", "corrector", "max_iterations", "on_failure"}
	for name, want := range map[string]string{
		"generater": "generator", "max_iteration": "max_iterations", "evalautor": "evaluator",
		"on_fail": "on_failure",
		"prompt":  "", "": "", strings.Repeat("g", 1<<20): "",
	} {
		if got := spelling.Nearest(name, known); got != want {
			t.Errorf("%.20q: got %q, want %q", name, got, want)
		}
	}
}

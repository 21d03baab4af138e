package evaluators_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/repl/internal/evaluators"
)

// levelsOf returns the source of all levels of a tree. Each level has a name and calls the level
// below.
func levelsOf(depth int, level func(self, below int) string) string {
	var b strings.Builder
	for i := 1; i <= depth; i++ {
		b.WriteString(level(i, i-1))
	}
	return b.String()
}

// trees are programs without loops or recursion: each level calls the one below twice, so they
// make 2^depth calls. The last level returns true.
var trees = map[string]func(t *testing.T, j evaluators.Jail, depth int) (any, error){
	"templates": func(t *testing.T, j evaluators.Jail, depth int) (any, error) {
		t.Helper()
		return j.Render(t.Context(), "{% macro m0() %}{% endmacro %}"+levelsOf(depth, func(self, below int) string {
			return fmt.Sprintf("{%% macro m%d() %%}{{ m%d() }}{{ m%[2]d() }}{%% endmacro %%}", self, below)
		})+fmt.Sprintf("{{ m%d() == '' }}", depth), map[string]any{"state": map[string]any{}})
	},
	"Lua": func(t *testing.T, j evaluators.Jail, depth int) (any, error) {
		t.Helper()
		return j.Lua(t.Context(), "local f = {[0] = function() return true end}\n"+
			levelsOf(depth, func(self, below int) string {
				return fmt.Sprintf("f[%d] = function() f[%d]() return f[%[2]d]() end\n", self, below)
			})+fmt.Sprintf("return {done = f[%d]()}", depth), nil)
	},
	"methods of Lua": func(t *testing.T, j evaluators.Jail, depth int) (any, error) {
		t.Helper()
		return j.Lua(t.Context(), "local m = {__len = function() return 1 end}\nlocal t0 = setmetatable({}, m)\n"+
			levelsOf(depth, func(self, below int) string {
				return fmt.Sprintf("local t%d = setmetatable({}, {__len = function() return #t%d * #t%[2]d end})\n",
					self, below)
			})+fmt.Sprintf("return {done = #t%d == 1}", depth), nil)
	},
	"Prolog": func(t *testing.T, j evaluators.Jail, depth int) (any, error) {
		t.Helper()
		return j.Prolog(t.Context(), "p0.\n"+levelsOf(depth, func(self, below int) string {
			return fmt.Sprintf("p%d :- p%d, p%[2]d.\n", self, below)
		})+fmt.Sprintf("?- p%d, return(done, true).", depth), nil)
	},
	"choices of Prolog": func(t *testing.T, j evaluators.Jail, depth int) (any, error) {
		t.Helper()
		return j.Prolog(t.Context(), "c(1).\nc(2).\n?- ( "+levelsOf(depth, func(int, int) string {
			return "c(_), "
		})+"fail ; true ), return(done, true).", nil)
	},
}

// TestTreesOfCallsEndAtTheirLimit checks that a tree of 2^40 calls ends at the time limit or
// earlier. The control is a tree of a few calls, which ends without a limit.
func TestTreesOfCallsEndAtTheirLimit(t *testing.T) {
	skip.WithoutJail(t)
	for name, run := range trees {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := run(t, evaluators.Jail{}, 3); err != nil {
				t.Errorf("a small tree: %v, %v", got, err)
			}

			begun := time.Now()
			_, err := run(t, evaluators.Jail{Wall: 2 * time.Second, Memory: 64 << 20}, 40)
			var failure *evaluators.ProgramError
			if !errors.As(err, &failure) {
				t.Fatalf("a large tree ends with %v after %v", err, time.Since(begun))
			}
			switch {
			case failure.Kind == evaluators.Time, failure.Kind == evaluators.Memory, failure.Kind == evaluators.Died:
			case strings.Contains(failure.Message, "out of fuel"): // the limit of templates
			default:
				t.Errorf("a large tree ends with %v", err)
			}
		})
	}
}

package run_test

import (
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/tiers"
)

// TestSQLKnowsTheInputsOfItsLoop checks the function sql in a loop with a table and in one without.
func TestSQLKnowsTheInputsOfItsLoop(t *testing.T) {
	in := tiers.Input{Name: "in.csv", Text: bigtext.FromBytes("in.csv", []byte("id,amount\n1,2.5\n2,3.5\n"))}
	m := &models{script: []string{code(`FINAL(sql("select sum(amount) s from context")[0]["s"])`)}}
	answered(t, config(m, in), "6.0")

	prompt := m.requests[0].Messages[0].Content
	for _, part := range []string{
		"`sql(query, params=None)`", `table context or context_0 or "in": columns ["id INTEGER" "amount REAL"]`,
	} {
		if !strings.Contains(prompt, part) {
			t.Errorf("the prompt lacks %s:\n%s", part, prompt)
		}
	}

	m = &models{script: []string{code(`FINAL("sql" in globals())`)}}
	answered(t, config(m, text("no table")), "false")
	if prompt := m.requests[0].Messages[0].Content; strings.Contains(prompt, "sql(") {
		t.Errorf("the prompt has sql without a table:\n%s", prompt)
	}
}

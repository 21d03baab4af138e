package wiring

import (
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/tiers"
)

// TestARuleSeesEachCharacter checks rules against calls whose JSON could hide the tool's input from
// a rule.
func TestARuleSeesEachCharacter(t *testing.T) {
	for _, c := range []struct{ rule, args, named string }{
		{"deny shell matching &&", "", `"ls && rm"`},
		{"deny shell matching >", `"ls > x"`, ""},
		{"deny shell matching <script>", `"<script>"`, ""},
		{`deny shell matching \brm\b`, `"\u0072m x"`, ""},
		{`deny shell matching "cmd":"/etc`, "", `"/etc/passwd"`},
		{"deny shell matching 12345678901234567890", `12345678901234567890`, ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			r, err := parseRule(c.rule)
			if err != nil {
				t.Fatal(err)
			}
			call := tiers.Call{Function: "shell"}
			if c.args != "" {
				call.Args = []tiers.Value{tiers.Value(c.args)}
			}
			if c.named != "" {
				call.Named = map[string]tiers.Value{"cmd": tiers.Value(c.named)}
			}
			text, err := describeArguments(&call)
			if err != nil || !r.fits(&call, text, ledger.Spending{}, nil) {
				t.Errorf("%s does not fit %s (%v)", c.rule, text, err)
			}
		})
	}
}

func TestAnArgumentThatIsNotJSONIsRefused(t *testing.T) {
	call := tiers.Call{Function: "shell", Args: []tiers.Value{tiers.Value(`"a`)}}
	if text, err := describeArguments(&call); err == nil {
		t.Errorf("it is %s", text)
	}
}

func TestRulesThatCannotBeReadAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"allow":                    "want",
		"maybe send":               "want",
		"ask send above":           "want",
		"ask send above x":         "no amount",
		"ask send matching (":      "missing closing",
		"ask send hinted":          "want",
		"allow send hinted safe":   `"safe" is no hint: give read-only,`,
		"allow send hinted safe 1": "want",
	} {
		t.Run(text, func(t *testing.T) {
			if _, err := parseRule(text); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", text, err)
			}
		})
	}
}

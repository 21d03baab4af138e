package skip

import (
	"errors"
	"testing"
)

// verdicts records how a test was ended.
type verdicts struct {
	testing.TB
	how string
}

func (v *verdicts) Helper()               {}
func (v *verdicts) Skipf(string, ...any)  { v.how = "skipped" }
func (v *verdicts) Fatalf(string, ...any) { v.how = "failed" }

func TestRequiredTiersFailWhereOthersAreSkipped(t *testing.T) {
	unusable := errors.New("no jail here")
	for _, row := range []struct {
		required string
		err      error
		want     string
	}{
		{"", unusable, "skipped"},
		{"wasm,localhost", unusable, "skipped"},
		{"wasm,local", unusable, "failed"},
		{"local", unusable, "failed"},
		{"local", nil, ""},
	} {
		t.Setenv(requireTiers, row.required)
		v := &verdicts{}
		if WithoutTier(v, "local", row.err); v.how != row.want {
			t.Errorf("%s=%q, %v: %q, want %q", requireTiers, row.required, row.err, v.how, row.want)
		}
	}
}

package tiertest

import (
	"errors"
	"testing"

	"github.com/rlmhq/rlm/tiers"
)

// TestOnlyARejectionOfWhatNeverRanIsForgiven has errors that Run may return.
func TestOnlyARejectionOfWhatNeverRanIsForgiven(t *testing.T) {
	never := &tiers.RejectedError{Tier: "t", Effects: tiers.EffectsNeverRan}
	for name, row := range map[string]struct {
		may      bool
		err      error
		forgiven bool
	}{
		"never ran":              {true, never, true},
		"of a tier that may not": {false, never, false},
		"after effects":          {true, &tiers.RejectedError{Tier: "t", Effects: tiers.EffectsRan}, false},
		"that broke the tier":    {true, &tiers.BrokenError{Tier: "t", Err: never}, false},
		"another error":          {true, errors.New("no"), false},
		"no error":               {true, nil, false},
	} {
		s := &suite{opt: Options{MayReject: row.may}}
		if got := s.refused(row.err) != nil; got != row.forgiven {
			t.Errorf("%s: forgiven is %v", name, got)
		}
	}
}

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
		t.Setenv(RequireTiers, row.required)
		v := &verdicts{}
		if Require(v, "local", row.err); v.how != row.want {
			t.Errorf("%s=%q, %v: %q, want %q", RequireTiers, row.required, row.err, v.how, row.want)
		}
	}
}

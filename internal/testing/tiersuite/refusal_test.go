package tiersuite

import (
	"errors"
	"testing"

	"github.com/rlmhq/rlm/tiers"
)

// TestOnlyARejectionOfWhatNeverRanIsForgiven checks asRefusal with errors that Run may return.
func TestOnlyARejectionOfWhatNeverRanIsForgiven(t *testing.T) {
	never := &tiers.RejectedError{Tier: "t", Effects: tiers.EffectsNeverRan}
	for name, row := range map[string]struct {
		least    int
		err      error
		forgiven bool
	}{
		"never ran":              {1, never, true},
		"of a tier that may not": {0, never, false},
		"after effects":          {1, &tiers.RejectedError{Tier: "t", Effects: tiers.EffectsRan}, false},
		"that broke the tier":    {1, &tiers.BrokenError{Tier: "t", Err: never}, false},
		"another error":          {1, errors.New("no"), false},
		"no error":               {1, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &suite{opt: Options{MinAccepted: row.least}}
			if got := s.asRefusal(row.err) != nil; got != row.forgiven {
				t.Errorf("%s: forgiven is %v", name, got)
			}
		})
	}
}

//go:build unix

package local_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/local"
	"github.com/rlmhq/rlm/tiers/tiertest"
)

// TestAProcessIsKeptForTheNextSession checks that a first session, which finds the pool empty,
// makes the tier fill it.
func TestAProcessIsKeptForTheNextSession(t *testing.T) {
	for _, row := range []struct{ warm, kept int }{{0, 1}, {1, 1}, {-1, 0}} {
		t.Run(strconv.Itoa(row.warm), func(t *testing.T) {
			tier := newTier(t, local.Options{Python: os.Getenv("RLM_PYTHON"), Warm: row.warm})
			tiertest.Require(t, local.Name, tier.Probe(t.Context()))
			box, err := tier.Open(t.Context(), tiers.Config{})
			if err != nil {
				t.Fatal(err)
			}
			defer box.Close()
			if r, err := box.Run(t.Context(), tiers.Job{Source: "print(1)"}); err != nil || r.Stdout != "1\n" {
				t.Fatalf("%+v, %v", r, err)
			}

			for end := time.Now().Add(time.Minute); tier.Kept() < row.kept; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("%d processes are kept, not %d", tier.Kept(), row.kept)
				}
			}
			if tier.Kept() > row.kept {
				t.Errorf("%d processes are kept, not %d", tier.Kept(), row.kept)
			}
		})
	}
}

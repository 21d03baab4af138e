package stored

import (
	"testing"

	"github.com/rlmhq/rlm/repl/ledger"
)

func TestACostWithoutAPriceIsNotZero(t *testing.T) {
	for want, s := range map[string]ledger.Spending{
		"0.0000":  {Calls: 1},
		"0.2500":  {Calls: 1, USD: 0.25},
		"unknown": {Calls: 2, Unpriced: 1},
		"0.2500+": {Calls: 2, USD: 0.25, Unpriced: 1},
	} {
		t.Run(want, func(t *testing.T) {
			if got := showUSD(s); got != want {
				t.Errorf("%+v: %q, want %q", s, got, want)
			}
		})
	}
}

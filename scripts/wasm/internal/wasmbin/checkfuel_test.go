package wasmbin

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestFreeCodeIsFound checks modules that have the counter, but contain code that does not pay.
func TestFreeCodeIsFound(t *testing.T) {
	many := slices.Repeat(call(1), freeCalls)
	tests := map[string]struct {
		bodies [][]byte
		want   string
	}{
		"a loop":                  {[][]byte{once}, errFreeLoop.Error()},
		"a call by the table":     {[][]byte{callTable(0)}, errFreeCall.Error()},
		"a function calls itself": {[][]byte{call(0)}, "calls itself"},
		"two functions":           {[][]byte{call(1), call(0)}, "calls itself"},
		"many calls":              {[][]byte{many, {}}, "leads to 10001 calls"},
		"an unknown function":     {[][]byte{call(7)}, errUnknownCallee.Error()},
	}
	for what, tt := range tests {
		t.Run(what, func(t *testing.T) {
			m, _, err := parse(t, treeModule(tt.bodies...)).addFuelGlobal()
			if err != nil {
				t.Fatal(err)
			}
			err = m.CheckFuel(Import{"rlm", "yield"})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestCheckFuelNeedsTheCounter(t *testing.T) {
	m := parse(t, module(countdown))
	if err := m.CheckFuel(Import{"rlm", "yield"}); err == nil {
		t.Error("a module without fuel was accepted")
	}
	m, _, err := m.AddFuel(Import{"rlm", "yield"})
	if err := errors.Join(err, m.CheckFuel(Import{"rlm", "yield"})); err != nil {
		t.Error(err)
	}
}

package tiertest_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/rlmhq/rlm/tiers/tiertest"
)

// printing is a test that prints why it is skipped.
type printing struct{ testing.TB }

func (printing) Helper() {}

func (printing) Skipf(format string, args ...any) { fmt.Printf("SKIP: "+format+"\n", args...) }

// A test of a tier skips if the tier is not usable, and prints why.
func Example() {
	probe := func() error { return errors.New("no such device: /dev/kvm") }

	tiertest.Require(printing{}, "firecracker", probe())
	// Output: SKIP: tier firecracker is not usable here: no such device: /dev/kvm
}

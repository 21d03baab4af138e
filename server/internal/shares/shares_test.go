package shares

import (
	"fmt"
	"testing"
)

// fill takes as much as possible for a tenant.
func fill(p *Pool, tenant string) (n int64) {
	for p.Take(tenant, 1) {
		n++
	}
	return n
}

func TestEachFurtherTenantFindsAPlace(t *testing.T) {
	for most, want := range map[int64][]int64{
		1: {1, 0}, 2: {1, 1, 0}, 3: {2, 1, 0}, 4: {2, 1, 1, 0}, 16: {8, 4, 2, 1, 1, 0}, 256: {128, 64, 32, 16, 8, 4},
	} {
		t.Run(fmt.Sprint(most), func(t *testing.T) {
			p := New(most)
			for i, n := range want {
				if got := fill(p, fmt.Sprint(i)); got != n {
					t.Errorf("of %d, tenant %d gets %d, not %d", most, i, got, n)
				}
			}
		})
	}
}

func TestTenantsThatComeAndGoEndWithEqualShares(t *testing.T) {
	p := New(120)
	tenants := []string{"a", "b", "c"}
	for range 1_000 { // each tenant always tries to take more
		for _, tenant := range tenants {
			if !p.Take(tenant, 1) {
				p.Give(tenant, 1)
			}
		}
	}
	for _, tenant := range tenants {
		t.Run(tenant, func(t *testing.T) {
			if all, mine := p.Load(tenant); mine < 28 || mine > 32 || all > 93 {
				t.Errorf("%s has %d of %d", tenant, mine, all)
			}
		})
	}
}

func TestReturnedSharesAreForgotten(t *testing.T) {
	p := New(10)
	p.Take("a", 3)
	p.TakeAlways("b", 20)
	if p.Take("c", 1) || p.TakeFree("c", 1) {
		t.Error("more is given than there is")
	}
	p.Give("b", 20)
	if !p.TakeFree("a", 7) || p.TakeFree("b", 1) {
		t.Error("one that need not share gets all, and no more")
	}
	p.Give("a", 10)
	if all, mine := p.Load("a"); all != 0 || mine != 0 || len(p.of) != 0 {
		t.Errorf("%d, %d and %v are left", all, mine, p.of)
	}
}

func TestATenantGetsNoMoreThanItsBound(t *testing.T) {
	p := NewWithin(100, 3)
	if n := fill(p, "a"); n != 3 || !p.TakeFree("a", 97) {
		t.Errorf("it gets %d", n)
	}
}

func TestALargePieceLeavesAsMuchForOthers(t *testing.T) {
	p := New(100)
	if p.Take("a", 51) || !p.Take("a", 50) || p.Take("b", 26) || !p.Take("b", 25) {
		t.Error("a piece is too large, or refused")
	}
}

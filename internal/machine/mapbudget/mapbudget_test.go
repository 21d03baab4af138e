package mapbudget

import (
	"os"
	"strings"
	"sync"
	"testing"
)

func TestABudgetRefusesByName(t *testing.T) {
	b := New(160)
	if b.Limit() != 150 {
		t.Fatalf("the limit is %d", b.Limit())
	}
	if err := b.Take(149); err != nil {
		t.Fatal(err)
	}
	err := b.Take(2)
	if err == nil || !strings.Contains(err.Error(), "vm.max_map_count is 160") {
		t.Errorf("beyond the limit: %v", err)
	}
	if err := b.Take(1); err != nil {
		t.Errorf("a refusal has taken maps: %v", err)
	}

	b.Give(150)
	if b.Taken() != 0 {
		t.Errorf("%d maps are taken at the end", b.Taken())
	}
}

func TestUsersOfABudgetNeverPassItsLimit(t *testing.T) {
	b := New(1 << 10)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 1000 {
				if b.Take(200) == nil {
					if taken := b.Taken(); taken < 200 {
						t.Errorf("%d maps are taken", taken)
					}
					b.Give(200)
				}
			}
		})
	}

	group.Wait()
	if b.Taken() != 0 {
		t.Errorf("%d maps are taken at the end", b.Taken())
	}
}

func TestTheBudgetOfThisProcessIsTheKernels(t *testing.T) {
	text, err := os.ReadFile("/proc/sys/vm/max_map_count")
	if err != nil {
		t.Skip("this system has no limit of maps")
	}
	if err := Process().Take(Process().Limit() + 1); err == nil ||
		!strings.Contains(err.Error(), "vm.max_map_count is "+strings.TrimSpace(string(text))) {
		t.Errorf("the refusal: %v", err)
	}
}

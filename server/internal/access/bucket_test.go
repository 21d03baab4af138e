package access

import (
	"testing"
	"time"
)

func TestABucketAdmitsABurstAndThenARate(t *testing.T) {
	b, now := newBucket(2, 3), time.Unix(1_000, 0)
	for range 3 {
		if wait := b.take(now); wait != 0 {
			t.Fatalf("the burst waits for %v", wait)
		}
	}

	for range 2 { // a refusal costs nothing
		if wait := b.take(now); wait != 500*time.Millisecond {
			t.Fatalf("wait for %v", wait)
		}
	}
	now = now.Add(499 * time.Millisecond)
	if wait := b.take(now); wait <= 0 || wait > 2*time.Millisecond {
		t.Fatalf("wait for %v", wait)
	}
	if wait := b.take(now.Add(time.Millisecond)); wait != 0 {
		t.Fatalf("wait for %v", wait)
	}

	if wait := b.take(now.Add(-time.Hour)); wait <= 0 || wait > time.Second {
		t.Fatalf("after the clock went back, wait for %v", wait)
	}
	now = now.Add(24 * time.Hour)
	admitted := 0
	for b.take(now) == 0 {
		admitted++
	}
	if admitted != 3 {
		t.Errorf("a day later, %d at once", admitted)
	}
}

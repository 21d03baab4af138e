package wasm

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// TestEqualJobsTakeTheSameCourse checks that snippets that run twice with the same seeds and times
// have the same results.
func TestEqualJobsTakeTheSameCourse(t *testing.T) {
	e := readyEngine(t)
	began := time.Unix(1_500_000_000, 123_456_000)
	const source = `import os, random, time, uuid
print(time.time(), random.random(), uuid.uuid4(), os.urandom(4).hex())
assert 0 <= time.time() - 1_500_000_000 < 3600`
	run := func(jobs ...tiers.Job) string {
		box := openInternal(t, e)
		defer box.Close()
		var all strings.Builder
		for _, job := range jobs {
			job.Source = source
			result, err := box.Run(t.Context(), job)
			if err != nil || job.Seed != nil && result.Exception != nil {
				t.Fatal(err, result.Exception)
			}
			all.WriteString(result.Stdout)
		}
		return all.String()
	}

	one := tiers.Job{Seed: bytes.Repeat([]byte{1}, 32), Began: began}
	two := tiers.Job{Seed: bytes.Repeat([]byte{2}, 32), Began: began}
	first := run(one, two)
	if !strings.HasPrefix(first, "1500000000.123456 ") {
		t.Errorf("the first look at the clock is in %s", first)
	}
	if again := run(one, two); again != first {
		t.Errorf("the second time, %s; want %s", again, first)
	}
	if other := run(two, two); other == first {
		t.Error("another seed gives the same numbers")
	}

	// Without a seed, nothing of an earlier session remains.
	if a, b := run(tiers.Job{}), run(tiers.Job{}); a == b || strings.HasPrefix(a, "15000") {
		t.Errorf("without seeds: %s, %s", a, b)
	}
}

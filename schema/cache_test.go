package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
)

func TestCacheKeepsTheLatest(t *testing.T) {
	cache := newCache(3)
	parse := func(n int) *Contract {
		t.Helper()
		c, err := cache.parse(json.RawMessage(fmt.Sprintf(`{"minimum":%d}`, n)))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := parse(0)
	for n := range 3 {
		parse(n)
	}
	if parse(0) != first {
		t.Error("a contract in use was dropped")
	}
	parse(3) // drops 1, the least recently used
	if len(cache.byText) != 3 || parse(0) != first {
		t.Errorf("%d contracts", len(cache.byText))
	}
	if _, err := cache.parse(json.RawMessage(`{"type":3}`)); err == nil || len(cache.byText) != 3 {
		t.Errorf("a mistake is kept: %v", err)
	}
}

func TestCacheIsBoundedInBytes(t *testing.T) {
	cache := newCache(maxCached)
	for n := range 20 {
		text := fmt.Sprintf(`{"description":"%d%s"}`, n, strings.Repeat("x", 100_000))
		if _, err := cache.parse(json.RawMessage(text)); err != nil {
			t.Fatal(err)
		}
	}

	if len(cache.byText) != maxCacheBytes/100_000 || cache.bytes > maxCacheBytes {
		t.Errorf("%d contracts of %d bytes", len(cache.byText), cache.bytes)
	}
}

// TestConcurrentUse uses a cache and its contracts concurrently, for the race detector.
func TestConcurrentUse(t *testing.T) {
	cache := newCache(2)
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for n := range 50 {
				text := fmt.Sprintf(`{"items":{"type":"integer","minimum":%d}}`, (n+worker)%4)
				c, err := cache.parse(json.RawMessage(text))
				if err != nil {
					t.Error(err)
					return
				}

				if value, violations, err := c.Check(json.RawMessage(`["7",8.0]`)); err != nil ||
					string(value) != "[7,8]" {
					t.Errorf("%s, %v, %v", value, violations, err)
				}

				c.Describe()
			}
		})
	}

	group.Wait()
}

// TestRegexValuesLeaveNoTrace checks that concurrent checks, which compile values of the format
// "regex", do not change the results of later checks.
func TestRegexValuesLeaveNoTrace(t *testing.T) {
	c := mustParse(t, `{"type":"string","format":"regex"}`)
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for n := range 20 {
				value := fmt.Sprintf(`"%d[a-z]{900}"`, 100*worker+n)
				if _, violations, err := c.Check(json.RawMessage(value)); err != nil ||
					len(violations) > 0 {
					t.Errorf("%s: %v, %v", value, violations, err)
				}
			}
		})
	}

	group.Wait()
	if _, violations, err := c.Check(json.RawMessage(`"("`)); err != nil || len(violations) != 1 {
		t.Errorf("%v, %v", violations, err)
	}
}

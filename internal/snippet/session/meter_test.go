package session

import (
	"math"
	"testing"
	"time"
)

// counter is a Processor whose time a test sets.
type counter struct{ used time.Duration }

func (c *counter) Processor() time.Duration { return c.used }

// TestWorkBehindACallIsCharged plays periods with and without a pending call, in which the guest
// computes, and checks how much computing is found to be hidden behind a call.
func TestWorkBehindACallIsCharged(t *testing.T) {
	type stretch struct{ waited, worked, computed, hidden time.Duration }
	for name, stretches := range map[string][]stretch{
		"it only waits": {
			{waited: 100},
			{waited: 100, computed: 1, hidden: 1},
			{waited: 100},
		},
		"it works behind the call": {{waited: 10}, {
			waited: 100, computed: 100,
			hidden: 100,
		}},
		"it works and waits in turn": {
			{waited: 10},
			{worked: 50, waited: 50, computed: 50},
			{worked: 50, waited: 50, computed: 50},
		},
		"it works in both": {{waited: 10}, {
			worked: 50, waited: 50, computed: 100,
			hidden: 50,
		}},
		"more processors than one": {{waited: 10}, {
			waited: 100, computed: 400,
			hidden: 100,
		}},
		"an answer that comes late": {{waited: 10}, {waited: 90}, {
			waited: 10, computed: 100,
			hidden: 100,
		}},
		"what it did before is not hidden": {{waited: 10, computed: 500}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &counter{used: 1000}
			p := processorTime{source: c}
			for i, s := range stretches {
				c.used += s.computed
				p.hidden(0, s.worked)
				if got := p.hidden(s.waited, 0); got != s.hidden {
					t.Errorf("%s, stretch %d: %v is hidden, want %v", name, i, got, s.hidden)
				}
			}
		})
	}

	if got := (&processorTime{}).hidden(100, 0); got != 0 {
		t.Errorf("nobody counts, and %v is hidden", got)
	}
}

// TestASourceThatLiesIsBounded checks a guest whose processor time falls, leaps, or has the largest
// possible value.
func TestASourceThatLiesIsBounded(t *testing.T) {
	const offset, own = 3 * time.Second, 5 * time.Second
	for name, row := range map[string]struct{ from, known, want time.Duration }{
		"honest":   {1, 1 + time.Second, offset + time.Second},
		"it falls": {time.Hour, 1, offset},
		"it leaps": {1, time.Hour, own},
		"the most": {1, math.MaxInt64, own},
	} {
		t.Run(name, func(t *testing.T) {
			p := processorTime{sole: true, offset: offset, from: row.from, known: row.known}
			if used, known := p.used(own); !known || used != row.want {
				t.Errorf("%s: %v (known: %v), want %v", name, used, known, row.want)
			}
		})
	}

	p := processorTime{sole: true, offset: offset, from: 1, known: 2}
	if used, _ := p.used(-time.Second); used != 0 {
		t.Errorf("%v is used of no time", used)
	}
}

// Package stwait measures how long Go waited until all goroutines had stopped, for a garbage
// collection or for statistics. One guest that does not yield its processor makes all goroutines
// wait.
package stwait

import (
	"runtime/metrics"
	"time"
)

// Waits are all waits of the process since its start.
type Waits []*metrics.Float64Histogram

// Read returns the waits until now.
func Read() Waits {
	samples := []metrics.Sample{
		{Name: "/sched/pauses/stopping/gc:seconds"}, {Name: "/sched/pauses/stopping/other:seconds"},
	}
	metrics.Read(samples)
	var all Waits
	for _, s := range samples {
		h := s.Value.Float64Histogram()
		all = append(all, &metrics.Float64Histogram{Counts: h.Counts, Buckets: h.Buckets})
	}
	return all
}

// Longest returns the longest wait since an earlier reading. It returns the upper bound of the
// wait's bucket, which is up to a quarter too high.
func (w Waits) Longest(before Waits) time.Duration {
	longest := 0.0
	for i, h := range w {
		for k, count := range h.Counts {
			if count > before[i].Counts[k] {
				longest = max(longest, h.Buckets[k+1])
			}
		}
	}
	return time.Duration(longest * float64(time.Second))
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// tally counts the outcomes of one load. It is safe for concurrent use.
type tally struct {
	clients int
	begun   time.Time
	span    time.Duration
	memory  []int64 // this process's memory in bytes, sampled each second

	mu      sync.Mutex
	times   map[string][]time.Duration // times of correct verdicts, by kind
	right   int
	refused int
	wrong   []string
}

func newTally(clients int) *tally {
	return &tally{clients: clients, begun: time.Now(), times: map[string][]time.Duration{}}
}

func (t *tally) add(o outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case o.refused:
		t.refused++
	case o.wrong != "":
		t.wrong = append(t.wrong, o.kind+": "+o.wrong)
	default:
		t.right++
		t.times[o.kind] = append(t.times[o.kind], o.took)
	}
}

// rate returns the number of correct verdicts per second.
func (t *tally) rate() float64 { return float64(t.right) / t.span.Seconds() }

// quantile returns the time within which a given fraction of the snippets of a kind ended.
func (t *tally) quantile(kind string, part float64) time.Duration {
	times := t.times[kind]
	if len(times) == 0 {
		return 0
	}

	slices.Sort(times)
	return times[int(part*float64(len(times)-1))]
}

// growth returns the ratio of the memory in the last quarter to that in the second.
func (t *tally) growth() float64 {
	n := len(t.memory) / 4
	if n == 0 {
		return 1
	}
	return mean(t.memory[3*n:]) / mean(t.memory[n:2*n])
}

func mean(values []int64) float64 {
	sum := int64(0)
	for _, v := range values {
		sum += v
	}
	return float64(sum) / float64(len(values))
}

// The goals for the second load.
const (
	mostGrowth  = 1.1  // maximum growth of the memory
	shortGrowth = 2    // maximum growth while new sessions still fill up
	mostSpread  = 20   // p99 of small snippets divided by their median
	leastOutput = 0.90 // minimum share of the capacity
)

// report prints both loads.
func report(w io.Writer, alone, many *tally) {
	fmt.Fprintln(w, "| Clients | Right verdicts | Wrong | Refused | A second | Small: median | p99 | Memory |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|")
	for _, t := range []*tally{alone, many} {
		fmt.Fprintf(w, "| %d | %d | %d | %d | %.0f | %s | %s | %.0f MiB, then %.2f x |\n",
			t.clients, t.right, len(t.wrong), t.refused, t.rate(),
			t.quantile(small, 0.5).Round(10*time.Microsecond),
			t.quantile(small, 0.99).Round(10*time.Microsecond),
			mean(t.memory)/(1<<20), t.growth())
	}

	fmt.Fprintln(w, "\n| Under load | Median | p99 |\n|---|---|---|")
	for _, k := range mix {
		fmt.Fprintf(w, "| %s | %s | %s |\n", k.name, many.quantile(k.name, 0.5).Round(time.Millisecond/10),
			many.quantile(k.name, 0.99).Round(time.Millisecond/10))
	}
}

// findWrong returns an error if verdicts were wrong.
func (t *tally) findWrong() error {
	if len(t.wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d verdicts with %d clients are wrong:\n  %s", len(t.wrong),
		t.right+len(t.wrong), t.clients, strings.Join(t.wrong[:min(len(t.wrong), 20)], "\n  "))
}

// findLeak returns an error if the memory grew by more than the factor most.
func (t *tally) findLeak(most float64) error {
	if g := t.growth(); g > most {
		return fmt.Errorf("the memory grew to %.2f x; at most %.2f x is allowed", g, most)
	}
	return nil
}

// compare returns an error if the load made the times vary too much, or reduced the throughput too
// much.
func compare(alone, many *tally) error {
	var errs []error
	median, p99 := many.quantile(small, 0.5), many.quantile(small, 0.99)
	if p99 > mostSpread*median {
		errs = append(errs, fmt.Errorf("the p99 of small snippets is %s, more than %d times the median %s",
			p99, mostSpread, median))
	}

	if part := many.rate() / alone.rate(); part < leastOutput {
		errs = append(errs, fmt.Errorf("under load the engine gives %.0f %% of its capacity, %.0f %% is demanded",
			100*part, 100*leastOutput))
	}
	return errors.Join(errs...)
}

// watchMemory samples the memory of this process each second until the context ends.
func watchMemory(ctx context.Context) <-chan []int64 {
	out := make(chan []int64, 1)
	go func() {
		var samples []int64

		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				samples = append(samples, residentBytes())
			case <-ctx.Done():
				out <- append(samples, residentBytes())
				return
			}
		}
	}()
	return out
}

// residentBytes returns the memory of this process, counting each page once, however many sandboxes
// map it. It is 0 if /proc does not report the memory.
func residentBytes() int64 {
	f, err := os.Open("/proc/self/smaps_rollup")
	if err != nil {
		return 0
	}
	defer f.Close()

	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var kib int64
		if _, err := fmt.Sscanf(lines.Text(), "Pss: %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	return 0
}

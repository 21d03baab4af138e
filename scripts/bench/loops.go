package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// loopRow is a line of the table that a Go benchmark measures.
type loopRow struct {
	benchmark, unit string
	what            string
	show            string  // how the figure is written
	atMost          float64 // 0 for a figure that has no bound
}

var loopRows = []loopRow{
	{
		"BenchmarkSubCalls", "ideal",
		"1,000 sub-calls of a snippet, 64 at a time as by default, by HTTP to a server that takes 50 ms",
		"%.2f x the ideal time", 1.1,
	},
	{"BenchmarkTurn", "ms/turn", "a turn of the loop, without model and snippet", "%.2f ms", 2},
	{
		"BenchmarkRunsAtOnce", "KiB/run",
		"100 runs at once, all finished: memory per run on the host's heap", "%.0f KiB", 0,
	},
	{"BenchmarkSubLoop", "ms/loop", "a sub-loop with a typed answer, start to end", "%.2f ms", 5},
	{"BenchmarkCheck1KB", "ns/op", "check of a 1 KB value against its contract", "%.0f ns", 50_000},
}

// loops has the Go benchmarks of the loop measured, and puts what they report into
// the table.
func (b *bench) loops() error {
	cmd := exec.CommandContext(b.ctx, "go", "test", "-run", "^$", "-bench",
		"^Benchmark(SubCalls|Turn|SubLoop|RunsAtOnce|Check1KB)$", "./repl/run", "./schema")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("cannot measure the loop: %w\n%s", err, out)
	}

	found := metrics(out)
	for _, r := range loopRows {
		value, ok := found[r.benchmark+" "+r.unit]
		if !ok {
			return fmt.Errorf("%s reports no %s", r.benchmark, r.unit)
		}

		reach := "stated"
		if r.atMost > 0 {
			reach = "<= " + fmt.Sprintf(r.show, r.atMost)
		}
		b.addPlain(r.what, fmt.Sprintf(r.show, value), reach, r.atMost == 0 || value <= r.atMost)
	}
	return nil
}

// metrics are the figures in the output of go test -bench, by name and unit.
func metrics(out []byte) map[string]float64 {
	found := map[string]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}

		name, _, _ := strings.Cut(fields[0], "-")
		for i := 2; i+1 < len(fields); i += 2 {
			if value, err := strconv.ParseFloat(fields[i], 64); err == nil {
				found[name+" "+fields[i+1]] = value
			}
		}
	}
	return found
}

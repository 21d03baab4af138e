package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// goRow is a row of the table that a Go benchmark measures.
type goRow struct {
	benchmark, unit string
	what            string
	show            string  // how the figure is formatted
	atMost          float64 // 0 for a figure without a bound
	scale           float64 // from the unit to the figure; 0 for 1
}

const subCalls = "1,000 sub-calls of a snippet by HTTP to a server that takes 50 ms"

var fanOutRows = []goRow{
	{"BenchmarkSubCalls", "ideal", subCalls + ", at the default width", "%.2f x the ideal time", 1.1, 0},
	{"BenchmarkSubCalls", "ms/usual", subCalls + ", at the default width", "%.0f ms", 0, 0},
	{"BenchmarkSubCalls", "ms/earlier", subCalls + ", 16 at a time", "%.0f ms", 0, 0},
}

var loopRows = []goRow{
	{"BenchmarkTurn", "ms/turn", "a turn of the loop, without model and snippet", "%.2f ms", 2, 0},
	{
		"BenchmarkRunsAtOnce", "KiB/run",
		"100 runs at once, all finished: memory per run on the host's heap", "%.0f KiB", 0, 0,
	},
	{"BenchmarkSubLoop", "ms/loop", "a sub-loop with a typed answer, start to end", "%.2f ms", 5, 0},
}

var contractRows = []goRow{
	{"BenchmarkCheck1KB", "ns/op", "check of a 1 KB value against its contract", "%.0f ns", 50_000, 0},
}

var viewerRows = []goRow{
	{
		"BenchmarkFirstPaint", "ms/paint", "a run of 10,000 nodes: from the request of the page to its first frame",
		"%.0f ms", 1000, 0,
	},
	{"BenchmarkScroll", "ms/frame", "the median frame while 100,000 nodes scroll", "%.1f ms", 16, 0},
}

var serveRows = []goRow{
	{
		"BenchmarkExec", "ms/p50", "POST exec of print(1+1) in a live session over loopback, median",
		"%.2f ms", 0.5, 0,
	},
	{
		"BenchmarkNewSession", "ms/p50", "a new session and its first snippet over loopback, median",
		"%.1f ms", 2, 0,
	},
	{"BenchmarkManyClients", "snippets/s", "snippets of 64 clients", "%.0f a second", 0, 0},
	{
		"BenchmarkManyClients", "inverse", "64 clients: time against an engine in process", "%.2f x", 2, 0,
	},
	{
		"BenchmarkIdleSessions", "MiB", "2,000 sessions that rest: memory of the server and its workers",
		"%.0f MiB", 1024, 0,
	},
	{"BenchmarkIdleSessions", "ms/p99", "a snippet that brings one of them back, p99", "%.0f ms", 50, 0},
	{
		"BenchmarkServedRuns", "ideal",
		"100 runs at once over HTTP, each with 22 model calls of 50 ms, one after the other", "%.2f x the ideal time",
		1.1, 0,
	},
	{
		"BenchmarkWatchers", "events/s", "500 watchers of one run: events that reach them, none lost", "%.0f a second",
		0, 0,
	},
}

// serve measures a server with workers.
func (b *bench) serve() error { return b.measureGo(serveRows, "./server") }

// viewer measures the viewer in Chromium.
func (b *bench) viewer() error { return b.measureGo(viewerRows, "./scripts/checks/browser") }

// fanOut, loops and contracts run the benchmarks of the loop and its parts.
func (b *bench) fanOut() error { return b.measureGo(fanOutRows, ".") }

func (b *bench) loops() error { return b.measureGo(loopRows, "./repl/run") }

func (b *bench) contracts() error { return b.measureGo(contractRows, "./schema") }

// msPerNs is the factor from nanoseconds to milliseconds.
const msPerNs = 1e-6

var commitRows = []goRow{{
	"BenchmarkCommit", "ns/op", "the commit of a turn: 16 KiB of messages, a state of 64 KiB",
	"%.1f ms", 5, msPerNs,
}}

var durableRows = []goRow{
	{
		"BenchmarkSnapshot10MiB", "ns/op", "the snapshot of a session with 10 MiB of changes",
		"%.0f ms", 30, msPerNs,
	},
	{"BenchmarkRestore10MiB", "ns/op", "a new session with this snapshot", "%.0f ms", 20, msPerNs},
	{"BenchmarkListRuns", "ns/op", "100 of 10,000 runs, by status and text", "%.1f ms", 20, msPerNs},
	{
		"BenchmarkResume100", "ms/resume", "a run of 100 turns goes on: from a new engine to the next model call",
		"%.0f ms", 500, 0,
	},
}

// commits and durable run the benchmarks of durable runs.
func (b *bench) commits() error { return b.measureGo(commitRows, "./internal/keep/runlog") }

func (b *bench) durable() error { return b.measureGo(durableRows, ".") }

// measureGo runs Go benchmarks of a package, and adds their results to the table.
func (b *bench) measureGo(rows []goRow, folder string) error {
	var names []string
	for _, r := range rows {
		if !slices.Contains(names, r.benchmark) {
			names = append(names, r.benchmark)
		}
	}
	// The command runs in the folder, whose module can be that of the scripts.
	cmd := exec.CommandContext(
		b.ctx, "go", "test", "-C", folder, "-run", "^$", "-bench", "^("+strings.Join(names, "|")+")$",
	)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("cannot run the benchmarks: %w\n%s", err, out)
	}

	found := metrics(out)
	for _, r := range rows {
		value, ok := found[r.benchmark+" "+r.unit]
		if !ok {
			return fmt.Errorf("%s reports no %s", r.benchmark, r.unit)
		}

		if r.scale != 0 {
			value *= r.scale
		}
		reach := "stated"
		if r.atMost > 0 {
			reach = "<= " + fmt.Sprintf(r.show, r.atMost)
		}
		b.addPlain(r.what, fmt.Sprintf(r.show, value), reach, r.atMost == 0 || value <= r.atMost)
	}
	return nil
}

// metrics returns the figures in the output of go test -bench, by name and unit.
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

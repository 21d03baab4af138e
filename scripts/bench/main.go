// Command bench measures the figures in docs/reference/performance.md: this project compared with
// native CPython, grep and itself, in one run, so that the ratios are meaningful on a noisy
// machine.
//
//	scripts/run.sh bench -python python3.13 -text big.txt -texts long.txt -rlm bin/rlm
//	scripts/run.sh bench -only docker
//	scripts/run.sh bench -only engine -python python3.13 -texts long.txt
//	scripts/run.sh bench -only embed
//	scripts/run.sh bench -only wasm -python python3.13 -rlm bin/rlm
//	scripts/run.sh bench -only loops
//	scripts/run.sh bench -only durable
//	scripts/run.sh bench -only serve
//	scripts/run.sh bench -only viewer
//	scripts/run.sh bench -only texts -python python3.13 -texts long.txt
//	scripts/run.sh bench -only graph -python VENV/bin/python
//	scripts/run.sh bench -only documents -python VENV/bin/python
//	scripts/run.sh bench -only tables -python python3.13 -duckdb VENV/bin/python -rlm bin/rlm
//	scripts/run.sh bench -only peers -python python3.13 -text big.txt -pyodide FOLDER
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/wasm"
)

// bench holds what the measurements share.
type bench struct {
	ctx    context.Context
	tier   tiers.Tier
	python string // native CPython
	text   string // the path of a large text
	texts  string // the path of the text for operations on long texts
	rlm    string // the command
	docker string // address of the Docker daemon; empty for the system's

	duckdb    string // a Python that has DuckDB
	tableSize string // the table's size, in bytes
	cases     string // a pattern that selects the cases of the table

	pyodide string // a folder in which npm has installed pyodide

	graph, folder string // for a process that measureGraphs starts

	through string // the entry point being measured
	rows    []row
}

// part measures some rows of the table.
type part struct {
	through string // the measured entry point: a package, or the command
	measure func() error
}

// row is one line of the table.
type row struct {
	what, through, measured, against, ratio, reach string
	met                                            bool
}

func main() {
	b := &bench{}
	flag.StringVar(&b.python, "python", os.Getenv("RLM_PYTHON"), "native CPython 3.13")
	flag.StringVar(&b.text, "text", "", "a text of 1 GiB, from scripts/corpus")
	flag.StringVar(&b.texts, "texts", "", "the text of the operations on long texts")
	flag.StringVar(&b.rlm, "rlm", "bin/rlm", "the command")
	flag.StringVar(&b.pyodide, "pyodide", "", "a folder in which npm has installed pyodide")
	flag.StringVar(&b.duckdb, "duckdb", "", "a Python that has DuckDB")
	flag.StringVar(&b.tableSize, "table-size", "67108864", "the size of the table in CSV, in bytes")
	flag.StringVar(&b.cases, "cases", "", "the readings of the table that match this alone")
	flag.StringVar(&b.graph, "graph", "", "what the process of -only graph-child answers")
	flag.StringVar(&b.folder, "folder", "", "the data of -only graph-child")
	only := flag.String("only", "", "docker measures that tier alone, engine sessions of rlm.New,"+
		" loops what a loop takes beside its model, graph and documents what they are beside other"+
		" engines, peers the table of the README")
	flag.Parse()
	b.docker = os.Getenv("DOCKER_HOST")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	b.ctx = ctx
	err := b.run(*only)
	stop()

	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// alone returns the part that -only names, if any.
func (b *bench) alone(only string) (p part, ok bool) {
	p, ok = map[string]part{
		"docker":    {"tiers/docker", b.containers},
		"embed":     {"rlm.New", b.embed},
		"serve":     {"rlm serve", b.serve},
		"viewer":    {"viewer", b.viewer},
		"graph":     {"graph", b.measureGraphs},
		"documents": {"internal/data/documents", b.measureDocuments},
		"tables":    {"the command", b.measureTables},
	}[only]
	return p, ok
}

func (b *bench) run(only string) error {
	if p, ok := b.alone(only); ok {
		return b.runAll(p)
	}

	switch only {
	case "engine":
		if b.python == "" || b.texts == "" {
			return fmt.Errorf("give -python and -texts")
		}
		return b.runAll(part{"rlm.New", b.sessions})
	case "durable":
		return b.runAll(b.durableParts()...)
	case "loops":
		return b.runAll(b.loopParts()...)
	case "wasm":
		return b.measureEngines()
	case "hashes":
		return b.measureHashes()
	case "graph-child":
		return serveGraph(b.ctx, b.graph, b.folder, os.Stdin, os.Stdout)
	case "", "peers", "texts":
	default:
		return fmt.Errorf("-only %s: there are docker, documents, durable, embed, engine, graph, hashes, loops, "+
			"peers, serve, tables, texts, viewer and wasm", only)
	}

	switch {
	case b.python == "":
		return fmt.Errorf("give -python")
	case b.text == "" && only != "texts":
		return fmt.Errorf("give -text")
	case b.texts == "" && only != "peers":
		return fmt.Errorf("give -texts")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	b.tier = wasm.New(wasm.Options{CacheDir: filepath.Join(cache, "rlm")})
	defer b.tier.Close()
	if err := b.tier.Warm(b.ctx); err != nil {
		return err
	}

	switch only {
	case "peers":
		return b.peers()
	case "texts":
		return b.runAll(part{"tiers", b.measureTexts})
	}
	return b.runAll(slices.Concat([]part{
		{"tiers/wasm", b.start},
		{"tiers/wasm", b.throughput},
		{"tiers/wasm", b.density},
		{"tiers/wasm", b.snippet},
		{"tiers/wasm", b.hostCalls},
		{"tiers/wasm", b.compute},
		{"tiers/wasm", b.scan},
		{"the command", b.command},
		{"rlm.New", b.embed},
		{"internal/plan/analyser/python", b.analysis},
		{"tiers", b.warmTiers},
		{"rlm.New", b.sessions},
		{"router", b.routing},
		{"tiers/docker", b.containers},
	}, b.loopParts(), b.durableParts(), []part{{"tiers", b.measureTexts}})...)
}

// loopParts returns the parts about the loop.
func (b *bench) loopParts() []part {
	return []part{{"rlm.New", b.fanOut}, {"repl/run", b.loops}, {"schema", b.contracts}}
}

// durableParts returns the parts about durable runs.
func (b *bench) durableParts() []part {
	return []part{{"internal/keep/runlog", b.commits}, {"rlm.New", b.durable}}
}

// runAll measures and prints the table.
func (b *bench) runAll(parts ...part) error {
	for _, p := range parts {
		b.through = p.through
		if err := p.measure(); err != nil {
			return err
		}
	}
	b.print()
	return nil
}

// add records a ratio that must not exceed a bound.
func (b *bench) add(what, measured, against string, ratio, atMost float64) {
	r := row{
		what:     what,
		through:  b.through,
		measured: measured,
		against:  against,
		ratio:    fmt.Sprintf("%.3g x", ratio),
		reach:    fmt.Sprintf("<= %g x", atMost),
		met:      ratio <= atMost,
	}
	b.rows = append(b.rows, r)
	fmt.Fprintf(os.Stderr, "%s: %s against %s: %s\n", what, measured, against, r.ratio)
}

// addPlain records a figure with a bound but no counterpart.
func (b *bench) addPlain(what, measured, reach string, met bool) {
	b.rows = append(b.rows, row{
		what: what, through: b.through, measured: measured,
		against: "-", ratio: "-", reach: reach, met: met,
	})
	fmt.Fprintf(os.Stderr, "%s: %s\n", what, measured)
}

// skip records that a figure cannot be measured here.
func (b *bench) skip(what string, why error) {
	reason, _, _ := strings.Cut(why.Error(), "\n")
	b.rows = append(b.rows, row{
		what: what, through: b.through, measured: "skipped: " + reason,
		against: "-", ratio: "-", reach: "-",
	})
	fmt.Fprintf(os.Stderr, "%s: skipped: %s\n", what, reason)
}

func (b *bench) print() {
	if len(b.rows) == 0 {
		return
	}
	lines := [][]string{{"what", "through", "measured", "against", "ratio", "reach", "met"}}
	for _, r := range b.rows {
		met := "no"
		switch {
		case r.met:
			met = "yes"
		case r.reach == "-": // skipped
			met = "-"
		}
		lines = append(lines, []string{r.what, r.through, r.measured, r.against, r.ratio, r.reach, met})
	}
	printTable(lines)
}

// printTable prints rows of cells as Markdown. The first row is the header.
func printTable(lines [][]string) {
	for i, cells := range lines {
		fmt.Print("|")
		for _, cell := range cells {
			fmt.Printf(" %s |", strings.ReplaceAll(cell, "|", `\|`)) // necessary even in code
		}
		fmt.Println()
		if i == 0 {
			fmt.Println("|" + strings.Repeat(" --- |", len(cells)))
		}
	}
}

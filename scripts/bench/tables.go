package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"time"
)

const (
	tableRuns  = 3
	tableReach = 1.3 // times native CPython
	sqlReach   = 10  // times DuckDB, which is native code on all processors
	tablesPy   = "scripts/tables/rows.py"
)

// tableCase is one way to read a table, in Python (as the name of a function in rows.py) and in a
// snippet.
type tableCase struct {
	what, function, file, snippet string
	reach                         float64
}

var tableCases = []tableCase{
	{"JSON Lines", "read_json_lines", "rows.jsonl", "sum(row['id'] for row in context.json_lines())", tableReach},
	{
		"json.loads for each line", "read_json_lines", "rows.jsonl",
		"sum(json.loads(line)['id'] for line in context.lines())", tableReach,
	},
	{"lines", "count_lines", "rows.csv", "sum(1 for line in context.lines())", tableReach},
	{
		"csv.DictReader", "read_dicts", "rows.csv",
		"sum(len(row['city']) for row in csv.DictReader(context.lines()))", tableReach,
	},
	{"csv.reader", "read_lists", "rows.csv", "sum(len(row[3]) for row in csv.reader(context.lines()))", tableReach},
	{"table()", "read_dicts", "rows.csv", "sum(len(row['city']) for row in context.table())", tableReach},
	{
		"sql, GROUP BY, beside DuckDB", "group", "rows.csv",
		"[[r['city'], r['n'], round(r['total']), r['last'][:10]] for r in sql('select city, count(*) n, " +
			"sum(amount) total, max(time) last from context group by city order by city')]", sqlReach,
	},
}

// timedSnippet is code that prints how long an expression takes, including the first read of a
// context.
const timedSnippet = "import csv, json, time\nbegun = time.perf_counter()\nresult = %s\n" +
	"print(json.dumps({'seconds': time.perf_counter() - begun, 'result': result}))"

// timed is the result of one side.
type timed struct {
	Seconds float64
	Result  any
}

// measureTables compares the reading and querying of tables with native CPython and DuckDB, and of
// a compressed table with zgrep. It takes the best of several runs, in turns.
func (b *bench) measureTables() error {
	if b.python == "" || b.duckdb == "" {
		return errors.New("give -python and -duckdb")
	}
	folder, err := os.MkdirTemp("", "rlm-bench-tables")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	made := exec.CommandContext(b.ctx, b.python, tablesPy, "make", folder, fmt.Sprint(b.tableSize))
	if out, err := made.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}

	cases, err := regexp.Compile(b.cases)
	if err != nil {
		return err
	}
	if cases.MatchString("gzip") {
		if err := b.measureGzip(folder); err != nil {
			return err
		}
	}
	for _, c := range tableCases {
		python := b.python
		if c.function == "group" {
			python = b.duckdb
		}
		for _, tier := range []string{"wasm", "local"} {
			what := c.what + ", tier " + tier
			if !cases.MatchString(what) {
				continue
			}
			var here, there timed
			for range tableRuns {
				snippet := fmt.Sprintf(timedSnippet, c.snippet)
				err := errors.Join(
					b.timeTable(&there, python, tablesPy, c.function, folder),
					b.timeTable(&here, b.rlm, "exec", "--quiet", "--tier", tier, "--timeout", "1h",
						"--context", filepath.Join(folder, c.file), "-c", snippet),
				)
				if err != nil {
					return fmt.Errorf("%s: %w", what, err)
				}
				if !reflect.DeepEqual(here.Result, there.Result) {
					return fmt.Errorf("%s: %v, not %v", c.what, here.Result, there.Result)
				}
			}
			b.add(what, formatSeconds(here.Seconds), formatSeconds(there.Seconds),
				here.Seconds/there.Seconds, c.reach)
		}
	}
	return nil
}

// timeTable runs a command that prints its time, and keeps the best.
func (b *bench) timeTable(best *timed, command string, args ...string) error {
	out, err := exec.CommandContext(b.ctx, command, args...).Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return fmt.Errorf("%w: %s", err, failed.Stderr)
	}
	if err != nil {
		return err
	}

	var run timed
	if err := json.Unmarshal(out, &run); err != nil {
		return err
	}
	if best.Result == nil || run.Seconds < best.Seconds {
		*best = run
	}
	return nil
}

func formatSeconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Millisecond).String()
}

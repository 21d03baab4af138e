package main

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const gzipReach = 1 // times zgrep

// measureGzip counts lines of the packed table, as a user does with zgrep: whole commands, the best
// of some runs in turns.
func (b *bench) measureGzip(folder string) error {
	plain := filepath.Join(folder, "rows.jsonl")
	if out, err := exec.CommandContext(b.ctx, "gzip", "-kf", plain).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}

	const word = `"status": "error"`
	var here, there whole
	for range tableRuns {
		err := errors.Join(
			b.timeCommand(&there, "zgrep", "-c", word, plain+".gz"),
			b.timeCommand(&here, b.rlm, "exec", "--quiet", "--tier", "wasm", "--max-ratio", "1000",
				"--context", plain+".gz", "-c", fmt.Sprintf("print(context.count('%s'))", word)),
		)
		if err != nil {
			return err
		}
		if here.out != there.out {
			return fmt.Errorf("count in gzip: %s, not %s", here.out, there.out)
		}
	}
	b.add("count in gzip, beside zgrep -c", formatSeconds(here.seconds), formatSeconds(there.seconds),
		here.seconds/there.seconds, gzipReach)
	return nil
}

// whole is the outcome of a command, and the time that it takes with its start.
type whole struct {
	seconds float64
	out     string
}

// timeCommand runs a command and keeps the best.
func (b *bench) timeCommand(best *whole, command string, args ...string) error {
	begun := time.Now()
	out, err := exec.CommandContext(b.ctx, command, args...).Output()
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	run := whole{time.Since(begun).Seconds(), strings.TrimSpace(string(out))}
	if best.out == "" || run.seconds < best.seconds {
		*best = run
	}
	return nil
}

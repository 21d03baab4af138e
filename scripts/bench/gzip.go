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

// measureGzip times whole commands that count lines of the compressed table, compared with zgrep.
// It takes the best of several runs, in turns.
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
	const what = "count in gzip, beside zgrep -c"
	b.add(what, formatSeconds(here.seconds), formatSeconds(there.seconds), here.seconds/there.seconds, gzipReach)
	b.add(what+": processors' time", formatSeconds(here.busy), formatSeconds(there.busy),
		here.busy/there.busy, gzipReach)
	return nil
}

// whole is the result of a command, and its duration including the start.
type whole struct {
	seconds float64
	busy    float64 // processor seconds, which other programs affect less
	out     string
}

// timeCommand runs a command and keeps the better of both times.
func (b *bench) timeCommand(best *whole, command string, args ...string) error {
	begun := time.Now()
	process := exec.CommandContext(b.ctx, command, args...)
	out, err := process.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}

	seconds := time.Since(begun).Seconds()
	busy := (process.ProcessState.UserTime() + process.ProcessState.SystemTime()).Seconds()
	if best.out == "" {
		best.seconds, best.busy = seconds, busy
	}
	*best = whole{min(best.seconds, seconds), min(best.busy, busy), strings.TrimSpace(string(out))}
	return nil
}

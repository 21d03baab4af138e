package main

import (
	"embed"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/wasm"
)

// programFiles are programs whose function run computes. None of the programs was used to profile
// the machine code.
//
//go:embed programs
var programFiles embed.FS

// known are the eight programs with which prototypes were compared. The remaining programs are
// called the others.
var known = []string{
	"fib", "json_rows", "regex", "nbody", "words", "sort", "classes", "strings",
}

// engineRounds is how often each program runs in each engine, in turns.
const engineRounds = 7

// nativeRun is code that prints the processor time of one run.
const nativeRun = "\nimport time\nbegun = time.process_time()\nrun()\nprint(time.process_time() - begun)\n"

// engineTier is the entry point of everything measured here except the command.
const engineTier = "tiers/wasm"

var engineNames = []string{"wazero", "aot"}

// warmEngines returns a tier for each engine. The caller must close them, even after an error.
func (b *bench) warmEngines() ([]tiers.Tier, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	var engines []tiers.Tier
	for _, name := range engineNames {
		engine := wasm.New(wasm.Options{CacheDir: filepath.Join(cache, "rlm"), Engine: name})
		engines = append(engines, engine)
		if err := engine.Warm(b.ctx); err != nil {
			return engines, err
		}
	}
	return engines, nil
}

// measureEngines compares the engines of tier wasm with each other and with native CPython.
func (b *bench) measureEngines() error {
	entries, err := programFiles.ReadDir("programs")
	if err != nil {
		return err
	}
	engines, err := b.warmEngines()
	defer func() { closeAll(engines) }()
	if err != nil {
		return err
	}

	lines := [][]string{{"program", "through", "native", "wazero", "aot"}}
	sums, counts := map[string]float64{}, map[string]float64{}
	for _, entry := range entries {
		source, err := programFiles.ReadFile("programs/" + entry.Name())
		if err != nil {
			return err
		}
		best, err := b.timeProgram(engines, string(source))
		if err != nil {
			return fmt.Errorf("%s: %w", entry.Name(), err)
		}

		name := strings.TrimSuffix(entry.Name(), ".py")
		group := "others"
		if slices.Contains(known, name) {
			group = "known"
		}
		line := []string{name, engineTier, inMS(best[0])}
		for i, seconds := range best[1:] {
			line = append(line, fmt.Sprintf("%.2f ×", seconds/best[0]))
			sums[group+engineNames[i]] += math.Log(seconds / best[0])
			counts[group+engineNames[i]]++
		}
		lines = append(lines, line)
		fmt.Fprintln(os.Stderr, strings.Join(line, "  "))
	}
	for _, group := range []string{"known", "others"} {
		line := []string{fmt.Sprintf("geometric mean of %g %s", counts[group+"aot"], group), engineTier, ""}
		for _, name := range engineNames {
			line = append(line, fmt.Sprintf("%.2f ×", math.Exp(sums[group+name]/counts[group+name])))
		}
		lines = append(lines, line)
	}

	starts, err := b.timeStarts(engines)
	if err != nil {
		return err
	}
	printTable(append(lines, starts...))
	return nil
}

func closeAll[C io.Closer](all []C) {
	for _, c := range all {
		_ = c.Close() // the measurement is over
	}
}

// timeProgram returns the best processor times for native CPython and for each engine, in
// seconds. Other work on the machine affects these less than wall-clock time.
func (b *bench) timeProgram(engines []tiers.Tier, source string) ([]float64, error) {
	best := slices.Repeat([]float64{math.Inf(1)}, 1+len(engines))
	var sandboxes []tiers.Sandbox
	defer func() { closeAll(sandboxes) }()
	for _, engine := range engines {
		s, err := engine.Open(b.ctx, tiers.Config{})
		if err != nil {
			return nil, err
		}
		sandboxes = append(sandboxes, s)
		if r, err := s.Run(b.ctx, tiers.Job{Source: source}); err != nil || r.Exception != nil {
			return nil, fmt.Errorf("%w %v", err, r.Exception)
		}
	}

	for range engineRounds {
		out, err := exec.CommandContext(b.ctx, b.python, "-I", "-S", "-c", source+nativeRun).Output()
		if err != nil {
			return nil, fmt.Errorf("native: %w", err)
		}
		native, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
		if err != nil {
			return nil, err
		}
		best[0] = min(best[0], native)
		for i, s := range sandboxes {
			taken, err := b.timeRun(s)
			if err != nil {
				return nil, err
			}
			best[1+i] = min(best[1+i], taken)
		}
	}
	return best, nil
}

// timeRun returns the processor time of one run, which stays on this thread.
func (b *bench) timeRun(s tiers.Sandbox) (float64, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begun, err := threadTime()
	if err != nil {
		return 0, err
	}
	r, err := s.Run(b.ctx, tiers.Job{Source: "run()"})
	if err != nil || r.Exception != nil {
		return 0, fmt.Errorf("%w %v", err, r.Exception)
	}
	end, err := threadTime()
	return (end - begun).Seconds(), err
}

// timeStarts measures a new sandbox, a second snippet and the whole command, in turns.
func (b *bench) timeStarts(engines []tiers.Tier) ([][]string, error) {
	const rounds = 200
	kinds := []string{"new sandbox to the result of print(1+1)", "second snippet in a live session"}
	best := make([][]time.Duration, len(kinds))
	for i := range best {
		best[i] = slices.Repeat([]time.Duration{math.MaxInt64}, len(engines))
	}
	run := func(s tiers.Sandbox) error {
		_, err := s.Run(b.ctx, tiers.Job{Source: "print(1+1)"})
		return err
	}
	for range rounds {
		for i, engine := range engines {
			begun := time.Now()
			s, err := engine.Open(b.ctx, tiers.Config{})
			if err != nil {
				return nil, err
			}
			err = run(s)
			first := time.Since(begun)
			begun = time.Now()
			if err == nil {
				err = run(s)
			}
			second := time.Since(begun)
			if err != nil {
				return nil, err
			}
			best[0][i], best[1][i] = min(best[0][i], first), min(best[1][i], second)
			if err := s.Close(); err != nil {
				return nil, err
			}
		}
	}

	var lines [][]string
	for k, kind := range kinds {
		lines = append(lines, []string{kind, engineTier, "", best[k][0].String(), best[k][1].String()})
	}
	line, err := b.timeCommands()
	return append(lines, line), err
}

// timeCommands measures the whole process with each engine, in turns.
func (b *bench) timeCommands() ([]string, error) {
	best := [2]time.Duration{math.MaxInt64, math.MaxInt64}
	for range 2 * engineRounds {
		for i, name := range []string{"wazero", "aot"} {
			begun := time.Now()
			err := exec.CommandContext(
				b.ctx, b.rlm, "exec", "--engine", name, "-c", "print(1+1)",
			).Run()
			if err != nil {
				return nil, err
			}
			best[i] = min(best[i], time.Since(begun))
		}
	}
	return []string{"the whole command", "the command", "", best[0].String(), best[1].String()}, nil
}

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/plan/analyser/python"
	"github.com/rlmhq/rlm/internal/plan/runner"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/interp"
	"github.com/rlmhq/rlm/tiers/local"
)

// snippetFile is a snippet of fifty lines.
const snippetFile = "internal/plan/analyser/python/testdata/fifty.py"

// parsing is a program that runs native ast.parse and ast.walk, and prints the best of many times.
const parsing = `
import ast, sys, time
source, best = sys.stdin.read(), 1e9
for _ in range(400):
    begun = time.perf_counter()
    for _ in ast.walk(ast.parse(source)):
        pass
    best = min(best, time.perf_counter() - begun)
print(best)
`

// analysis measures the analysis of a snippet of fifty lines in a warm analyser, for a new and a
// known snippet.
func (b *bench) analysis() error {
	text, err := os.ReadFile(snippetFile)
	if err != nil {
		return err
	}
	source, analyser := string(text), python.New(b.tier)
	defer analyser.Close()
	analyse := func(source string) error {
		v, err := analyser.Analyse(b.ctx, source)
		if err == nil && v.Needs == nil {
			err = fmt.Errorf("no needs of %s", snippetFile)
		}
		return err
	}

	uncached := time.Hour
	for n := range 400 {
		fresh := fmt.Sprintf("%s# %d\n", source, n)
		begun := time.Now()
		if err := analyse(fresh); err != nil {
			return err
		}
		uncached = min(uncached, time.Since(begun))
	}

	command := exec.CommandContext(b.ctx, b.python, "-I", "-S", "-c", parsing)
	command.Stdin = strings.NewReader(source)
	out, err := command.Output()
	if err != nil {
		return fmt.Errorf("native ast.parse: %w", err)
	}

	native, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
	if err != nil {
		return err
	}

	what := "analysis of a 50-line snippet, warm, uncached"
	b.add(what, inMS(uncached.Seconds()), "native `ast.parse` and `walk` "+inMS(native),
		uncached.Seconds()/native, 4)
	b.addPlain(what, inMS(uncached.Seconds()), "<= 1.5 ms", uncached <= 1500*time.Microsecond)
	cached, err := median(5000, func() error { return analyse(source + "# 399\n") })
	if err != nil {
		return err
	}

	b.addPlain("the same, cached", cached.String(), "<= 5 us", cached <= 5*time.Microsecond)
	return nil
}

// starts times a new sandbox until the result of a small snippet. The tier is warm before the
// measurement starts.
func (b *bench) starts(tier tiers.Tier, n int) (time.Duration, error) {
	times := make([]time.Duration, 0, n)
	for range n {
		if err := tier.Warm(b.ctx); err != nil {
			return 0, err
		}

		b.pause(5 * time.Millisecond) // the tier's background work ends soon

		begun := time.Now()
		s, err := b.openIn(tier, small, "2\n")
		times = append(times, time.Since(begun))
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			return 0, err
		}
	}
	return middle(times), nil
}

// usable reports whether the tier works here. If not, it records that a row is skipped.
func (b *bench) usable(tier tiers.Tier, what string) bool {
	err := tier.Probe(b.ctx)
	if err != nil {
		b.skip(what, err)
	}
	return err == nil
}

// warmTiers measures the two tiers that keep processes ready.
func (b *bench) warmTiers() error {
	own := interp.New(interp.Options{})
	defer own.Close()
	host := local.New(local.Options{Python: b.python})
	defer host.Close()

	if err := b.interpreters(own); err != nil {
		return err
	}
	return b.move(host)
}

func (b *bench) interpreters(tier tiers.Tier) error {
	const what = "interp, warm worker, `print(1+1)`"
	if !b.usable(tier, what) {
		return nil
	}
	ours, err := b.starts(tier, 60)
	if err != nil {
		return err
	}

	fork, err := median(400, b.once)
	if err != nil {
		return err
	}

	b.add(what, ours.String(), "the wasm tier's fork "+fork.String(),
		float64(ours)/float64(fork), 1)
	return nil
}

// namespace is code for a namespace that has 10 MiB when pickled.
const namespace = `
rows = [{"id": i, "name": f"user{i}", "tags": ["a", "b", i % 7], "score": i * 1.5,
         "text": f"line {i} of the log " * 4} for i in range(60000)]
index = {f"key{i}": i for i in range(100000)}
blob = "x" * 1500000
`

// pickling is a program that runs native dumps and loads on the same namespace, and prints the best
// of several times.
const pickling = namespace + `
import pickle, time, sys
best = 1e9
for _ in range(5):
    begun = time.perf_counter()
    data = pickle.dumps((rows, index, blob), protocol=5)
    pickle.loads(data)
    best = min(best, time.perf_counter() - begun)
print(best, len(data))
`

// move moves a namespace of 10 MiB from wasm to local, with both sandboxes open.
func (b *bench) move(tier tiers.Tier) error {
	const what = "move of a 10 MiB namespace wasm → local"
	if !b.usable(tier, what) {
		return nil
	}
	out, err := exec.CommandContext(b.ctx, b.python, "-I", "-S", "-c", pickling).Output()
	if err != nil {
		return fmt.Errorf("native pickle: %w", err)
	}

	var native float64
	var size int64
	if _, err := fmt.Sscan(string(out), &native, &size); err != nil {
		return err
	}

	best := time.Hour
	for range 5 {
		took, err := b.moveOnce(tier)
		if err != nil {
			return err
		}
		best = min(best, took)
	}

	against := fmt.Sprintf("native `pickle` of its %.1f MiB %s",
		float64(size)/(1<<20), inMS(native))
	b.add(what, inMS(best.Seconds()), against, best.Seconds()/native, 3)
	return nil
}

func (b *bench) moveOnce(tier tiers.Tier) (took time.Duration, err error) {
	from, err := b.open(namespace, "")
	if err != nil {
		return 0, err
	}
	defer from.Close()

	to, err := tier.Open(b.ctx, tiers.Config{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()

	begun := time.Now()
	state, err := from.(tiers.Exporter).Export(b.ctx)
	if err != nil {
		return 0, err
	}
	if _, err := to.(tiers.Exporter).Import(b.ctx, state); err != nil {
		return 0, err
	}

	took = time.Since(begun)
	r, err := to.Run(b.ctx, tiers.Job{Source: "print(len(rows), len(index), len(blob))"})
	if err == nil && r.Stdout != "60000 100000 1500000\n" {
		err = fmt.Errorf("the namespace did not arrive: %q %+v", r.Stdout, state.Left)
	}
	return took, err
}

// routing measures a runner and a bare sandbox that run the same snippet in turns.
func (b *bench) routing() error {
	analyser := python.New(b.tier)
	defer analyser.Close()
	runner, err := runner.New(runner.Config{
		Tiers:     []tiers.Tier{b.tier},
		Analysers: map[tiers.Language]runner.Analyser{tiers.Python: analyser},
	})
	if err != nil {
		return err
	}
	defer runner.Close()

	bare, err := b.open(small, "2\n")
	if err != nil {
		return err
	}
	defer bare.Close()

	const rounds = 5000
	job := tiers.Job{Source: small}
	times := [2][]time.Duration{}
	for range rounds {
		for i, run := range [...]func() error{
			func() error { _, err := runner.Run(b.ctx, job); return err },
			func() error { _, err := bare.Run(b.ctx, job); return err },
		} {
			begun := time.Now()
			if err := run(); err != nil {
				return err
			}
			times[i] = append(times[i], time.Since(begun))
		}
	}

	routed, plain := middle(times[0]), middle(times[1])
	percent := 100 * (float64(routed)/float64(plain) - 1)
	b.addPlain("router overhead on `print(1+1)` that stays home, its analysis cached",
		fmt.Sprintf("%.1f %% (%v against %v)", percent, routed, plain), "<= 10 %", percent <= 10)
	return nil
}

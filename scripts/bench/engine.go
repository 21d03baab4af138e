package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/standard"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/local"
)

// sessions measures the library as its users call it, through rlm.New.
func (b *bench) sessions() error {
	if err := b.newSessions(); err != nil {
		return err
	}
	if err := b.hostPython(); err != nil {
		return err
	}
	if err := b.neighbours(); err != nil {
		return err
	}
	return b.words()
}

// nativeWords is a program that counts the words of a file.
const nativeWords = `
import collections, sys, time
begun = time.perf_counter()
words = collections.Counter(open(sys.argv[1]).read().split())
print(len(words), time.perf_counter() - begun)
`

const contextWords = `
import collections, time
begun = time.perf_counter()
words = collections.Counter(context.split())
print(len(words), time.perf_counter() - begun)
`

// words times the counting of words in a long context with the default limits, and in the same file
// in native CPython, in turns.
func (b *bench) words() error {
	engine, err := rlm.New(rlm.Options{
		Tiers: standard.Tiers(standard.Options{Python: b.python, Processes: -1}),
	})
	if err != nil {
		return err
	}
	defer engine.Close()

	for _, tier := range []string{rlm.TierWasm, rlm.TierLocal} {
		if err := b.wordsIn(engine, tier); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) wordsIn(engine *rlm.Engine, tier string) error {
	ours, native := math.Inf(1), math.Inf(1)
	for range 3 {
		out, err := exec.CommandContext(b.ctx, b.python, "-I", "-S", "-c", nativeWords, b.texts).Output()
		if err != nil {
			return fmt.Errorf("native words: %w", err)
		}
		r, err := b.runOnce(engine, rlm.SessionConfig{
			Contexts: []rlm.Context{rlm.File(b.texts)},
			Policy:   rlm.Policy{Pin: tier, AllowLocal: true},
		}, contextWords)
		if err != nil {
			return err
		}

		var counts [2]int
		var seconds [2]float64
		for i, text := range []string{string(out), r.Stdout} {
			if _, err := fmt.Sscan(text, &counts[i], &seconds[i]); err != nil {
				return fmt.Errorf("%q: %w, %+v", text, err, r.Exception)
			}
		}
		if counts[0] != counts[1] {
			return fmt.Errorf("tier %s finds %d words, CPython %d", tier, counts[1], counts[0])
		}
		native, ours = min(native, seconds[0]), min(ours, seconds[1])
	}

	b.add("`Counter(context.split())`, tier "+tier, inMS(ours), "native, reading the file, "+inMS(native),
		ours/native, 1.3)
	return nil
}

// runOnce runs a snippet in a session.
func (b *bench) runOnce(engine *rlm.Engine, cfg rlm.SessionConfig, source string) (rlm.Result, error) {
	s, err := engine.Open(b.ctx, cfg)
	if err != nil {
		return rlm.Result{}, err
	}
	r, err := s.Run(b.ctx, source)
	return r, errors.Join(err, s.Close())
}

// newSessions times the first session of a process, including everything that an engine prepares,
// and later sessions.
func (b *bench) newSessions() error {
	begun := time.Now()
	engine, err := rlm.New(rlm.Options{Tiers: standard.Tiers(standard.Options{})})
	if err != nil {
		return err
	}
	defer engine.Close()
	if err := b.oneSession(engine, rlm.Policy{}); err != nil {
		return err
	}
	first := time.Since(begun)

	further, err := median(400, func() error { return b.oneSession(engine, rlm.Policy{}) })
	if err != nil {
		return err
	}
	native, err := median(60, b.native)
	if err != nil {
		return err
	}
	b.addPlain("an engine and its first session, to the result of `print(1+1)`", inMS(first.Seconds()),
		"stated", true)
	b.add("a further session, to the result of `print(1+1)`", further.String(),
		"native process "+native.String(), float64(further)/float64(native), 0.12)
	return nil
}

// hostPython times sessions in tier local from opening to the result, with and without a process
// that is kept ready.
func (b *bench) hostPython() error {
	const what = "a new session in tier local, to the result of `print(1+1)`"
	if !b.usable(local.New(local.Options{Python: b.python}), what) {
		return nil
	}
	kept, err := b.localSessions(1)
	if err != nil {
		return err
	}
	started, err := b.localSessions(-1)
	if err != nil {
		return err
	}
	native, err := median(60, b.native)
	if err != nil {
		return err
	}

	b.add(what+", `Processes: 1`", kept.String(), "native process "+native.String(),
		float64(kept)/float64(native), 0.5)
	b.addPlain(what+", `Processes: -1`", started.String(), "stated", true)
	return nil
}

// localSessions opens sessions one after another and runs a snippet in each. Engine.Warm fills the
// pool before the measurement starts.
func (b *bench) localSessions(processes int) (time.Duration, error) {
	engine, err := rlm.New(rlm.Options{
		Tiers: standard.Tiers(standard.Options{Python: b.python, Processes: processes}),
	})
	if err != nil {
		return 0, err
	}
	defer engine.Close()

	var times []time.Duration
	for range 30 {
		if err := engine.Warm(b.ctx, rlm.TierLocal); err != nil {
			return 0, err
		}
		begun := time.Now()
		if err := b.oneSession(engine, rlm.Policy{Pin: rlm.TierLocal, AllowLocal: true}); err != nil {
			return 0, err
		}
		times = append(times, time.Since(begun))
	}
	return middle(times), nil
}

// oneSession opens a session, runs a snippet and closes the session.
func (b *bench) oneSession(engine *rlm.Engine, policy rlm.Policy) error {
	r, err := b.runOnce(engine, rlm.SessionConfig{Policy: policy}, small)
	if err == nil && r.Stdout != "2\n" {
		err = fmt.Errorf("the session prints %q", r.Stdout)
	}
	return err
}

// neighbours times the snippets of a session, first alone, and then next to two sessions whose
// snippets never end.
func (b *bench) neighbours() error {
	engine, err := rlm.New(rlm.Options{Tiers: standard.Tiers(standard.Options{})})
	if err != nil {
		return err
	}
	defer engine.Close()
	s, err := engine.Open(b.ctx, rlm.SessionConfig{})
	if err != nil {
		return err
	}
	alone, err := b.timeSnippets(s)
	if err != nil {
		return err
	}

	ctx, stop := context.WithCancel(b.ctx)
	group, _ := errgroup.WithContext(ctx)
	for range 2 {
		group.Go(func() error { return b.computeUntil(ctx, engine) })
	}
	b.pause(100 * time.Millisecond) // by then, both are computing
	beside, err := b.timeSnippets(s)
	stop()
	if err := errors.Join(err, group.Wait()); err != nil {
		return err
	}

	const what = "`print(1+1)` in a live session"
	b.addPlain(what+", alone", alone.String(), "stated", true)
	b.addPlain(what+", beside two endless ones", beside.String(), "p50 <= 0.5 ms, p99 <= 5 ms",
		beside.median <= 500*time.Microsecond && beside.p99 <= 5*time.Millisecond)
	return nil
}

// spread describes the durations of snippets.
type spread struct{ median, p99 time.Duration }

func (s spread) String() string { return fmt.Sprintf("p50 %s, p99 %s", s.median, s.p99) }

// timeSnippets runs a snippet repeatedly, with pauses like those of a client.
func (b *bench) timeSnippets(s *rlm.Session) (spread, error) {
	var times []time.Duration
	for range 500 {
		b.pause(time.Millisecond)
		begun := time.Now()
		r, err := s.Run(b.ctx, small)
		times = append(times, time.Since(begun))
		if err == nil && r.Stdout != "2\n" {
			err = fmt.Errorf("the session prints %q", r.Stdout)
		}
		if err != nil {
			return spread{}, err
		}
	}

	slices.Sort(times)
	return spread{times[len(times)/2], times[len(times)*99/100]}, nil
}

// pause waits, at most until the end of the measurement.
func (b *bench) pause(d time.Duration) {
	select {
	case <-time.After(d):
	case <-b.ctx.Done():
	}
}

// computeUntil runs a snippet that computes until the context ends.
func (b *bench) computeUntil(ctx context.Context, engine *rlm.Engine) error {
	s, err := engine.Open(b.ctx, rlm.SessionConfig{Limits: tiers.Limits{Wall: time.Hour}})
	if err != nil {
		return err
	}
	if _, err := s.Run(ctx, "while True: pass"); !errors.Is(err, context.Canceled) {
		return errors.Join(fmt.Errorf("the endless snippet ended: %w", err), s.Close())
	}
	return s.Close()
}

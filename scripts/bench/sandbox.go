package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rlmhq/rlm/tiers"
)

const small = "print(1+1)"

// open creates a sandbox and runs a snippet in it that must print want.
func (b *bench) open(source, want string) (tiers.Sandbox, error) {
	return b.openIn(b.tier, source, want)
}

func (b *bench) openIn(tier tiers.Tier, source, want string) (tiers.Sandbox, error) {
	s, err := tier.Open(b.ctx, tiers.Config{})
	if err != nil {
		return nil, err
	}

	r, err := s.Run(b.ctx, tiers.Job{Source: source})
	if err == nil && (r.Status != tiers.StatusOK || r.Stdout != want) {
		err = fmt.Errorf("%q gave %+v", source, r)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (b *bench) once() error {
	s, err := b.open(small, "2\n")
	if err != nil {
		return err
	}
	return s.Close()
}

func (b *bench) native() error {
	return exec.CommandContext(b.ctx, b.python, "-I", "-S", "-c", small).Run()
}

// median times f, n times, and returns the median.
func median(n int, f func() error) (time.Duration, error) {
	times := make([]time.Duration, 0, n)
	for range n {
		begun := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		times = append(times, time.Since(begun))
	}
	return middle(times), nil
}

func middle(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

func (b *bench) start() error {
	native, err := median(60, b.native)
	if err != nil {
		return err
	}
	ours, err := median(400, b.once)
	if err != nil {
		return err
	}

	b.add("new sandbox to the result of `print(1+1)`", ours.String(),
		"native process "+native.String(), float64(ours)/float64(native), 0.12)
	return nil
}

func (b *bench) throughput() error {
	const forks, processes = 4000, 150
	begun := time.Now()
	group, _ := errgroup.WithContext(b.ctx)
	for range 2 {
		group.Go(func() error {
			for range forks / 2 {
				if err := b.once(); err != nil {
					return err
				}
			}
			return nil
		})
	}

	if err := group.Wait(); err != nil {
		return err
	}
	ours := forks / time.Since(begun).Seconds()
	begun = time.Now()

	for range processes {
		if err := b.native(); err != nil {
			return err
		}
	}

	native := processes / time.Since(begun).Seconds()
	b.addPlain("sandboxes a second, two goroutines, against native processes one after another",
		fmt.Sprintf("%.0f/s against %.0f/s: %.1f x", ours, native, ours/native), ">= 10 x",
		ours/native >= 10)
	return nil
}

// pssOf returns a process's proportional share of memory, in bytes.
func pssOf(pid int) (int64, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	defer f.Close()

	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var kib int64
		if _, err := fmt.Sscanf(lines.Text(), "Pss: %d kB", &kib); err == nil {
			return kib << 10, nil
		}
	}
	return 0, errors.New("no Pss in smaps_rollup")
}

func (b *bench) density() error {
	bytes, err := b.measureSandbox()
	if err != nil {
		return err
	}

	each := float64(bytes) / (1 << 20)
	b.addPlain("memory of a live idle sandbox (Pss, 1,000 alive)",
		fmt.Sprintf("%.2f MiB", each), "<= 1 MiB", each <= 1)
	return nil
}

// measureSandbox returns the memory of one of a thousand idle sandboxes, in bytes.
func (b *bench) measureSandbox() (int64, error) {
	const alive = 1000
	before, err := pssOf(os.Getpid())
	if err != nil {
		return 0, err
	}
	var all []tiers.Sandbox
	defer func() {
		for _, s := range all {
			_ = s.Close() // closing only frees memory
		}
	}()

	for range alive {
		s, err := b.open(small, "2\n")
		if err != nil {
			return 0, err
		}
		all = append(all, s)
	}

	after, err := pssOf(os.Getpid())
	return (after - before) / alive, err
}

func (b *bench) snippet() error {
	s, err := b.open(small, "2\n")
	if err != nil {
		return err
	}
	defer s.Close()

	took, err := median(5000, func() error {
		_, err := s.Run(b.ctx, tiers.Job{Source: small})
		return err
	})
	if err != nil {
		return err
	}

	b.addPlain("second snippet in a live session",
		took.String(), "<= 0.1 ms", took <= 100*time.Microsecond)
	return nil
}

func (b *bench) hostCalls() error {
	host := tiers.HostFunc(func(context.Context, tiers.Call) (tiers.Value, error) {
		return tiers.Value(`{"answer": "yes", "score": 0.5}`), nil
	})
	cfg := tiers.Config{
		Host:      host,
		Functions: []tiers.Function{{Name: "ask"}},
		Limits:    tiers.Limits{HostCalls: 1 << 30},
	}
	bare, err := b.perRound(cfg, 300_000,
		"import _rlm\ncall = _rlm.call\nfor _ in range(%d): call('z0')")
	if err != nil {
		return err
	}

	loop, err := b.perRound(cfg, 300_000, "f = len\nfor _ in range(%d): f('z0')")
	if err != nil {
		return err
	}

	b.addPlain("host call round trip, bare (a loop over len costs "+loop.String()+")",
		bare.String(), "<= 1 us", bare <= time.Microsecond)
	typed, err := b.perRound(cfg, 30_000,
		"for i in range(%d): ask('question', {'id': i, 'tags': ['a', 'b']}, model='m')")
	if err != nil {
		return err
	}

	b.addPlain("host call round trip, JSON arguments and result",
		typed.String(), "<= 20 us", typed <= 20*time.Microsecond)
	return nil
}

func (b *bench) perRound(cfg tiers.Config, rounds int, source string) (time.Duration, error) {
	return b.perRoundIn(b.tier, cfg, rounds, source)
}

func (b *bench) perRoundIn(
	tier tiers.Tier, cfg tiers.Config, rounds int, source string,
) (time.Duration, error) {
	best := time.Duration(1 << 62)
	for range 3 {
		s, err := tier.Open(b.ctx, cfg)
		if err != nil {
			return 0, err
		}

		begun := time.Now()
		r, err := s.Run(b.ctx, tiers.Job{Source: fmt.Sprintf(source, rounds)})
		took := time.Since(begun)
		if err := errors.Join(err, s.Close()); err != nil {
			return 0, err
		}
		if r.Status != tiers.StatusOK {
			return 0, fmt.Errorf("%s: %+v", strings.TrimSpace(source), r.Exception)
		}

		best = min(best, took/time.Duration(rounds))
	}

	return best, nil
}

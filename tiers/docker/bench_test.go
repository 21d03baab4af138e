package docker_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm/images"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/docker"
)

// median reports the median of the measurements, in ms.
func median(b *testing.B, name string, times []time.Duration) {
	b.Helper()
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, name)
}

func mustRun(b *testing.B, box tiers.Sandbox, source string) {
	b.Helper()
	if r, err := box.Run(b.Context(), tiers.Job{Source: source}); err != nil ||
		r.Status != tiers.StatusOK {
		b.Fatalf("%v %+v", err, r)
	}
}

// once opens a session, runs a snippet and returns how long that took.
func once(b *testing.B, tier *docker.Tier) time.Duration {
	b.Helper()
	begun := time.Now()
	box, err := tier.Open(b.Context(), tiers.Config{})
	if err != nil {
		b.Fatal(err)
	}
	mustRun(b, box, "print(1+1)")
	took := time.Since(begun)
	if err := box.Close(); err != nil {
		b.Fatal(err)
	}
	return took
}

// BenchmarkStartWarm measures a session that claims a container started in advance.
func BenchmarkStartWarm(b *testing.B) {
	tier := usual(b, docker.Options{})
	var times []time.Duration
	for b.Loop() { // the timer keeps running; otherwise one measured second would take minutes
		if err := tier.Warm(b.Context()); err != nil {
			b.Fatal(err)
		}
		times = append(times, once(b, tier))
	}
	median(b, "ms/start", times)
}

// BenchmarkStartCold measures the start of a container with all hardening.
func BenchmarkStartCold(b *testing.B) {
	tier := usual(b, docker.Options{Warm: -1})
	var times []time.Duration
	for b.Loop() {
		times = append(times, once(b, tier))
	}
	median(b, "ms/start", times)
}

// BenchmarkDockerRun is the baseline for the others: the same image run by Docker's own command,
// without hardening.
func BenchmarkDockerRun(b *testing.B) {
	usual(b, docker.Options{Warm: -1})
	command, err := exec.LookPath("docker")
	if err != nil {
		b.Skip("there is no docker command")
	}
	recipe, err := images.Find("python")
	if err != nil {
		b.Fatal(err)
	}
	var times []time.Duration
	for b.Loop() {
		begun := time.Now()
		c := exec.CommandContext(
			b.Context(),
			command, "run", "--rm", "--entrypoint", "/usr/bin/python3", recipe.Name, "-I", "-c",
			"print(1+1)",
		)
		c.Env = os.Environ()
		if out, err := c.Output(); err != nil || string(out) != "2\n" {
			b.Fatalf("%q %v", out, err)
		}
		times = append(times, time.Since(begun))
	}
	median(b, "ms/start", times)
}

// BenchmarkSnippet measures one more snippet in a live session.
func BenchmarkSnippet(b *testing.B) {
	box := box(b, usual(b, docker.Options{Warm: -1}), tiers.Config{})
	mustRun(b, box, "x = 0")
	var times []time.Duration
	for b.Loop() {
		begun := time.Now()
		mustRun(b, box, "print(1+1)")
		times = append(times, time.Since(begun))
	}
	median(b, "ms/snippet", times)
}

// BenchmarkHostCall measures a round trip from the guest to the host.
func BenchmarkHostCall(b *testing.B) {
	cfg := tiers.Config{
		Functions: []tiers.Function{{Name: "ask"}},
		Limits:    tiers.Limits{HostCalls: 1 << 30, Wall: time.Hour},
		Host: tiers.HostFunc(
			func(context.Context, tiers.Call) (tiers.Value, error) { return tiers.Value("1"), nil },
		),
	}
	box := box(b, usual(b, docker.Options{Warm: -1}), cfg)
	mustRun(b, box, "ask()")
	const calls = 100
	var times []time.Duration
	for b.Loop() {
		begun := time.Now()
		mustRun(b, box, fmt.Sprintf("for _ in range(%d): ask()", calls))
		times = append(times, time.Since(begun)/calls)
	}
	median(b, "ms/call", times)
}

// BenchmarkFiftySessions opens fifty sessions concurrently; each runs two snippets.
func BenchmarkFiftySessions(b *testing.B) {
	const sessions = 50
	tier := usual(b, docker.Options{Warm: -1})
	for b.Loop() {
		var all sync.WaitGroup
		times, errs := make([]time.Duration, sessions), make([]error, sessions)
		for i := range sessions {
			all.Add(1)
			go func() {
				defer all.Done()
				begun := time.Now()
				errs[i] = twoSnippets(b.Context(), tier, i)
				times[i] = time.Since(begun)
			}()
		}
		all.Wait()
		for _, err := range errs {
			if err != nil {
				b.Fatal(err)
			}
		}
		slices.Sort(times)
		b.ReportMetric(float64(times[sessions*95/100].Milliseconds()), "p95-ms")
	}
}

func twoSnippets(ctx context.Context, tier *docker.Tier, n int) error {
	box, err := tier.Open(ctx, tiers.Config{})
	if err != nil {
		return err
	}
	for _, source := range []string{fmt.Sprintf("x = %d", n), "print(x)"} {
		r, err := box.Run(ctx, tiers.Job{Source: source})
		if err != nil || r.Status != tiers.StatusOK ||
			source == "print(x)" && r.Stdout != fmt.Sprintln(n) {
			return fmt.Errorf("session %d: %+v: %w", n, r, err)
		}
	}
	return box.Close()
}

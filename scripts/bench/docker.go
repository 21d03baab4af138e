package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rlmhq/rlm/images"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/docker"
)

// containers compares tier docker with Docker's own command with the same image and without
// hardening, in turns.
func (b *bench) containers() error {
	hot := docker.New(docker.Options{Host: b.docker})
	defer hot.Close()
	if !b.usable(hot, "docker") {
		return nil
	}

	cold := docker.New(docker.Options{Host: b.docker, Warm: -1})
	defer cold.Close()
	if err := b.containerStarts(hot, cold); err != nil {
		return err
	}

	for _, part := range []func(tiers.Tier) error{
		b.containerSnippet, b.containerCalls, b.fiftySessions,
	} {
		if err := part(cold); err != nil {
			return err
		}
	}
	return nil
}

// containerStarts times, in turns, a container that was started in advance, a container started on
// demand, and a plain container.
func (b *bench) containerStarts(hot, cold tiers.Tier) error {
	const rounds = 15
	var ahead, anew, plain []time.Duration
	for range rounds {
		took, err := b.starts(hot, 1)
		if err != nil {
			return err
		}
		ahead = append(ahead, took)
		select { // the next container is starting
		case <-time.After(2 * time.Second):
		case <-b.ctx.Done():
			return b.ctx.Err()
		}

		begun := time.Now()
		s, err := b.openIn(cold, small, "2\n")
		if err == nil {
			err = s.Close()
		}
		anew = append(anew, time.Since(begun))
		if err != nil {
			return err
		}

		begun = time.Now()
		if err := b.dockerRun(); err != nil {
			return err
		}

		plain = append(plain, time.Since(begun))
	}

	ours, whole, theirs := middle(ahead), middle(anew), middle(plain)
	what := "docker, warm container, claim to the result of `print(1+1)`"
	against := "`docker run --rm` of the same image " + inMS(theirs.Seconds())
	b.addPlain(what, inMS(ours.Seconds()), "<= 10 ms", ours <= 10*time.Millisecond)
	b.add(what, inMS(ours.Seconds()), against, float64(ours)/float64(theirs), 0.05)
	b.add("docker, cold container with all hardening, `print(1+1)`, removed",
		inMS(whole.Seconds()), against, float64(whole)/float64(theirs), 1.1)
	return nil
}

func (b *bench) dockerRun() error {
	recipe, err := images.Find("python")
	if err != nil {
		return err
	}

	c := exec.CommandContext(b.ctx, "docker", "run", "--rm", "--entrypoint", "/usr/bin/python3",
		recipe.Name, "-I", "-c", small)
	if b.docker != "" {
		c.Env = append(c.Environ(), "DOCKER_HOST="+b.docker)
	}
	out, err := c.Output()
	if err == nil && string(out) != "2\n" {
		err = fmt.Errorf("docker run gave %q", out)
	}
	return err
}

func (b *bench) containerSnippet(tier tiers.Tier) error {
	s, err := b.openIn(tier, small, "2\n")
	if err != nil {
		return err
	}
	defer s.Close()

	took, err := median(1000, func() error {
		_, err := s.Run(b.ctx, tiers.Job{Source: small})
		return err
	})
	if err != nil {
		return err
	}

	b.addPlain("docker, second snippet in a live container",
		took.String(), "<= 1 ms", took <= time.Millisecond)
	return nil
}

func (b *bench) containerCalls(tier tiers.Tier) error {
	host := tiers.HostFunc(
		func(context.Context, tiers.Call) (tiers.Value, error) { return tiers.Value("1"), nil },
	)
	cfg := tiers.Config{
		Host:      host,
		Functions: []tiers.Function{{Name: "ask"}},
		Limits:    tiers.Limits{HostCalls: 1 << 30},
	}
	took, err := b.perRoundIn(tier, cfg, 3000, "for i in range(%d): ask('question')")
	if err != nil {
		return err
	}

	b.addPlain("docker, host call round trip",
		took.String(), "<= 0.3 ms", took <= 300*time.Microsecond)
	return nil
}

// fiftySessions opens fifty sessions concurrently, each of which must keep its variable.
func (b *bench) fiftySessions(tier tiers.Tier) error {
	const sessions = 50
	times := make([]time.Duration, sessions)
	group, ctx := errgroup.WithContext(b.ctx)
	for i := range sessions {
		group.Go(func() (err error) {
			begun := time.Now()
			defer func() { times[i] = time.Since(begun) }()
			s, err := tier.Open(ctx, tiers.Config{})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.Close()) }()

			if _, err := s.Run(ctx, tiers.Job{Source: fmt.Sprintf("x = %d", i)}); err != nil {
				return err
			}
			r, err := s.Run(ctx, tiers.Job{Source: "print(x)"})
			if err == nil && r.Stdout != fmt.Sprintln(i) {
				err = fmt.Errorf("session %d has lost its variable: %+v", i, r)
			}
			return err
		})
	}

	err := group.Wait()
	if err != nil {
		return err
	}

	half := middle(times) // middle sorts times
	b.addPlain("docker, 50 sessions at once, each two snippets: none lost",
		fmt.Sprintf("p50 %.1f s, p95 %.1f s", half.Seconds(), times[sessions*95/100].Seconds()),
		"none lost", true)
	return nil
}

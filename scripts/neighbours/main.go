// Command neighbours measures how bad sessions of rlm serve affect the honest sessions next to
// them.
//
//	make build
//	scripts/run.sh neighbours -rlm bin/rlm
//	scripts/run.sh neighbours -rlm bin/rlm -bad hang,loop -for 1m
//
// It starts a server and honest sessions that count; half of them belong to the tenant of the bad
// sessions. It measures the honest sessions' snippets alone, and then next to each kind of bad
// session. It fails if an honest session lost anything, got a wrong answer or none, or waited too
// long.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// mostRatio is the maximum factor by which bad sessions may slow down the slowest honest snippets.
const mostRatio = 3

// flags are the command's flags.
type flags struct {
	rlm         string
	bad         string
	span, think time.Duration
	wall        time.Duration
	honest      int
	each        int
}

func main() {
	var f flags
	flag.StringVar(&f.rlm, "rlm", "bin/rlm", "the `program` to measure")
	flag.StringVar(&f.bad, "bad", strings.Join(kindNames(), ","), "`kinds` of bad sessions, separated by commas")
	flag.DurationVar(&f.span, "for", 20*time.Second, "how long each measurement takes")
	flag.DurationVar(&f.think, "think", 200*time.Millisecond, "how long a client waits between snippets, on average")
	flag.DurationVar(&f.wall, "timeout", 2*time.Second, "the time limit of the bad sessions' snippets")
	flag.IntVar(&f.honest, "honest", 32, "the number of honest sessions")
	flag.IntVar(&f.each, "each", 8, "the number of bad sessions of a kind")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := f.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "neighbours:", err)
		os.Exit(1)
	}
}

func (f *flags) run(ctx context.Context) (err error) {
	var chosen []kind
	for name := range strings.SplitSeq(f.bad, ",") {
		i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == name })
		if i < 0 {
			return fmt.Errorf("unknown kind %q: give some of %s", name, strings.Join(kindNames(), ","))
		}
		chosen = append(chosen, kinds[i])
	}

	s, err := startServer(ctx, f.rlm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	crowd, err := newCrowd(ctx, s, f.honest)
	if err != nil {
		return err
	}

	fmt.Printf("%d honest sessions of two tenants, a snippet every %v; bad snippets may take %v\n\n",
		f.honest, f.think, f.wall)
	fmt.Printf("%-28s %8s %9s %9s %7s %5s %6s %8s   %s\n",
		"beside", "snippets", "p50", "p99", "ratio", "lost", "wrong", "refused", "how the bad ones ended")
	crowd.measure(ctx, f.span/4, f.think, nil) // warms up the server
	alone := crowd.measure(ctx, f.span, f.think, nil)
	alone.print("nobody", alone)

	errs := []error{alone.check(alone)}
	for _, k := range chosen {
		bad, err := newBad(ctx, s, k, f.each, f.wall)
		if err != nil {
			return err
		}
		got := crowd.measure(ctx, f.span, f.think, bad)
		name := fmt.Sprintf("%d of kind %s", f.each, k.name)
		got.print(name, alone)
		if err := got.check(alone); err != nil {
			errs = append(errs, fmt.Errorf("beside %s: %w", name, err))
		}
		if err := bad.remove(ctx); err != nil {
			return err
		}
	}
	return errors.Join(append(errs, ctx.Err())...)
}

// Command soak puts one engine under the load of many clients, and checks its behaviour.
//
//	scripts/run.sh soak -for 10m -clients 200
//	scripts/run.sh soak -for 2m -short
//
// It first measures the capacity: the rate of correct verdicts with few clients. Then all clients
// together request twice as much. Each client waits for its verdict before the next request. The
// report shows whether verdicts were wrong, whether memory grew, how long small snippets took, and
// how much of the capacity was still usable.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/standard"
)

const (
	tenants = 10
	// overload is the clients' requests as a multiple of the capacity.
	overload = 2
)

func main() {
	span := flag.Duration("for", 10*time.Minute, "how long to run")
	clients := flag.Int("clients", 200, "the number of clients")
	short := flag.Bool("short", false,
		"judge only what a short run on a shared machine can show: verdicts, and leaks that grow fast")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *span, *clients, *short)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, span time.Duration, clients int, short bool) (err error) {
	engine, err := rlm.New(rlm.Options{Tiers: standard.Tiers(standard.Options{})})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	if err := engine.Warm(ctx); err != nil {
		return err
	}

	few := 2 * runtime.GOMAXPROCS(0)
	alone, err := load(ctx, engine, few, span/5, 0)
	if err != nil {
		return err
	}

	think := time.Duration(float64(clients) / (overload * alone.rate()) * float64(time.Second))

	many, err := load(ctx, engine, clients, span-span/5, think)
	if err != nil {
		return err
	}
	report(os.Stdout, alone, many)
	if short {
		return errors.Join(alone.findWrong(), many.findWrong(), many.findLeak(shortGrowth))
	}
	return errors.Join(
		alone.findWrong(), many.findWrong(), many.findLeak(mostGrowth), compare(alone, many),
	)
}

// load runs a number of clients for a while. Each client pauses before each snippet, on average for
// the given time.
func load(
	ctx context.Context, engine *rlm.Engine, clients int, span, think time.Duration,
) (*tally, error) {
	ctx, cancel := context.WithTimeout(ctx, span)
	defer cancel()

	t := newTally(clients)
	memory := watchMemory(ctx)
	group, groupCtx := errgroup.WithContext(ctx)
	for i := range clients {
		group.Go(func() error {
			c := &client{
				engine: engine, tenant: fmt.Sprintf("tenant-%d", i%tenants),
				random: rand.New(rand.NewPCG(uint64(i), 1)), //nolint:gosec // not a secret
			}
			return errors.Join(c.work(groupCtx, t, think), c.close())
		})
	}

	err := group.Wait()
	t.span, t.memory = time.Since(t.begun), <-memory
	return t, err
}

// work runs snippets until the time is up.
func (c *client) work(ctx context.Context, t *tally, think time.Duration) error {
	for {
		pause := time.Duration(c.random.ExpFloat64() * float64(think))
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}

		o, err := c.next(ctx)
		switch {
		case ctx.Err() != nil:
			if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				return nil
			}
			return context.Cause(ctx)
		case err != nil:
			return err
		}
		t.add(o)
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// count is the snippet of the honest sessions. Its number shows whether anything was lost.
const count = "n = globals().get('n', 0) + 1\nsquares = [i * i for i in range(2_000)]\nprint(n)"

// crowd holds the honest sessions.
type crowd struct {
	*server
	all []*honest
}

// honest is one honest session. Its client also counts, in n.
type honest struct {
	id, key string
	n       int
}

func newCrowd(ctx context.Context, s *server, n int) (*crowd, error) {
	c := &crowd{server: s}
	for i := range n {
		key := s.keys[i%len(s.keys)]
		id, err := s.open(ctx, key, map[string]any{})
		if err != nil {
			return nil, err
		}
		c.all = append(c.all, &honest{id: id, key: key})
	}
	return c, nil
}

// figures are the results of one measurement.
type figures struct {
	times                []time.Duration
	lost, wrong, refused []string
	bad                  string
}

// measure lets all sessions work for a while, next to bad sessions if there are any.
func (c *crowd) measure(ctx context.Context, span, think time.Duration, b *bad) *figures {
	ctx, cancel := context.WithTimeout(ctx, span)
	defer cancel()
	var group, beside sync.WaitGroup
	if b != nil {
		beside.Go(func() { b.run(ctx) })
	}

	var mu sync.Mutex
	f := &figures{}
	for _, one := range c.all {
		group.Go(func() {
			for ctx.Err() == nil {
				select {
				case <-time.After(time.Duration(rand.ExpFloat64() * float64(think))):
				case <-ctx.Done():
					return
				}
				begun := time.Now()
				a, err := c.exec(context.WithoutCancel(ctx), one.key, one.id, count)
				took := time.Since(begun)
				mu.Lock()
				f.note(one, a, err, took)
				mu.Unlock()
			}
		})
	}
	group.Wait()
	beside.Wait()
	if b != nil {
		f.bad = b.describe()
	}
	return f
}

// note records the answer to a snippet, and how long the snippet took.
func (f *figures) note(one *honest, a answer, err error, took time.Duration) {
	f.times = append(f.times, took)
	one.n++
	switch {
	case err != nil:
		f.refused = append(f.refused, err.Error())
		one.n--
		return
	case a.code != http.StatusOK:
		f.refused = append(f.refused, fmt.Sprintf("%d %s", a.code, a.Detail))
		one.n--
		return
	case a.Lost != nil:
		f.lost = append(f.lost, fmt.Sprintf("snippets %v: %s", a.Lost.Snippets, a.Lost.Reason))
	case strings.TrimSpace(a.Stdout) != fmt.Sprint(one.n):
		f.wrong = append(f.wrong, fmt.Sprintf("%s %q, not %d", a.Status, a.Stdout, one.n))
	}
	_, _ = fmt.Sscan(a.Stdout, &one.n) // continue counting from this number
}

// quantile returns the time within which a given fraction of the snippets ended.
func (f *figures) quantile(part float64) time.Duration {
	if len(f.times) == 0 {
		return 0
	}
	slices.Sort(f.times)
	return f.times[int(part*float64(len(f.times)-1))]
}

func (f *figures) ratio(alone *figures) float64 {
	return float64(f.quantile(0.99)) / float64(max(alone.quantile(0.99), 1))
}

func (f *figures) print(name string, alone *figures) {
	ms := func(d time.Duration) string { return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1e3) }
	fmt.Printf("%-28s %8d %9s %9s %6.1fx %5d %6d %8d   %s\n", name, len(f.times), ms(f.quantile(0.5)),
		ms(f.quantile(0.99)), f.ratio(alone), len(f.lost), len(f.wrong), len(f.refused), f.bad)
}

// check returns an error if bad sessions harmed the honest ones.
func (f *figures) check(alone *figures) error {
	var errs []error
	for what, list := range map[string][]string{
		"have lost something": f.lost, "are wrong": f.wrong, "got no answer": f.refused,
	} {
		if len(list) > 0 {
			errs = append(errs, fmt.Errorf("%d honest snippets %s, such as: %s", len(list), what, list[0]))
		}
	}

	if r := f.ratio(alone); r > mostRatio {
		errs = append(errs, fmt.Errorf("the p99 of honest snippets is %.1f times that alone, more than %d",
			r, mostRatio))
	}
	return errors.Join(errs...)
}

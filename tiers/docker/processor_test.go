package docker

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestTheDaemonIsAskedRarelyWhileNothingComputes checks that there are many requests while a
// container computes, few while it does not, and none after stop.
func TestTheDaemonIsAskedRarelyWhileNothingComputes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked, used atomic.Int64
		var broken atomic.Bool
		used.Store(int64(time.Second))
		works := true
		p := newProcessor(func(context.Context) (time.Duration, error) {
			asked.Add(1)
			if broken.Load() {
				return 0, errors.New("it does not answer")
			}
			return time.Duration(used.Load()), nil
		})
		watch := func(long time.Duration) int64 {
			before := asked.Load()
			for range long / time.Millisecond {
				p.time()
				time.Sleep(time.Millisecond)
				if works {
					used.Add(int64(time.Millisecond))
				}
			}
			return asked.Load() - before
		}
		if n := watch(10 * time.Second); n < 90 {
			t.Errorf("asked %d times in ten seconds of work", n)
		}
		works = false
		if n := watch(60 * time.Second); n > 40 {
			t.Errorf("asked %d times in a minute without", n)
		}
		if got := p.time(); int64(got) != used.Load() {
			t.Errorf("it has computed %v, not %v", got, time.Duration(used.Load()))
		}
		works = true
		watch(3 * time.Second)
		if n := watch(time.Second); n < 9 {
			t.Errorf("asked %d times in a second when it works again", n)
		}
		broken.Store(true)
		last := p.time()
		if n := watch(10 * time.Second); n > 6 || p.time() != last {
			t.Errorf("asked %d times of a daemon that does not answer; %v", n, p.time())
		}
		p.stop()
		if n := watch(10 * time.Second); n != 0 {
			t.Errorf("asked %d times after the end", n)
		}
	})
}

package server

import (
	"bufio"
	"crypto/sha256"
	"fmt"
	"hash"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/scripted"
)

// asking returns a model whose runs ask a sub-model in their first turn, and answer in the second.
// Each reply takes the given time.
func asking(tb testing.TB, code string, each time.Duration) llm.Provider {
	tb.Helper()
	ask, final, yes, first := "```repl\n"+code+"\n```", "```repl\nFINAL('done')\n```", "yes", 0
	model, err := scripted.New(
		scripted.Rule{When: scripted.When{Purpose: "leaf"}, Reply: &yes, Delay: each},
		scripted.Rule{When: scripted.When{Said: &first}, Reply: &ask, Delay: each},
		scripted.Rule{Reply: &final, Delay: each},
	)
	if err != nil {
		tb.Fatal(err)
	}
	return model
}

// watch reads the events of a run that follow the event with the given number, until the run ends.
// It returns their number, and adds them to a sum.
func (s *tested) watch(path string, last int, sum hash.Hash) (count int, err error) {
	r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, s.web.URL+path+"/events", http.NoBody)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Last-Event-ID", fmt.Sprint(last))
	got, err := s.web.Client().Do(r)
	if err != nil {
		return 0, err
	}
	defer got.Body.Close()

	ended := false
	lines := bufio.NewScanner(got.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "id: ") {
			count++
			if want := fmt.Sprintf("id: %d", last+count); lines.Text() != want {
				return count, fmt.Errorf("event %s follows %d", lines.Text(), last+count-1)
			}
		}
		ended = ended || lines.Text() == "event: end"
		sum.Write(append(lines.Bytes(), '\n'))
	}
	if !ended {
		return count, fmt.Errorf("the stream has no end: %w", lines.Err())
	}
	return count, nil
}

const watchers = 500

// TestEveryWatcherGetsEveryEvent starts watchers before the run begins and while it is active. Some
// of them skip events that they have already received.
func TestEveryWatcherGetsEveryEvent(t *testing.T) {
	model := newHeld(asking(t, "print('wait', llm_query_batched(['is it there?'] * 40))", 0))
	s := start(t, t.TempDir(), model, func(o *Options) { o.Profiles[0].Task.Config.Bypass = -1 })
	made := s.do("POST", "/v1/runs", "", object{"question": "what is there?"})
	path := "/v1/runs/" + s.text(made, "id")

	sums, counts := make([]string, watchers), make([]int, watchers)
	var all sync.WaitGroup
	join := func(i, last int) {
		all.Go(func() {
			sum := sha256.New()
			count, err := s.watch(path, last, sum)
			if err != nil {
				t.Errorf("watcher %d: %v", i, err)
			}
			sums[i], counts[i] = fmt.Sprintf("%x", sum.Sum(nil)), count+last
		})
	}
	for i := range watchers / 2 {
		join(i, 0)
	}
	<-model.asked // the second turn
	for i := watchers / 2; i < watchers; i++ {
		join(i, i%3)
	}
	close(model.release)
	all.Wait()

	for i := range watchers {
		behind := 0
		if i >= watchers/2 {
			behind = i % 3
		}
		if counts[i] != counts[0] || behind == 0 && sums[i] != sums[0] || counts[0] < 80 {
			t.Fatalf("watcher %d has %d events, the first one %d", i, counts[i], counts[0])
		}
	}
}

const (
	atOnce  = 100                   // runs
	callFor = 50 * time.Millisecond // duration of each call of a model
	calls   = 22                    // calls of a run, one after the other
)

// BenchmarkServedRuns compares the time of concurrent runs, from their requests to their last
// events, with the time of their model calls.
func BenchmarkServedRuns(b *testing.B) {
	s := serveMany(b, asking(b, "for i in range(20):\n    llm_query('is it there?')", callFor))
	var elapsed time.Duration
	for b.Loop() {
		begun := time.Now()
		var all sync.WaitGroup
		for range atOnce {
			all.Go(func() {
				made := s.do("POST", "/v1/runs", "", object{"question": "what is there?"})
				if _, err := s.watch("/v1/runs/"+s.text(made, "id"), 0, sha256.New()); err != nil {
					b.Error(err)
				}
			})
		}
		all.Wait()
		elapsed += time.Since(begun)
	}
	b.ReportMetric(float64(elapsed)/float64(b.N)/float64(calls*callFor), "ideal")
}

// BenchmarkWatchers measures how fast the events of a run reach all its watchers.
func BenchmarkWatchers(b *testing.B) {
	s := serveMany(b, asking(b, "llm_query_batched(['is it there?'] * 100)", 0))
	var events int
	var elapsed time.Duration
	for b.Loop() {
		made := s.do("POST", "/v1/runs", "", object{"question": "what is there?"})
		path := "/v1/runs/" + s.text(made, "id")
		begun := time.Now()
		counts := make([]int, watchers)
		var all sync.WaitGroup
		for i := range watchers {
			all.Go(func() {
				var err error
				if counts[i], err = s.watch(path, 0, sha256.New()); err != nil {
					b.Error(err)
				}
			})
		}
		all.Wait()
		elapsed += time.Since(begun)
		for _, n := range counts {
			events += n
			if n != counts[0] {
				b.Errorf("one watcher has %d events, another %d", n, counts[0])
			}
		}
	}
	b.ReportMetric(float64(events)/elapsed.Seconds(), "events/s")
}

// serveMany starts a server that allows many concurrent runs, and that has already completed one.
func serveMany(b *testing.B, model llm.Provider) *tested {
	b.Helper()
	s := start(b, b.TempDir(), model, func(o *Options) {
		o.AtOnce, o.Queue = atOnce, atOnce
		o.Profiles[0].Task.Config.Bypass = -1
	})
	if web, ok := s.web.Client().Transport.(*http.Transport); ok {
		web.MaxIdleConnsPerHost = watchers
	}
	made := s.do("POST", "/v1/runs", "", object{"question": "what is there?"})
	if _, err := s.watch("/v1/runs/"+s.text(made, "id"), 0, sha256.New()); err != nil {
		b.Fatal(err)
	}
	return s
}

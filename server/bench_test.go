//go:build linux && (amd64 || arm64)

package server

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/tiers"
)

const addition = `print(1 + 1)`

// benchServer starts a server with workers, as rlm serve does.
func benchServer(b *testing.B) *tested {
	b.Helper()
	options := inWorkers(b)
	options.CacheDir = testcache.Dir()
	s := startWith(b, b.TempDir(), options, counting(b), func(o *Options) {
		o.Sessions, o.OpenSessions = 10_000, 64 // as rlm serve does
	})
	if shared, ok := s.web.Client().Transport.(*http.Transport); ok {
		shared.MaxIdleConnsPerHost = 100 // one for each client
	}
	path := s.open("", object{})
	s.add(path) // warms the worker
	return s
}

// add runs print(1 + 1) in a session.
func (s *tested) add(path string) {
	s.Helper()
	s.want(s.do("POST", path+"/exec", "", object{"source": addition}), 200, `"stdout":"2\n"`)
}

// percentile returns a percentile of times, in milliseconds.
func percentile(times []time.Duration, share float64) float64 {
	slices.Sort(times)
	return float64(times[int(share*float64(len(times)-1))].Nanoseconds()) / 1e6
}

// BenchmarkExec measures POST exec in a live session over loopback.
func BenchmarkExec(b *testing.B) {
	s := benchServer(b)
	path := s.open("", object{})
	var times []time.Duration
	for b.Loop() {
		begun := time.Now()
		s.add(path)
		times = append(times, time.Since(begun))
	}
	b.ReportMetric(percentile(times, 0.5), "ms/p50")
}

// BenchmarkNewSession measures a new session and its first snippet over loopback.
func BenchmarkNewSession(b *testing.B) {
	s := benchServer(b)
	var times []time.Duration
	for b.Loop() {
		begun := time.Now()
		path := s.open("", object{})
		s.add(path)
		times = append(times, time.Since(begun))
		b.StopTimer()
		s.want(s.do("DELETE", path, "", nil), 204, "")
		b.StartTimer()
	}
	b.ReportMetric(percentile(times, 0.5), "ms/p50")
}

// BenchmarkManyClients compares 64 clients, each with a session, with as many sessions of an
// engine in this process.
func BenchmarkManyClients(b *testing.B) {
	const clients, each = 64, 50
	s := benchServer(b)
	engine, err := rlm.New(rlm.Options{CacheDir: testcache.Dir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = engine.Close() })
	var paths []string
	var inProcess []*rlm.Session
	for range clients {
		paths = append(paths, s.open("", object{}))
		session, err := engine.Open(b.Context(), rlm.SessionConfig{Policy: rlm.Policy{Pin: rlm.TierWasm}})
		if err != nil {
			b.Fatal(err)
		}
		inProcess = append(inProcess, session)
	}

	measure := func(run func(i int)) float64 {
		var all sync.WaitGroup
		begun := time.Now()
		for i := range clients {
			all.Go(func() {
				for range each {
					run(i)
				}
			})
		}
		all.Wait()
		return clients * each / time.Since(begun).Seconds()
	}
	served := func(i int) { s.add(paths[i]) }
	direct := func(i int) {
		got, err := inProcess[i].RunJob(b.Context(), tiers.Job{Language: tiers.Python, Source: addition})
		if err != nil || got.Stdout != "2\n" {
			b.Error(got, err)
		}
	}
	measure(served)
	measure(direct)
	var a, of float64
	for b.Loop() {
		a, of = measure(served), measure(direct)
	}
	b.ReportMetric(a, "snippets/s")
	b.ReportMetric(of/a, "inverse")
}

// BenchmarkIdleSessions measures 2,000 resting sessions: the memory of all processes, and the time
// of a snippet that restores one.
func BenchmarkIdleSessions(b *testing.B) {
	const sessions = 2_000
	s := benchServer(b)
	var paths []string
	for i := range sessions {
		path := s.open("", object{})
		s.exec(path, "", fmt.Sprintf("import json\nn, rows = %d, list(range(1_000)); n", i), jsonNumber(i))
		paths = append(paths, path)
	}

	var memory float64
	var times []time.Duration
	for b.Loop() {
		time.Sleep(4 * time.Second) // until all sessions are saved
		memory = memoryOf(b, append(children(b), os.Getpid()))
		rand.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
		for _, path := range paths {
			begun := time.Now()
			s.want(s.do("POST", path+"/exec", "", object{"source": "len(rows)"}), 200, `"echo":"1000"`)
			times = append(times, time.Since(begun))
		}
	}
	b.ReportMetric(memory, "MiB")
	b.ReportMetric(percentile(times, 0.99), "ms/p99")
}

// memoryOf returns the memory of processes, in MiB, counting each shared page once.
func memoryOf(b *testing.B, processes []int) (mebibytes float64) {
	b.Helper()
	for _, id := range processes {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", id))
		if err != nil {
			continue // it has ended
		}
		for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
			if rest, ok := strings.CutPrefix(lines.Text(), "Pss:"); ok {
				var kib float64
				if _, err := fmt.Sscan(rest, &kib); err != nil {
					b.Fatal(err)
				}
				mebibytes += kib / 1024
			}
		}
	}
	return mebibytes
}

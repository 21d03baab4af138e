//go:build amd64 || arm64

package server

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/workers"
	"github.com/rlmhq/rlm/standard"
	"github.com/rlmhq/rlm/tiers"
)

// inWorkers returns the options of an engine whose tier wasm runs in workers, as in rlm serve.
func inWorkers(tb testing.TB) rlm.Options {
	tb.Helper()
	skip.WithoutJail(tb)
	return rlm.Options{Tiers: func(wasm tiers.Tier) ([]tiers.Tier, error) {
		inWorkers, err := workers.Start(tb.Context(), wasm, workers.Options{AllowSampled: true})
		if err != nil {
			return nil, err
		}
		return standard.Tiers(standard.Options{})(inWorkers)
	}}
}

// children returns the child processes of this process, and their descendants.
func children(tb testing.TB) (all []int) {
	tb.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		tb.Fatal(err)
	}
	parents := map[int]int{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue // the process has ended
		}
		var id, parent int
		var state string
		_, rest, _ := bytes.Cut(data[bytes.LastIndexByte(data, ')'):], []byte(" "))
		if _, err := fmt.Sscan(string(rest), &state, &parent); err != nil {
			tb.Fatal(err)
		}
		if id, err = strconv.Atoi(filepath.Base(filepath.Dir(file))); err != nil {
			tb.Fatal(err)
		}
		parents[id] = parent
	}
	for id := range parents {
		for above := parents[id]; above > 1; above = parents[above] {
			if above == os.Getpid() {
				all = append(all, id)
				break
			}
		}
	}
	return all
}

// TestSessionsOutliveTheirWorkers kills the workers of two tenants' sessions while one session runs
// a snippet.
func TestSessionsOutliveTheirWorkers(t *testing.T) {
	s := startWith(t, t.TempDir(), inWorkers(t), counting(t), func(o *Options) { o.Open = false })
	alice, bob := s.key(access.Key{Name: "alice"}), s.key(access.Key{Name: "bob"})
	hers, his := s.open(alice, object{"contexts": []object{{"name": "log", "text": hay}}}), s.open(bob, object{})
	s.exec(hers, alice, "n = log.count('needle'); n", "200")
	s.exec(his, bob, "n = 7; n", "7")
	kept := s.do("POST", hers+"/snapshots", alice, nil)
	s.want(kept, 200, "snap_")

	answers := make(chan answer, 1)
	go func() {
		answers <- s.do("POST", hers+"/exec", alice, object{"source": "n += 1\nwhile True: pass"})
	}()
	for s.text(s.do("GET", hers, alice, nil), "status") != "running" {
		runtime.Gosched()
	}
	var ended answer
	for killed := false; !killed; { // the snippet may not have begun
		for _, id := range children(t) {
			_ = unix.Kill(id, unix.SIGKILL) // some end by themselves
		}
		select {
		case ended = <-answers:
			killed = true
		default:
		}
	}
	if got := s.text(ended, "status"); got != "crashed" && ended.status == 200 {
		t.Errorf("the snippet ended as %s: %s", got, ended.body)
	}

	got := s.do("POST", hers+"/exec", alice, object{"source": "len(log)"})
	s.want(got, 200, `"echo":"2200"`)
	s.want(s.do("POST", hers+"/snapshots/"+s.text(kept, "id")+"/restore", alice, nil), 200, "")
	s.exec(hers, alice, "n", "200")
	got = s.do("POST", his+"/exec", bob, object{"source": "'n' in globals()"})
	if echo := s.text(got, "echo"); echo != "True" && s.field(got, "lost") == nil {
		t.Errorf("the other session says nothing of its loss: %s", got.body)
	}
	if strings.Contains(s.logs.String(), `"level":"ERROR"`) && ended.status == 200 {
		t.Errorf("the log has an error: %s", s.logs)
	}
}

// TestWorkersKeepTheAnswersToo kills a server whose sandboxes are in workers, and checks that no
// answered change is lost.
func TestWorkersKeepTheAnswersToo(t *testing.T) {
	keptInWorkers(t, func() rlm.Options { return inWorkers(t) })
}

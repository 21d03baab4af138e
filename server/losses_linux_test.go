//go:build amd64 || arm64

package server

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlmhq/rlm/server/internal/access"
)

// killWorkers kills the server's worker processes until one has ended by a signal and none is left.
// A remaining worker could still answer, and its session's changes would be lost later.
func (s *tested) killWorkers() {
	s.Helper()
	ended := func() string {
		metrics := s.do("GET", "/metrics", "", nil).body
		_, rest, _ := strings.Cut(metrics, `rlm_workers_ended_total{cause="signal"} `)
		count, _, _ := strings.Cut(rest, "\n")
		return count
	}
	killed := map[int]bool{}
	for before := ended(); ended() == before; {
		for _, id := range children(s) {
			_ = unix.Kill(id, unix.SIGKILL) // some exit by themselves
			killed[id] = true
		}
	}
	for slices.ContainsFunc(children(s), func(id int) bool { return killed[id] }) {
		time.Sleep(time.Millisecond)
	}
}

// TestALossIsSaidByTheNextResult checks that the next result reports a loss, even if other requests
// restored the session first.
func TestALossIsSaidByTheNextResult(t *testing.T) {
	s := startWith(t, t.TempDir(), inWorkers(t), counting(t), func(o *Options) { o.Rest = time.Hour })
	path := s.open("", object{})
	s.exec(path, "", "import itertools; kept = 1; kept", "1")
	for range 30 { // at least 20 of these changes are saved
		s.exec(path, "", "n = globals().get('n', 0) + 1; None", "")
	}
	s.killWorkers()

	s.want(s.do("PUT", path+"/variables/more", "", object{"value": 5}), 204, "")
	s.want(s.do("GET", path+"/variables/more", "", nil), 200, `{"value":5}`)
	s.want(s.do("DELETE", path+"/variables/none", "", nil), 404, "no variable")
	forked := s.do("POST", path+"/fork", "", object{})
	s.want(forked, 200, `"id":"sess_`)
	for _, one := range []string{path, "/v1/sessions/" + s.text(forked, "id")} {
		got := s.do("POST", one+"/exec", "", object{"source": "print(n, kept, more)"})
		var n, kept, more int
		_, err := fmt.Sscan(s.text(got, "stdout"), &n, &kept, &more)
		lost := s.field(got, "lost", "snippets")
		snippets, _ := lost.([]any)
		if err != nil || n < 10 || kept != 1 || more != 5 || len(snippets) != 30-n {
			t.Errorf("%v: %s", err, got.body)
		}
		if again := s.exec(one, "", "1", "1"); s.field(again, "lost") != nil {
			t.Errorf("the loss is said twice: %s", again.body)
		}
	}
}

// TestALossThatIsSavedIsSaidLater checks that another server that opens the session later reports
// the loss.
func TestALossThatIsSavedIsSaidLater(t *testing.T) {
	dir := t.TempDir()
	s := startWith(t, dir, inWorkers(t), counting(t), func(o *Options) { o.Rest = time.Hour })
	path := s.open("", object{})
	s.exec(path, "", "n = 1; n", "1")
	s.killWorkers()
	s.want(s.do("PUT", path+"/variables/more", "", object{"value": 5}), 204, "")
	s.drain()
	s.stop()

	next := startWith(t, dir, inWorkers(t), counting(t), nil)
	got := next.do("POST", path+"/exec", "", object{"source": "print(more, 'n' in globals())"})
	switch {
	case next.text(got, "stdout") == "5 True\n":
		t.Skip("the session was saved before its worker was killed")
	case next.text(got, "stdout") != "5 False\n" || !strings.Contains(got.body, "signal: killed"):
		t.Errorf("the next server has %s", got.body)
	}
	if again := next.exec(path, "", "more", "5"); next.field(again, "lost") != nil {
		t.Errorf("the loss is said twice: %s", again.body)
	}
}

// TestABusySessionIsSaved checks that another server finds the saved state of a session that never
// rested.
func TestABusySessionIsSaved(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, counting(t), func(o *Options) { o.Rest = time.Hour })
	path := s.open("", object{"durability": "idle"})
	const ran = 25
	for i := range ran {
		s.exec(path, "", "n = globals().get('n', 0) + 1; n", strconv.Itoa(i+1))
	}

	next := start(t, leftBy(t, dir), counting(t), nil)
	got := next.do("POST", path+"/exec", "", object{"source": "print(globals().get('n', 0))"})
	n, err := strconv.Atoi(strings.TrimSpace(next.text(got, "stdout")))
	if err != nil || n < ran-20 || next.field(got, "lost") == nil {
		t.Errorf("after %d snippets, another server has %s", ran, got.body)
	}
}

// TestErrorsSayWhetherTheSnippetRan checks that errors contain effects, because a client may retry
// a snippet that never ran.
func TestErrorsSayWhetherTheSnippetRan(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), func(o *Options) { o.OpenSessions = 1 })
	path := s.open("", object{})
	for _, c := range []struct {
		body   object
		status int
	}{
		{object{"source": "1", "variables": object{"a": object{"$int": "x"}}}, 400},
		{object{"source": "1", "variables": object{"a b": 1}}, 400},
	} {
		s.want(s.do("POST", path+"/exec", "", c.body), c.status, `"effects":"never_ran"`)
	}

	running := s.run(path)
	s.want(s.do("POST", path+"/exec", "", object{"source": "1"}), 409, `"effects":"never_ran"`)
	second := s.do("POST", "/v1/sessions", "", object{})
	s.want(second, 503, "1 sessions are in use")
	if strings.Contains(second.body, "effects") {
		t.Errorf("a request without a snippet says whether it ran: %s", second.body)
	}
	s.want(s.do("POST", path+"/interrupt", "", nil), 204, "")
	s.want(<-running, 409, `"effects":"`) // it may not have begun
}

// TestTheWorkersAreMeasured checks the metrics for the workers' memory, for unsaved sessions, and
// for how workers ended.
func TestTheWorkersAreMeasured(t *testing.T) {
	s := startWith(t, t.TempDir(), inWorkers(t), counting(t), nil)
	path := s.open("", object{})
	s.exec(path, "", "n = 1; n", "1")
	s.want(s.do("GET", "/metrics", "", nil), 200, "rlm_workers_memory_bytes ")
	s.want(s.do("GET", "/metrics", "", nil), 200, "rlm_sessions_unsaved 1")
	s.want(s.do("GET", "/metrics", "", nil), 200, `rlm_workers_ended_total{cause="memory"} 0`)
	s.killWorkers()
	s.want(s.do("GET", "/metrics", "", nil), 200, `rlm_workers_ended_total{cause="signal"}`)
}

// TestABusyTenantLosesNothing runs snippets of two tenants while workers are killed, and checks
// that each result is right or reports a loss.
func TestABusyTenantLosesNothing(t *testing.T) {
	s := startWith(t, t.TempDir(), inWorkers(t), counting(t), func(o *Options) { o.Open = false })
	var clients sync.WaitGroup
	for _, name := range []string{"alice", "bob"} {
		key := s.key(access.Key{Name: name})
		path := s.open(key, object{})
		clients.Go(func() {
			last := 0
			for range 50 {
				got := s.do("POST", path+"/exec", key, object{"source": "n = globals().get('n', 0) + 1; print(n)"})
				n, err := strconv.Atoi(strings.TrimSpace(s.text(got, "stdout")))
				lost := s.field(got, "lost") != nil
				switch {
				case got.status != 200 && !strings.Contains(got.body, `"effects":"never_ran"`):
					t.Errorf("a snippet that may have run has no result: %d %s", got.status, got.body)
				case got.status != 200:
				case s.text(got, "status") == "crashed" && lost:
					last = -1
				case err != nil || n != last+1 && !lost && last >= 0:
					t.Errorf("%s after %d", got.body, last)
				default:
					last = n
				}
			}
		})
	}

	ended := make(chan struct{})
	go func() { clients.Wait(); close(ended) }()
	for {
		select {
		case <-ended:
			return
		case <-time.After(300 * time.Millisecond):
		}
		for _, id := range children(t) {
			_ = unix.Kill(id, unix.SIGKILL) // some exit by themselves
		}
	}
}

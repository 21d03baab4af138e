//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/llmtest"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/repl/llm"
)

// slowScript is a model whose runs take three turns, of 0.4 seconds each.
const slowScript = `version: 1
rules:
  - when: {said: 0}
    reply: "` + "```repl\\nimport time\\ntime.sleep(0.4)\\nn = 1\\n```" + `"
  - when: {said: 1}
    reply: "` + "```repl\\ntime.sleep(0.4)\\nn += 1\\n```" + `"
  - when: {}
    reply: "` + "```repl\\ntime.sleep(0.4)\\nFINAL(n + 1)\\n```" + `"
`

// try sends a request and returns the status and the answer, or the error.
func (s *serving) try(method, path, body string) (int, string) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, s.address+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		return 0, err.Error()
	}
	return got.StatusCode, string(text)
}

// TestAServerEndsUnderLoadAndLosesNothing sends SIGTERM while runs are active or waiting, sessions
// compute or wait, and clients watch and send more requests. The server must end by itself with
// code 0. The next server must have everything that was reported as stored: each accepted run ends,
// and each session contains the effects of its answered snippets.
func TestAServerEndsUnderLoadAndLosesNothing(t *testing.T) {
	skip.UnderRace(t)
	skip.WithoutJail(t)
	dir := t.TempDir()
	writeFile(t, dir, "s.yaml", slowScript)
	args := []string{"--model", "scripted/s.yaml", "--bypass", "0", "--max-runs", "2", "--drain", "2s"}
	s := startServing(t, dir, args...)

	var mu sync.Mutex
	var accepted []string
	counts := map[string]int{} // the last value in an answer, by session
	stopped := make(chan struct{})
	var clients sync.WaitGroup
	for i := range 3 {
		var session struct{ ID string }
		s.ask("POST", "/v1/sessions", fmt.Sprintf(`{"name":"s%d"}`, i), &session)
		clients.Go(func() { // counts until the server ends
			for n := 1; ; n++ {
				source := fmt.Sprintf("n = %d; n", n)
				status, text := s.try("POST", "/v1/sessions/"+session.ID+"/exec", fmt.Sprintf(`{"source":%q}`, source))
				if status == http.StatusOK && strings.Contains(text, fmt.Sprintf(`"echo":"%d"`, n)) {
					mu.Lock()
					counts[session.ID] = n
					mu.Unlock()
					continue
				}
				if status != http.StatusServiceUnavailable && status != 0 {
					t.Errorf("a snippet gets %d %s", status, text)
				}
				return
			}
		})
	}
	var endless struct{ ID string }
	s.ask("POST", "/v1/sessions", `{}`, &endless)
	s.ask("POST", "/v1/sessions/"+endless.ID+"/exec", `{"source":"kept = 7"}`, &struct{}{})
	clients.Go(func() {
		status, text := s.try("POST", "/v1/sessions/"+endless.ID+"/exec", `{"source":"while True: pass"}`)
		if status != http.StatusServiceUnavailable || !strings.Contains(text, "draining") {
			t.Errorf("an endless snippet gets %d %s", status, text)
		}
	})
	clients.Go(func() { // starts runs until the server refuses one
		for i := 0; ; i++ {
			status, text := s.try("POST", "/v1/runs", fmt.Sprintf(`{"question":"question %d"}`, i))
			var run servedRun
			if err := json.Unmarshal([]byte(text), &run); status == http.StatusOK && err == nil && run.ID != "" {
				mu.Lock()
				accepted = append(accepted, run.ID)
				mu.Unlock()
				clients.Go(func() { // until the run or the server ends
					_, _ = s.try("GET", "/v1/runs/"+run.ID+"/events", "")
				})
			} else if status != http.StatusServiceUnavailable && status != 0 {
				t.Errorf("a run gets %d %s", status, text)
			}
			select {
			case <-stopped:
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	})

	for ready := false; !ready; time.Sleep(20 * time.Millisecond) {
		mu.Lock()
		ready = len(accepted) >= 5 && len(counts) == 3
		mu.Unlock()
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := exitCodeOf(t, s.cmd); code != 0 {
		t.Errorf("the server ends with code %d", code)
	}
	close(stopped)
	clients.Wait()

	next := startServing(t, dir, args...)
	for _, id := range accepted {
		var run servedRun
		next.await("/v1/runs/"+id, "answered", &run)
		if string(run.Answer) != "3" {
			t.Errorf("run %s has the answer %s", id, run.Answer)
		}
	}
	for id, n := range counts {
		status, text := next.try("POST", "/v1/sessions/"+id+"/exec", `{"source":"n"}`)
		if status != http.StatusOK || !strings.Contains(text, fmt.Sprintf(`"echo":"%d"`, n)) {
			t.Errorf("after %d, the session has %d %s", n, status, text)
		}
	}
	if _, text := next.try("POST", "/v1/sessions/"+endless.ID+"/exec", `{"source":"kept"}`); !strings.Contains(
		text, `"echo":"7"`) {
		t.Errorf("the session of the endless snippet has %s", text)
	}
	interrupt(t, next.cmd)
	if code := exitCodeOf(t, next.cmd); code != 0 {
		t.Errorf("the next server ends with code %d", code)
	}
}

// plug is an address that leads to a server until it is unplugged.
type plug struct {
	net.Listener
	mu     sync.Mutex
	target string // empty if it is unplugged
	open   []net.Conn
}

func newPlug(t *testing.T) *plug {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &plug{Listener: l}
	t.Cleanup(func() { _ = l.Close(); p.lead("") })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			p.mu.Lock()
			far, err := net.Dial("tcp", p.target)
			if err != nil {
				_ = near.Close()
			} else {
				p.open = append(p.open, near, far)
				go func() { _, _ = io.Copy(far, near); _ = far.Close() }()
				go func() { _, _ = io.Copy(near, far); _ = near.Close() }()
			}
			p.mu.Unlock()
		}
	}()
	return p
}

// lead connects the address to another server, or to none, and breaks all connections.
func (p *plug) lead(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
	for _, conn := range p.open {
		_ = conn.Close()
	}
	p.open = nil
}

// TestAServedRunSaysThatItsModelIsGone kills the model's server during a call. The run must fail
// with the reason while the server stays up, and continue when the model is back, without repeating
// answered calls.
func TestAServedRunSaysThatItsModelIsGone(t *testing.T) {
	skip.UnderRace(t)
	skip.WithoutJail(t)
	asked, back := make(chan struct{}, 10), make(chan struct{})
	var leaves atomic.Int64
	model := llmtest.Start(func(r llm.Request) (llm.Response, error) {
		all, last := fmt.Sprint(r.Messages), r.Messages[len(r.Messages)-1].Content
		switch {
		case strings.Contains(last, "leaf question") && !strings.Contains(all, "```repl"):
			leaves.Add(1)
			return llm.Response{Text: "leaf answer"}, nil
		case !strings.Contains(all, "leaf answer"):
			return llm.Response{Text: "```repl\nseen = llm_query('leaf question')\nprint(seen)\n```"}, nil
		}
		asked <- struct{}{}
		<-back
		return llm.Response{Text: "```repl\nFINAL(seen)\n```"}, nil
	})
	defer model.Close()
	unblock := sync.OnceFunc(func() { close(back) })
	defer unblock()
	server := strings.TrimPrefix(model.URL(), "http://")
	plug := newPlug(t)
	plug.lead(server)
	t.Setenv("OPENAI_BASE_URL", "http://"+plug.Addr().String()+"/v1")
	t.Setenv("OPENAI_API_KEY", llmtest.Key)
	s := startServing(t, t.TempDir(), "--model", "openai/any", "--bypass", "0", "--outage", "0", "--price", "1:1")

	var run servedRun
	s.ask("POST", "/v1/runs", `{"question":"what is seen?"}`, &run)
	path := "/v1/runs/" + run.ID
	<-asked
	plug.lead("")
	s.await(path, "failed", &run)
	if run.Reason == "" || strings.Contains(run.Reason, llmtest.Key) {
		t.Errorf("the reason is %q", run.Reason)
	}
	var session struct{ ID string }
	s.ask("POST", "/v1/sessions", `{}`, &session)
	s.ask("POST", "/v1/sessions/"+session.ID+"/exec", `{"source":"1"}`, &struct{}{})

	unblock()
	plug.lead(server)
	s.ask("POST", path+"/continue", `{}`, &run)
	s.await(path, "answered", &run)
	if string(run.Answer) != `"leaf answer"` || leaves.Load() != 1 {
		t.Errorf("the answer is %s after %d calls of the sub-model", run.Answer, leaves.Load())
	}
	interrupt(t, s.cmd)
	if code := exitCodeOf(t, s.cmd); code != 0 {
		t.Errorf("the server ends with code %d", code)
	}
}

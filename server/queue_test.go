package server

import (
	"sync"
	"testing"

	"github.com/rlmhq/rlm/server/internal/access"
)

// TestATenantThatFillsTheQueueDelaysItself checks that another tenant's runs and direct answers
// begin immediately.
func TestATenantThatFillsTheQueueDelaysItself(t *testing.T) {
	model := newHeld(counting(t))
	s := start(t, t.TempDir(), model, func(o *Options) { o.Open, o.AtOnce, o.Queue = false, 4, 8 })
	greedy, modest := s.key(access.Key{Name: "greedy"}), s.key(access.Key{Name: "modest"})
	slow := object{"question": "wait", "contexts": []object{{"text": hay}}}
	fill := func() (begun int) {
		for {
			got := s.do("POST", "/v1/runs", greedy, slow)
			if got.status == 503 {
				s.want(got, 503, "of this tenant: try again")
				return begun
			}
			s.want(got, 200, "run_")
			begun++
		}
	}
	if n := fill(); n != 3+4 {
		t.Errorf("one tenant has %d runs", n)
	}
	for range 3 {
		<-model.asked
	}

	for range 5 {
		fill()
		s.want(s.do("POST", "/v1/chat/completions", modest, chat("hi")), 200, "Hello.")
		s.runToEnd(modest)
	}
	close(model.release)
}

// TestATenantThatFillsTheDirectAnswersDelaysItself checks that another tenant's direct answers
// begin immediately.
func TestATenantThatFillsTheDirectAnswersDelaysItself(t *testing.T) {
	model := newHeld(counting(t))
	s := start(t, t.TempDir(), model, func(o *Options) { o.Open, o.AtOnce, o.Queue = false, 4, 8 })
	greedy, modest := s.key(access.Key{Name: "greedy"}), s.key(access.Key{Name: "modest"})
	refused := make(chan answer, 20)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if got := s.do("POST", "/v1/chat/completions", greedy, chat("wait")); got.status != 200 {
				refused <- got
			}
		})
	}
	for range 3 {
		<-model.asked
	}
	for range 3 {
		s.want(<-refused, 503, "3 direct answers go on and 4 wait")
	}
	s.want(s.do("POST", "/v1/chat/completions", modest, chat("hi")), 200, "Hello.")
	close(model.release)
	all.Wait()
}

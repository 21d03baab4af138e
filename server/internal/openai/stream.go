package openai

import (
	"net/http"
	"sync"
	"time"

	"github.com/rlmhq/rlm/server/internal/sse"
)

// eventStream sends the events after a given number, and comments while there are no events.
type eventStream struct {
	w     http.ResponseWriter
	after int64

	mu     sync.Mutex
	stream *sse.Stream
	ticker *time.Ticker
	ended  chan struct{}
	closed bool
}

func newEventStream(w http.ResponseWriter, after int64) *eventStream {
	return &eventStream{w: w, after: after, ticker: time.NewTicker(sse.Heartbeat), ended: make(chan struct{})}
}

// send sends an event.
func (s *eventStream) send(e sse.Event, n int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open()
	if n <= s.after {
		return nil
	}
	return s.stream.Write(e)
}

// open sends the head of the response, and starts sending comments. The caller holds the lock.
func (s *eventStream) open() {
	if s.stream != nil {
		return
	}

	s.stream = sse.Begin(s.w)
	go func() {
		for {
			select {
			case <-s.ended:
				return
			case <-s.ticker.C:
			}
			s.mu.Lock()
			if !s.closed {
				_ = s.stream.Comment() // the next event reports the error, too
			}
			s.mu.Unlock()
		}
	}()
}

func (s *eventStream) begun() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stream != nil
}

func (s *eventStream) flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stream.Flush()
}

// done sends the end of the stream.
func (s *eventStream) done() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stream.Write(sse.Event{Data: []byte("[DONE]")}) == nil {
		_ = s.stream.Flush() // fails if the client has gone away
	}
}

// close ends the comments. The handler may return afterwards.
func (s *eventStream) close() {
	s.ticker.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	close(s.ended)
}

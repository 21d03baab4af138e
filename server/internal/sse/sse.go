// Package sse sends server-sent events.
package sse

import (
	"bytes"
	"net/http"
	"strconv"
	"time"
)

// Heartbeat is the interval between comments while there is no event to send.
const Heartbeat = 5 * time.Second

// Stream is a response that consists of events.
type Stream struct {
	w    http.ResponseWriter
	flow *http.ResponseController
}

// Begin sends the head of a stream.
func Begin(w http.ResponseWriter) *Stream {
	head := w.Header()
	head.Set("Content-Type", "text/event-stream; charset=utf-8")
	head.Set("X-Accel-Buffering", "no") // for proxies such as nginx
	w.WriteHeader(http.StatusOK)
	return &Stream{w, http.NewResponseController(w)}
}

// Event is an event. An empty Name means a plain message; an ID of 0 means none.
type Event struct {
	Name string
	ID   int64
	Data []byte // without line ends, as encoding/json writes it
}

// Write adds events to the response. Flush sends them.
func (s *Stream) Write(events ...Event) error {
	var b bytes.Buffer
	for _, e := range events {
		if e.Name != "" {
			b.WriteString("event: " + e.Name + "\n")
		}
		if e.ID > 0 {
			b.WriteString("id: " + strconv.FormatInt(e.ID, 10) + "\n")
		}
		b.WriteString("data: ")
		b.Write(e.Data)
		b.WriteString("\n\n")
	}

	_, err := s.w.Write(b.Bytes())
	return err
}

// Comment sends a line that clients ignore.
func (s *Stream) Comment() error {
	if _, err := s.w.Write([]byte(": \n\n")); err != nil {
		return err
	}
	return s.Flush()
}

// Flush sends the buffered events.
func (s *Stream) Flush() error { return s.flow.Flush() }

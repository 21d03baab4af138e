package jsonrpc

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// unread is the stream of a peer that reads nothing for a while.
type unread struct {
	reads   <-chan struct{} // closed when it starts to read
	written atomic.Int64
}

func (u *unread) Write(line []byte) (int, error) {
	<-u.reads
	u.written.Add(1)
	return len(line), nil
}

// sent is the data sent by a peer, in small pieces, so that responses are produced in the meantime.
// It signals its end.
type sent struct {
	io.Reader
	all chan struct{}
}

func (s *sent) Read(p []byte) (int, error) {
	time.Sleep(time.Microsecond)
	n, err := s.Reader.Read(p[:min(len(p), 256)])
	if errors.Is(err, io.EOF) {
		close(s.all)
	}
	return n, err
}

// TestAnswersThatNobodyReadsAreBounded checks that a peer that reads no responses soon cannot send
// more requests, and that it receives all responses once it reads.
func TestAnswersThatNobodyReadsAreBounded(t *testing.T) {
	const requests = 4 * maxRequests
	var lines strings.Builder
	for i := range requests {
		fmt.Fprintf(&lines, `{"jsonrpc":"2.0","id":%d,"method":"echo"}`+"\n", i)
	}
	reads := make(chan struct{})
	in, out := &sent{strings.NewReader(lines.String()), make(chan struct{})}, &unread{reads: reads}
	c := New(in, out, newHandler(), quiet)
	go func() {
		defer close(reads)
		select {
		case <-in.all:
			t.Error("all requests are taken, but no answer is read")
		case <-time.After(500 * time.Millisecond): // a slow machine would hide the failure
		}
	}()
	if err := c.Serve(t.Context()); err != nil || out.written.Load() != requests {
		t.Errorf("%d answers, %v", out.written.Load(), err)
	}
	if c.held != 0 || len(c.requests) != 0 {
		t.Errorf("%d bytes of %d requests are held", c.held, len(c.requests))
	}
}

// TestLargeAnswersThatNobodyReadsAreBounded checks that responses beyond the bound are replaced by
// errors.
func TestLargeAnswersThatNobodyReadsAreBounded(t *testing.T) {
	const most, requests = 1 << 20, 20
	text := strings.Repeat("x", 100_000)
	reads := make(chan struct{})
	var lines strings.Builder
	for i := range requests {
		fmt.Fprintf(&lines, `{"jsonrpc":"2.0","id":%d,"method":"large","params":{"bytes":%d}}`+"\n", i, len(text))
	}
	shared, peak, refusals := 0, 0, 0 // guarded by the connection
	out := &collected{reads: reads}
	c := New(strings.NewReader(lines.String()), out, newHandler(), quiet)
	c.Bound(1<<30, func(n int) error {
		if shared+n > most {
			refusals++
			return errors.New("too much")
		}
		shared += n
		peak = max(peak, shared)
		return nil
	})
	go func() {
		for isFull := false; !isFull; time.Sleep(time.Millisecond) { // there are too many answers
			c.mu.Lock()
			isFull = refusals > 0
			c.mu.Unlock()
		}
		close(reads)
	}()
	if err := c.Serve(t.Context()); err != nil {
		t.Error(err)
	}
	refused := strings.Count(out.all.String(), `"kind":"busy"`)
	if lines := strings.Count(out.all.String(), "\n"); lines != requests || refused == 0 {
		t.Errorf("%d answers, %d refused", lines, refused)
	}
	if peak > most || shared != 0 {
		t.Errorf("%d bytes were held, %d still are", peak, shared)
	}
}

// collected keeps the lines that a peer reads after a while.
type collected struct {
	reads <-chan struct{}
	all   strings.Builder
}

func (c *collected) Write(line []byte) (int, error) {
	<-c.reads
	return c.all.Write(line)
}

// TestWarningsAreBounded checks that a peer can fill the log neither with many messages nor with a
// long one.
func TestWarningsAreBounded(t *testing.T) {
	for _, sent := range []string{
		strings.Repeat(`{"jsonrpc":"2.0","method":"$/cancel","params":{"what":5}}`+"\n", 1000),
		`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"` + strings.Repeat("x", 1<<20) + `"}}` + "\n",
	} {
		t.Run(fmt.Sprintf("%.60s", sent), func(t *testing.T) {
			var log strings.Builder
			c := New(strings.NewReader(sent), io.Discard, newHandler(), slog.New(slog.NewTextHandler(&log, nil)))
			if err := c.Serve(t.Context()); err != nil {
				t.Error(err)
			}
			if log.Len() == 0 || log.Len() > maxWarnings*1_000 {
				t.Errorf("the log has %d bytes", log.Len())
			}
		})
	}
}

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/rlmhq/rlm/server/internal/access"
)

// begin begins a WebSocket message that never ends.
func (c *socket) begin(size int) error {
	w, err := c.conn.Writer(c.Context(), websocket.MessageText)
	if err == nil {
		_, err = io.WriteString(w, strings.Repeat(" ", size))
	}
	return err
}

// TestUnfinishedMessagesTogetherAreBounded checks that a tenant's WebSockets together use no more
// memory than the tenant's request bodies may, and that other tenants still get their share.
func TestUnfinishedMessagesTogetherAreBounded(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), locked)
	greedy, other := s.key(access.Key{Name: "greedy"}), s.key(access.Key{Name: "other"})
	const size, clients = 900_000, 16 // a tenant may have 8 MiB
	ended := make(chan error, clients)
	var all []*socket
	for range clients {
		all = append(all, s.connect(greedy))
	}
	for _, c := range all {
		go func() {
			_ = c.begin(size)                     // the server may close the connection
			_, _, err := c.conn.Read(s.Context()) // until the server does
			ended <- err
		}()
	}
	for range clients - 8<<20/size { // all messages that do not fit
		if err := <-ended; websocket.CloseStatus(err) != websocket.StatusTryAgainLater {
			t.Errorf("a message that does not fit ends with %v", err)
		}
	}

	c := s.connect(other)
	c.wants(c.ask("session/open", object{}), `"session":"1"`)
	source := "x = '" + strings.Repeat("x", 500_000) + "'; len(x)"
	c.wants(c.ask("session/run", object{"session": "1", "source": source}), `"echo":"500000"`)
}

// TestRequestsOfSocketsTogetherAreBounded checks that active requests use the same memory budget as
// bodies, and free their share when they end.
func TestRequestsOfSocketsTogetherAreBounded(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	c := s.connect("")
	large := strings.Repeat("[],", 100_000) + "0" // takes some megabytes of the tenant's 8
	for i := 1; i <= 2; i++ {
		c.wants(c.ask("session/open", object{}), `"session":"`+jsonNumber(i)+`"`)
	}
	for i := 1; i <= 2; i++ {
		c.last++
		c.send(`{"jsonrpc":"2.0","id":` + jsonNumber(c.last) + `,"method":"session/run","params":{"session":"` +
			jsonNumber(i) + `","source":"while True: pass","variables":{"x":[` + large + `]}}}`)
	}
	c.wants(c.read(), `"kind":"busy"`)
	_ = c.conn.CloseNow()

	body := object{"contexts": []object{{"text": strings.Repeat("x", 900_000)}}}
	for { // until the requests have ended
		got := s.do("POST", "/v1/sessions", "", body)
		if got.status == 200 {
			return
		}
		s.want(got, 503, "busy")
	}
}

// TestSocketsThatReadNothingAreBounded checks a client that sends requests without reading the
// answers: the server soon stops accepting them, and keeps few goroutines.
func TestSocketsThatReadNothingAreBounded(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	c := s.connect("")
	before := runtime.NumGoroutine()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // all would take less
	defer cancel()
	method := strings.Repeat("m", 90)
	sent := 0
	for err := error(nil); err == nil && sent < 300_000; sent++ {
		message := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q}`, sent+10, method)
		err = c.conn.Write(ctx, websocket.MessageText, []byte(message))
	}
	if most := before + 1_100; runtime.NumGoroutine() > most {
		t.Errorf("after %d requests, there are %d goroutines, more than %d", sent, runtime.NumGoroutine(), most)
	}
	s.want(s.do("GET", "/v1/models", "", nil), 200, "rlm/default")
}

// handshake opens a WebSocket without a client library, and returns the header of the answer.
func (s *tested) handshake(extensions string) (net.Conn, string) {
	s.Helper()
	conn, err := net.Dial("tcp", s.web.Listener.Addr().String())
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"+
		"Sec-WebSocket-Extensions: %s\r\n\r\n", socketPath, extensions)
	if err != nil {
		s.Fatal(err)
	}
	var head strings.Builder
	for !strings.HasSuffix(head.String(), "\r\n\r\n") {
		one := make([]byte, 1)
		if _, err := conn.Read(one); err != nil {
			s.Fatal(err, head.String())
		}
		head.Write(one)
	}
	return conn, head.String()
}

// These are the first bytes of frames from a client with an empty mask.
const (
	textFrame     = 0x81
	openFrame     = 0x01 // text that later frames continue
	moreFrame     = 0x00
	packedFrame   = 0xc1 // compressed text
	pingFrame     = 0x89
	reservedFrame = 0xb1
	closeFrame    = 0x88
)

// frame returns a frame with a short payload.
func frame(kind byte, payload string) []byte {
	return append([]byte{kind, 0x80 | byte(len(payload)), 0, 0, 0, 0}, payload...)
}

// TestFramesOfStrangersEndTheirConnection checks that no frame is decompressed, and that no frame
// reserves more memory than its bytes fill.
func TestFramesOfStrangersEndTheirConnection(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	var all sync.WaitGroup
	for name, sent := range map[string][]byte{
		"compressed":  frame(packedFrame, "\x52\x32\x00"),
		"reserved":    frame(reservedFrame, "x"),
		"unmasked":    {textFrame, 1, 'x'},
		"huge":        {textFrame, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 'x'},
		"huge ping":   {pingFrame, 0xfe, 0xff, 0xff, 0, 0, 0, 0},
		"cut ping":    {pingFrame &^ 0x80, 0x80, 0, 0, 0, 0},
		"orphan":      frame(moreFrame, "x"),
		"interleaved": append(frame(openFrame, "{"), frame(textFrame, "{}")...),
		"close":       frame(closeFrame, "x"), // a close code has two bytes
	} {
		t.Run(name, func(t *testing.T) {
			conn, head := s.handshake("permessage-deflate; client_max_window_bits")
			if strings.Contains(strings.ToLower(head), "sec-websocket-extensions") {
				t.Fatalf("the server unpacks what clients send: %s", head)
			}
			if _, err := conn.Write(sent); err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				_ = conn.SetReadDeadline(time.Now().Add(time.Minute)) // to report a failure
				if _, err := io.Copy(io.Discard, conn); isTimeout(err) {
					t.Errorf("%s: the connection stays", name)
				}
			})
		})
	}
	all.Wait()
	s.want(s.do("GET", "/v1/models", "", nil), 200, "rlm/default")
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// TestManySmallFramesAreBounded sends a message above the maximum size in frames of one byte, and
// sends pings without reading the answers.
func TestManySmallFramesAreBounded(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), func(o *Options) { o.MaxBody = 64 << 10 })
	var all sync.WaitGroup
	for _, one := range [][]byte{frame(moreFrame, " "), frame(pingFrame, strings.Repeat("p", 100))} {
		conn, _ := s.handshake("")
		if _, err := conn.Write(frame(openFrame, " ")); err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			block := []byte(strings.Repeat(string(one), 10_000))
			_ = conn.SetWriteDeadline(time.Now().Add(time.Minute)) // as above
			var err error
			for err == nil {
				_, err = conn.Write(block)
			}
			if isTimeout(err) {
				t.Errorf("%x…: the connection stays", one[:1])
			}
		})
	}
	all.Wait()
	s.want(s.do("GET", "/v1/models", "", nil), 200, "rlm/default")
}

// TestTooManySocketsOfATenantAreRefused checks that a tenant leaves places for others.
func TestTooManySocketsOfATenantAreRefused(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), locked)
	greedy, other := s.key(access.Key{Name: "greedy"}), s.key(access.Key{Name: "other"})
	var all []*websocket.Conn
	for {
		conn, status, err := s.dial(greedy)
		if err != nil {
			if status != 503 || len(all) != 32 {
				t.Errorf("the connection after %d others gets %d", len(all), status)
			}
			break
		}
		all = append(all, conn)
	}
	s.connect(other)
	_ = all[0].CloseNow()
	for range 10_000 { // until the server has noticed
		if conn, _, err := s.dial(greedy); err == nil {
			_ = conn.CloseNow()
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Error("a place is not given back")
}

package jsonrpc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/internal/testing/skip"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// handler answers "echo" with its parameters, "wait" when its context ends, "fail" with an error,
// and "ask" with the peer's answer to "echo".
type handler struct {
	conn    atomic.Pointer[Conn]
	waiting chan struct{} // receives a value when "wait" has begun
	ended   atomic.Int64  // ended "wait" requests; ending takes a while
	notices chan string
}

func newHandler() *handler {
	return &handler{waiting: make(chan struct{}, maxRequests), notices: make(chan string, 10)}
}

func (h *handler) Begin(ctx context.Context, method string, params Raw) (Answer, error) {
	switch method {
	case "echo":
		return func() (any, error) { return params, nil }, nil
	case "wait":
		h.waiting <- struct{}{}
		return func() (any, error) {
			<-ctx.Done()
			time.Sleep(20 * time.Millisecond)
			h.ended.Add(1)
			return nil, context.Cause(ctx)
		}, nil
	case "large":
		p := struct {
			Bytes int `json:"bytes"`
		}{MaxMessage}
		err := Decode(params, &p)
		return func() (any, error) { return strings.Repeat("x", p.Bytes), nil }, err
	case "fail":
		return func() (any, error) { return nil, NewError(7, map[string]int{"at": 3}, "no %s", "luck") }, nil
	case "ask":
		return func() (any, error) {
			var got map[string]any
			err := h.conn.Load().Call(ctx, "echo", map[string]string{"asked": "back"}, &got)
			return got, err
		}, nil
	}
	return nil, NewError(CodeUnknownMethod, nil, "unknown method %q", method)
}

func (h *handler) Notice(method string, params Raw) error {
	h.notices <- method + string(params)
	return nil
}

var quiet = slog.New(slog.DiscardHandler)

// connect returns the two ends of a connection, which serve until the test ends.
func connect(t *testing.T, here, there *handler) (*Conn, *Conn) {
	t.Helper()
	a, b := net.Pipe()
	one, two := New(a, a, here, quiet), New(b, b, there, quiet)
	here.conn.Store(one)
	there.conn.Store(two)

	var running sync.WaitGroup
	for _, c := range []*Conn{one, two} {
		running.Go(func() { _ = c.Serve(context.Background()) }) // the stream ends with the test
	}
	t.Cleanup(func() {
		_ = a.Close()
		_ = b.Close()
		running.Wait()
	})
	return one, two
}

func TestBothEndsAskAndAnswer(t *testing.T) {
	there := newHandler()
	one, two := connect(t, newHandler(), there)

	var got map[string]any
	if err := one.Call(t.Context(), "ask", nil, &got); err != nil || got["asked"] != "back" {
		t.Errorf("%v, %v", got, err)
	}
	if err := two.Call(t.Context(), "ask", nil, &got); err != nil || got["asked"] != "back" {
		t.Errorf("%v, %v", got, err)
	}

	var known *Error
	err := one.Call(t.Context(), "fail", nil, nil)
	if !errors.As(err, &known) || known.Code != 7 || known.Message != "no luck" || string(known.Data) != `{"at":3}` {
		t.Errorf("%#v", err)
	}
	if err := one.Notify("news", map[string]int{"n": 1}); err != nil {
		t.Fatal(err)
	}
	if got := <-there.notices; got != `news{"n":1}` {
		t.Error(got)
	}
}

func TestACallEndsWithItsContextAndCancelsTheRequest(t *testing.T) {
	there := newHandler()
	one, _ := connect(t, newHandler(), there)

	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	go func() {
		<-there.waiting
		cancel(why)
	}()
	if err := one.Call(ctx, "wait", nil, nil); !errors.Is(err, why) {
		t.Error(err)
	}
	// A cancelled call frees its place, so any number of calls can be cancelled.
	if err := one.Call(t.Context(), "echo", nil, nil); err != nil {
		t.Error(err)
	}
	if err := one.Call(ctx, "echo", nil, nil); !errors.Is(err, why) {
		t.Errorf("after the end of the context: %v", err)
	}
}

func TestACallToEndWaitsForTheAnswer(t *testing.T) {
	there := newHandler()
	one, _ := connect(t, newHandler(), there)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-there.waiting
		cancel()
	}()
	err := one.CallToEnd(ctx, "wait", nil, nil)
	if !errors.Is(err, context.Canceled) || there.ended.Load() != 1 {
		t.Errorf("%v after %d ends", err, there.ended.Load())
	}
}

func TestTheEndOfTheStreamEndsEverything(t *testing.T) {
	a, b := net.Pipe()
	here, there := newHandler(), newHandler()
	one, two := New(a, a, here, quiet), New(b, b, there, quiet)
	ended := make(chan error, 3)
	go func() { ended <- one.Serve(t.Context()) }()
	go func() { ended <- two.Serve(t.Context()) }()
	go func() { ended <- one.Call(t.Context(), "wait", nil, nil) }()

	<-there.waiting
	_ = b.Close()
	var closed int
	for range 3 {
		if errors.Is(<-ended, ErrClosed) {
			closed++
		}
	}
	if closed != 1 {
		t.Errorf("%d of the ends are that of the call", closed)
	}
	if err := one.Call(t.Context(), "echo", nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("a later call: %v", err)
	}
}

// talk sends lines to a connection and returns the lines that it writes.
func talk(t *testing.T, h *handler, lines ...string) []string {
	t.Helper()
	var out strings.Builder
	c := New(strings.NewReader(strings.Join(lines, "\n")+"\n"), &out, h, quiet)
	h.conn.Store(c)
	if err := c.Serve(t.Context()); err != nil {
		t.Errorf("%.100q: %v", lines, err)
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

func TestALineThatIsNoMessageIsAnError(t *testing.T) {
	for line, want := range map[string]string{
		`x`:                        `"code":-32700`,
		`{"jsonrpc":"2.0","id":1`:  `"code":-32700`,
		`[]`:                       `not a batch`,
		`7`:                        `"code":-32600`,
		`{"id":1,"method":"echo"}`: `needs \"jsonrpc\"`,
		`{"jsonrpc":"1.0","id":1,"method":"echo"}`:                             `needs \"jsonrpc\"`,
		`{"jsonrpc":"2.0","id":1,"Method":"echo"}`:                             `is not a parameter`,
		`{"jsonrpc":"2.0","id":1,"method":"echo","x":1}`:                       `is not a parameter`,
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"echo"}`:                      `"code":-32700`,
		`{"jsonrpc":"2.0","id":1.5,"method":"echo"}`:                           `an id is`,
		`{"jsonrpc":"2.0","id":null,"method":"echo"}`:                          `an id is`,
		`{"jsonrpc":"2.0","id":9007199254740993,"method":"echo"}`:              `an id is`,
		`{"jsonrpc":"2.0","id":[1],"method":"echo"}`:                           `an id is`,
		`{"jsonrpc":"2.0","id":1,"method":"echo","result":1}`:                  `has no result`,
		`{"jsonrpc":"2.0","id":1,"params":{}}`:                                 `need a method`,
		`{"jsonrpc":"2.0","id":1}`:                                             `a method, a result or an error`,
		`{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}`:  `a method, a result or an error`,
		`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("m", 101) + `"}`: `more than 100`,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}":                   `"code":-32700`,
		`{"jsonrpc":"2.0","id":"a","method":"what"}`:                           `"id":"a","error":{"code":-32601`,
	} {
		t.Run(fmt.Sprintf("%.60s", line), func(t *testing.T) {
			got := talk(t, newHandler(), line)
			if len(got) != 1 || !strings.Contains(got[0], want) || !json.Valid([]byte(got[0])) {
				t.Errorf("%.100s: %q, want %q", line, got, want)
			}
		})
	}
}

func TestAResponseNobodyWaitsForIsDropped(t *testing.T) {
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":7,"result":{}}`,
		`{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":"x"}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}`,
		`{"jsonrpc":"2.0","method":"$/cancel","params":{"id":5}}`,
		`{"jsonrpc":"2.0","method":"$/cancel","params":{"what":5}}`,
		``, `   `,
	} {
		t.Run(line, func(t *testing.T) {
			if got := talk(t, newHandler(), line); len(got) != 1 || got[0] != "" {
				t.Errorf("%s: %q", line, got)
			}
		})
	}
}

func TestRequestsOfOneIDAndTooManyAreRefused(t *testing.T) {
	request := func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"method":"wait"}` }
	got := talk(t, newHandler(), request(`"a"`), request(`"\u0061"`), request("1"))
	var twice int
	for _, line := range got {
		if strings.Contains(line, "is under way") {
			twice++
		}
	}
	if len(got) != 3 || twice != 1 {
		t.Errorf("%q", got)
	}

	lines := make([]string, maxRequests+5)
	for i := range lines {
		lines[i] = request(fmt.Sprint(i))
	}
	busy := 0
	for _, line := range talk(t, newHandler(), lines...) {
		if strings.Contains(line, `"kind":"busy"`) {
			busy++
		}
	}
	if busy != 5 {
		t.Errorf("%d requests were refused", busy)
	}
}

// endless is a line without an end.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	e.read += len(p)
	return len(p), nil
}

func TestALineIsBounded(t *testing.T) {
	var out strings.Builder
	source := &endless{}
	err := New(source, &out, newHandler(), quiet).Serve(t.Context())
	if err == nil || !strings.Contains(out.String(), "more than 64 MiB") {
		t.Errorf("%v, %q", err, out.String())
	}
	if source.read > MaxMessage+1<<20 {
		t.Errorf("%d bytes were read", source.read)
	}
}

func TestAResultIsBounded(t *testing.T) {
	got := talk(t, newHandler(), `{"jsonrpc":"2.0","id":1,"method":"large"}`)
	if len(got) != 1 || !strings.Contains(got[0], `"kind":"too_large"`) {
		t.Errorf("%.200q", got)
	}
}

// TestValuesThatGrowWhenDecodedAreRefused checks that 24 MB that would decode to a gigabyte are
// refused as a request, as a notification and as a response.
func TestValuesThatGrowWhenDecodedAreRefused(t *testing.T) {
	skip.UnderRace(t)
	values := `{"a":[` + strings.Repeat("{},", 8_000_000) + `{}]}`
	got := talk(t, newHandler(),
		`{"jsonrpc":"2.0","id":1,"method":"echo","params":`+values+`}`,
		`{"jsonrpc":"2.0","method":"echo","params":`+values+`}`,
		`{"jsonrpc":"2.0","id":7,"result":`+values+`}`)
	if len(got) != 1 || !strings.Contains(got[0], `"id":1`) || !strings.Contains(got[0], `"kind":"too_large"`) {
		t.Errorf("%.300q", got)
	}
}

func TestALastLineWithoutItsEndIsAnError(t *testing.T) {
	source := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"echo"}`)
	err := New(source, io.Discard, newHandler(), quiet).Serve(t.Context())
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}

func TestParametersAreDecodedStrictly(t *testing.T) {
	for params, want := range map[string]string{
		``:                 "",
		`{"n": 1}`:         "",
		`{"N": 1}`:         `"/N" is not a parameter`,
		`{"n": 1, "n": 2}`: "duplicate",
		`{"n": "1"}`:       `"/n" has the wrong type`,
		`[1]`:              "an object by name",
		`{"n": 1e99}`:      `"/n"`,
		`null`:             "an object by name",
	} {
		t.Run(params, func(t *testing.T) {
			var p struct {
				N int `json:"n"`
			}
			err := Decode(Raw(params), &p)
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", params, err, want)
			}
			if err != nil && strings.Contains(err.Error(), "Go") {
				t.Errorf("%s: %v names a type of Go", params, err)
			}
		})
	}
}

// FuzzConn sends arbitrary bytes to a connection. Its whole output must consist of messages.
func FuzzConn(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"a":[1]}}`,
		`{"jsonrpc":"2.0","method":"$/cancel","params":{"id":1}}`,
		`{"jsonrpc":"2.0","id":1,"method":"wait"}` + "\n" + `{"jsonrpc":"2.0","id":1,"result":{}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x","data":{}}}`,
	} {
		f.Add([]byte(seed + "\n"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		h := &handler{waiting: make(chan struct{}, len(data)), notices: make(chan string, len(data))}
		out, in := io.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			lines := bufio.NewScanner(out)
			lines.Buffer(nil, MaxMessage)
			for lines.Scan() {
				if _, err := decodeMessage(lines.Bytes(), false); err != nil {
					t.Errorf("%q: %v", lines.Bytes(), err)
				}
			}
		}()
		_ = New(strings.NewReader(string(data)), in, h, quiet).Serve(t.Context())
		_ = in.Close()
		<-ended
	})
}

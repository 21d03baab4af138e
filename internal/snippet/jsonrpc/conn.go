// Package jsonrpc implements JSON-RPC 2.0 over a stream, with one message per line. Both ends send
// requests and responses, and any number of requests can be in progress concurrently.
//
// The peer is hostile. A line is bounded before it is decoded, both in bytes and in the memory of
// its values, and so are the peer's unanswered requests. Messages are decoded strictly.
package jsonrpc

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"sync"

	"github.com/rlmhq/rlm/internal/snippet/hostcall"
	"github.com/rlmhq/rlm/internal/text/quantity"
)

// Bounds of a connection.
const (
	MaxMessage  = 64 << 20  // bytes per line
	maxWeight   = 512 << 20 // bytes of its decoded values
	maxRequests = 1024      // the peer's concurrent requests
	maxHeld     = 1 << 30   // bytes of all these requests
)

// ErrClosed is the error of a call whose connection ended before the response.
var ErrClosed = errors.New("the connection has ended")

// errCancelled is the cause that ends a request cancelled by the peer.
var errCancelled = errors.New("the client has cancelled the request")

// Handler handles the peer's messages. A *Error is sent to the peer unchanged; any other error
// becomes an internal error with the same message.
type Handler interface {
	// Begin accepts a request. Calls of Begin follow the order of the messages, and each delays the
	// messages after it. Begin returns a function that answers the request on another goroutine.
	// The context ends when the peer cancels the request or the connection ends.
	Begin(ctx context.Context, method string, params Raw) (Answer, error)
	// Notice handles a notification, also in the order of the messages.
	Notice(method string, params Raw) error
}

// Answer computes the result of a request.
type Answer = func() (result any, err error)

// Conn is a connection. It is safe for concurrent use.
type Conn struct {
	in      *bufio.Reader
	out     io.Writer
	handler Handler
	log     *slog.Logger

	maxHeld, maxWeight int
	shared             func(n int) error // may be nil
	refused            func(method string, why *Error)

	writing sync.Mutex

	mu       sync.Mutex
	last     int64
	calls    map[int64]chan *message            // ours
	requests map[string]context.CancelCauseFunc // the peer's requests by ID, until their responses are written
	held     int
	warnings int
	isClosed bool

	running sync.WaitGroup
}

// New returns a connection. Responses arrive only while Serve runs.
func New(in io.Reader, out io.Writer, handler Handler, log *slog.Logger) *Conn {
	return &Conn{
		in: bufio.NewReaderSize(in, 64<<10), out: out, handler: handler, log: log,
		calls: map[int64]chan *message{}, requests: map[string]context.CancelCauseFunc{},
		maxHeld: maxHeld, maxWeight: maxWeight, refused: func(string, *Error) {},
	}
}

// OnRefusal sets a function that is called with each request that is refused for exceeding a bound.
// The handler never receives such requests. Call OnRefusal before Serve.
func (c *Conn) OnRefusal(refused func(method string, why *Error)) { c.refused = refused }

// Bound bounds each message, and the total bytes of the peer's requests and the responses that the
// peer has not read. If shared is not nil, it counts the bytes of several connections: it is called
// with n to accept or refuse n bytes, and with -n to release them. Call Bound before Serve.
func (c *Conn) Bound(most int, shared func(n int) error) {
	c.maxHeld, c.maxWeight = min(most, maxHeld), min(most, maxWeight)
	c.shared = shared
}

// Serve reads messages until the stream or the context ends, or a message is too long. It then
// cancels all requests and waits for them. The end of the stream is not an error. Serve notices the
// end of the context only at the next message; close the stream to end a read.
func (c *Conn) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	err := c.readAll(ctx)

	c.failCalls()
	cancel(ErrClosed)
	c.running.Wait()
	return err
}

func (c *Conn) readAll(ctx context.Context) error {
	for ctx.Err() == nil {
		line, err := c.readLine()
		switch {
		case errors.Is(err, io.EOF) && len(bytes.TrimSpace(line)) == 0:
			return nil
		case errors.Is(err, io.EOF):
			return fmt.Errorf("the last message has no end of line: %w", io.ErrUnexpectedEOF)
		case err != nil:
			return err
		case len(bytes.TrimSpace(line)) == 0:
			continue
		}
		if err := c.take(ctx, line); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// readLine reads a line. Its memory grows only with the bytes that arrive.
func (c *Conn) readLine() ([]byte, error) {
	var line []byte
	for {
		part, err := c.in.ReadSlice('\n')
		if len(line)+len(part) > MaxMessage {
			err := NewError(CodeInvalidRequest, nil, "a message has more than %s",
				quantity.IBytes(MaxMessage))
			return nil, errors.Join(err, c.write(&message{ID: Raw("null"), Error: err}))
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// take handles one line. An error ends the connection.
func (c *Conn) take(ctx context.Context, line []byte) error {
	weight := hostcall.Weigh(line)
	heavy := c.checkWeight(weight, len(line))
	m, err := decodeMessage(line, heavy != nil) // leaves parameters and results undecoded
	var wrong *Error
	switch {
	case errors.As(err, &wrong):
		return c.write(&message{ID: Raw("null"), Error: wrong})
	case err != nil:
		return err
	}

	switch {
	case heavy != nil:
		return c.refuse(m, heavy)
	case m.Method == "":
		c.settle(m)
		return nil
	case m.ID == nil:
		c.notice(m)
		return nil
	}
	return c.begin(ctx, m, weight)
}

// refuse ends the request in a message, or the call to which a response belongs.
func (c *Conn) refuse(m *message, why *Error) error {
	switch {
	case m.Method == "":
		c.settle(&message{ID: m.ID, Error: why})
	case m.ID == nil:
		c.warn("cannot use a notification", "method", m.Method, "error", why)
	default:
		c.refused(m.Method, why)
		return c.write(&message{ID: m.ID, Error: why})
	}
	return nil
}

// checkWeight refuses a message whose decoded values would need too much memory.
func (c *Conn) checkWeight(weight, size int) *Error {
	if weight <= c.maxWeight {
		return nil
	}
	return NewError(CodeServer, kind{"too_large"}, "a message of %s would take %s once decoded, more than %s: "+
		"send fewer values", quantity.IBytes(size),
		quantity.IBytes(weight), quantity.IBytes(c.maxWeight))
}

// settle passes a response to its call. It ignores a response without a call, which is late or
// invented.
func (c *Conn) settle(m *message) {
	if m.ID.Kind() == 'n' {
		c.warn("the peer could not read a message", "error", fmt.Sprintf("%.200q", m.Error.Message))
		return
	}
	id, err := strconv.ParseInt(string(m.ID), 10, 64)
	if err != nil {
		return
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	if waiting, ok := c.calls[id]; ok {
		delete(c.calls, id)
		waiting <- m
	}
}

// notice passes on a notification, which has no response, not even an error.
func (c *Conn) notice(m *message) {
	var err error
	if m.Method == cancelMethod {
		err = c.cancelRequest(m.Params)
	} else {
		err = c.handler.Notice(m.Method, m.Params)
	}
	if err != nil {
		c.warn("cannot use a notification", "method", m.Method, "error", err)
	}
}

// cancelMethod is the notification that cancels a request of its sender.
const cancelMethod = "$/cancel"

// cancelParams are the parameters of cancelMethod.
type cancelParams struct {
	ID Raw `json:"id"`
}

func (c *Conn) cancelRequest(params Raw) error {
	var p cancelParams
	if err := Decode(params, &p); err != nil {
		return err
	}
	if err := checkID(p.ID); err != nil {
		return err
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	if cancel, ok := c.requests[key(p.ID)]; ok {
		cancel(errCancelled)
	}
	return nil // without an entry, the response is already being sent
}

// begin answers a request on a separate goroutine. It refuses requests beyond the bounds, because
// waiting here would delay the responses to our own calls.
func (c *Conn) begin(ctx context.Context, m *message, size int) error {
	name := key(m.ID)
	ctx, cancel := context.WithCancelCause(ctx)

	c.mu.Lock()
	_, isTwice := c.requests[name]
	isMany := !isTwice && (len(c.requests) >= maxRequests || !c.hold(size))
	if !isTwice && !isMany {
		c.requests[name] = cancel
	}
	c.mu.Unlock()

	if isTwice || isMany {
		cancel(nil)
		err := NewError(CodeServer, kind{"busy"}, "too many requests are under way: wait for some answers")
		if isTwice {
			err = NewError(CodeInvalidRequest, nil, "a request with the id %s is under way", name)
		}
		c.refused(m.Method, err)
		return c.write(&message{ID: m.ID, Error: err})
	}

	answer, err := c.handler.Begin(ctx, m.Method, m.Params)
	c.running.Go(func() {
		response := respond(ctx, m.ID, answer, err)
		cancel(nil)
		if err := c.answer(name, response, size); err != nil {
			c.log.Debug("cannot write an answer", "error", err)
		}
	})
	return nil
}

// kind is the part of an error's details that names the kind of the error.
type kind struct {
	Kind string `json:"kind"`
}

// respond calls answer, unless the request failed to begin.
func respond(ctx context.Context, id Raw, answer Answer, err error) *message {
	var result any
	if err == nil {
		result, err = answer()
	}
	if err == nil {
		var raw Raw
		if raw, err = marshal(result); err == nil {
			return &message{ID: id, Result: raw}
		}
	}

	var known *Error
	isKnown := errors.As(err, &known)
	switch {
	case errors.Is(context.Cause(ctx), errCancelled):
		cancelled := NewError(CodeCancelled, nil, "%v", errCancelled)
		if isKnown {
			cancelled.Data = known.Data // the cost of the request
		}
		known = cancelled
	case !isKnown:
		known = NewError(CodeInternal, nil, "%v", err)
	}
	return &message{ID: id, Error: known}
}

// write writes a message with one call of Write.
func (c *Conn) write(m *message) error {
	line, err := c.encode(m)
	if err != nil {
		return err
	}

	c.writing.Lock()
	defer c.writing.Unlock()
	_, err = c.out.Write(line)
	return err
}

// encode returns a message as a line. A response that is too long becomes an error for the peer.
func (c *Conn) encode(m *message) ([]byte, error) {
	line, err := encode(m)
	if err != nil || len(line) <= MaxMessage {
		return line, err
	}
	long := fmt.Errorf("the message has %s, more than %s",
		quantity.IBytes(len(line)), quantity.IBytes(MaxMessage))
	if m.Method != "" {
		return nil, long
	}
	return encode(&message{ID: m.ID, Error: NewError(CodeServer, kind{"too_large"}, "%v", long)})
}

// Call sends a request to the peer, and decodes the response's result into the value that result
// points to, unless result is nil. If the context ends, Call cancels the request. An error of the
// peer is a *Error.
func (c *Conn) Call(ctx context.Context, method string, params, result any) error {
	return c.call(ctx, method, params, result, false)
}

// CallToEnd is like Call, but also waits for the response to a cancelled request. After it has
// returned, the peer does no more work for the request.
func (c *Conn) CallToEnd(ctx context.Context, method string, params, result any) error {
	return c.call(ctx, method, params, result, true)
}

func (c *Conn) call(ctx context.Context, method string, params, result any, toEnd bool) error {
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	raw, err := marshal(params)
	if err != nil {
		return err
	}

	id, waiting, err := c.enlist()
	if err != nil {
		return err
	}
	defer c.forget(id)

	number := Raw(strconv.FormatInt(id, 10))
	if err := c.write(&message{ID: number, Method: method, Params: raw}); err != nil {
		return err
	}

	select {
	case m, isOpen := <-waiting:
		return readAnswer(m, isOpen, result)
	case <-ctx.Done():
	}
	err = c.Notify(cancelMethod, cancelParams{number})
	if toEnd && err == nil {
		<-waiting
	}
	return errors.Join(context.Cause(ctx), err)
}

// readAnswer decodes a response, or returns an error if the connection was closed instead.
func readAnswer(m *message, isOpen bool, result any) error {
	switch {
	case !isOpen:
		return ErrClosed
	case m.Error != nil:
		return m.Error
	case result == nil:
		return nil
	}
	return Decode(m.Result, result)
}

// Notify sends a notification.
func (c *Conn) Notify(method string, params any) error {
	raw, err := marshal(params)
	if err != nil {
		return err
	}
	return c.write(&message{Method: method, Params: raw})
}

// enlist registers a new call.
func (c *Conn) enlist() (int64, chan *message, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed {
		return 0, nil, ErrClosed
	}
	c.last++
	waiting := make(chan *message, 1)
	c.calls[c.last] = waiting
	return c.last, waiting, nil
}

func (c *Conn) forget(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, id)
}

// failCalls makes all pending and future calls fail.
func (c *Conn) failCalls() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isClosed = true
	for id, waiting := range c.calls {
		delete(c.calls, id)
		close(waiting)
	}
}

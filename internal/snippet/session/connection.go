package session

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/frame"
	"github.com/rlmhq/rlm/internal/snippet/session/wire"
)

// Errors that end a run without a code.
var (
	// ErrGone means that the guest's process is gone, or sent an invalid message. The Connection is
	// unusable.
	ErrGone = errors.New("the guest's process is gone")
	// ErrRestored means that the guest was stopped, or died, and that a keeper has taken over, with
	// the state before the last snippet that was saved.
	ErrRestored = errors.New("the guest was restored")
)

// Control is a tier's means to control the process at the other end of a Connection.
type Control interface {
	// Kill kills the processes of the guest except the one whose number inside is keeper; 0 kills
	// all.
	Kill(keeper int)
}

// Interrupter is a Control that can interrupt a snippet, so that it ends by itself.
type Interrupter interface {
	// Interrupt returns once the request has been sent to the guest.
	Interrupt()
}

// partSize bounds a single read, in bytes.
const partSize = 64 << 10

// Connection is the host's end of a guest in another process, over a socket or two pipes. It does
// not support concurrent use.
type Connection struct {
	// MaxRequest bounds a single message from the guest, in addition to the session's memory limit.
	// New sets it to wire.MaxRequest.
	MaxRequest int
	// OnFrame handles frames of kinds that package wire does not define; it may be nil. It returns
	// true if the guest is gone.
	OnFrame func(kind byte, payload []byte) (gone bool)
	// Unslept means that the guest does not report its sleeps: see Processor.
	Unslept bool

	conn    io.ReadWriteCloser
	control Control

	input  chan []byte // data read, in parts of at most partSize; closed at the end
	spare  chan []byte // parts to reuse for reading
	buffer frame.Buffer
	output chan []byte // to the writing goroutine; closed by Close
	queue  [][]byte    // data to write next
	queued int         // bytes in queue

	keeper  keeper
	former  keeper    // the previous keeper
	coming  keeper    // the keeper that would be made now
	mayKeep bool      // the last order requested a keeper
	mark    wire.Mark // the last order's mark
	isBegun bool      // the guest has begun the order
	isGone  bool
	isRude  bool          // the guest sent something invalid
	closed  chan struct{} // closed when the connection has ended
	pending map[uint32]*pendingCall
	ended   chan *pendingCall
}

// NewConnection returns a connection to a guest that control can stop.
func NewConnection(conn io.ReadWriteCloser, control Control) *Connection {
	c := &Connection{
		MaxRequest: wire.MaxRequest,
		conn:       conn,
		control:    control,
		input:      make(chan []byte, 4),
		spare:      make(chan []byte, 4),
		output:     make(chan []byte),
		closed:     make(chan struct{}),
	}
	go c.read()
	go c.write()
	return c
}

// Gone is closed when the guest has ended the connection.
func (c *Connection) Gone() <-chan struct{} { return c.closed }

// HasBegun reports whether the guest has begun the last order.
func (c *Connection) HasBegun() bool { return c.isBegun }

// IsRude reports whether the host gave the guest up because of something that the guest sent.
func (c *Connection) IsRude() bool { return c.isRude }

// Kept returns the last snippet in the state to which ErrRestored returned, or 0.
func (c *Connection) Kept() int { return c.keeper.snippet }

func (c *Connection) read() {
	defer close(c.input)
	defer close(c.closed)

	for {
		var part []byte
		select {
		case part = <-c.spare:
		default:
			part = make([]byte, partSize)
		}

		n, err := c.conn.Read(part)
		if n > 0 {
			c.input <- part[:n]
		}
		if err != nil {
			return
		}
	}
}

// add buffers a part that was read.
func (c *Connection) add(part []byte) {
	c.buffer.Add(part)
	select {
	case c.spare <- part[:partSize]:
	default:
	}
}

// write writes the queued frames. It runs on a separate goroutine, because the guest might not
// read.
func (c *Connection) write() {
	isBroken := false
	for data := range c.output {
		if !isBroken {
			_, err := c.conn.Write(data)
			isBroken = err != nil // the next read reveals it
		}
	}
}

// maxQueued bounds the bytes of answers that may wait for a guest that does not read. Beyond this
// bound, the host handles no more requests of the guest.
const maxQueued = 32 << 20

// Send queues bytes for the guest. The bytes are sent while Run or Await waits.
func (c *Connection) Send(data []byte) {
	c.queue = append(c.queue, data)
	c.queued += len(data)
}

// outgoing returns the channel of the writing goroutine and the next data; both are nil if there is
// no data.
func (c *Connection) outgoing() (chan<- []byte, []byte) {
	if len(c.queue) == 0 {
		return nil, nil
	}
	return c.output, c.queue[0]
}

func (c *Connection) dequeue() {
	c.queued -= len(c.queue[0])
	c.queue[0] = nil
	c.queue = c.queue[1:]
}

// Await waits for a frame of the given kind while the guest starts. Requests before that frame
// receive the answer null, because the guest only rehearses.
func (c *Connection) Await(ctx context.Context, kind byte) (payload []byte, err error) {
	for {
		got, payload, err := c.nextFrame(ctx)
		if err != nil {
			return nil, err
		}
		if got == kind {
			return payload, nil
		}

		request, err := wire.ParseRequest(payload)
		if got == wire.KindRequest && err == nil && request.Number != wire.NoAnswer {
			reply := Reply{Data: []byte("null"), ASCII: true}
			if err := c.answer(request.Number, reply); err != nil {
				return nil, err
			}
		}
	}
}

// nextFrame waits for a frame outside a run.
func (c *Connection) nextFrame(ctx context.Context) (kind byte, payload []byte, err error) {
	for {
		if kind, payload, ok, err := c.cutFrame(); ok || err != nil {
			return kind, payload, err
		}

		out, first := c.outgoing()
		select {
		case out <- first:
			c.dequeue()
		case part, isOpen := <-c.input:
			if !isOpen {
				return 0, nil, ErrGone
			}
			c.add(part)
		case <-ctx.Done():
			return 0, nil, context.Cause(ctx)
		}
	}
}

func (c *Connection) cutFrame() (kind byte, payload []byte, ok bool, err error) {
	c.buffer.Max = c.MaxRequest + 16 // the headers of messages
	return c.buffer.Next()
}

func (c *Connection) answer(number uint32, reply Reply) error {
	if number == wire.NoAnswer {
		return nil
	}

	size := wire.AnswerSize(len(reply.Data))
	data := frame.AppendHeader(make([]byte, 0, 16+size), wire.KindAnswer, size)
	data = wire.AppendAnswer(data, number, reply.Failed)
	at := len(data)
	data = data[:at+len(reply.Data)]
	if err := reply.CopyTo(data[at:]); err != nil {
		return err
	}

	c.Send(data)
	return nil
}

// Run makes the guest carry out an order, for which Run generates the marks. before is the last
// snippet in the state that order.Save keeps. The errors are ErrGone and ErrRestored.
func (c *Connection) Run(a *Accounts, order wire.Order, before int) (wire.Done, error) {
	if c.isGone {
		return wire.Done{}, ErrGone
	}

	c.MaxRequest = int(min(int64(c.MaxRequest), a.cfg.Limits.Memory))
	a.meter.processor = c.processorTime()
	c.pending, c.ended = map[uint32]*pendingCall{}, make(chan *pendingCall, 16)
	defer c.abandonCalls()

	_, _ = rand.Read(order.Mark[:]) // it never fails
	_, _ = rand.Read(order.TakeOver[:])
	c.mark, c.isBegun = order.Mark, false
	c.coming, c.mayKeep = keeper{mark: order.TakeOver, snippet: before}, order.Save
	payload := order.Append(nil)
	c.Send(append(frame.AppendHeader(nil, wire.KindOrder, len(payload)), payload...))

	return c.serve(a)
}

func (c *Connection) processorTime() processorTime {
	source, _ := c.control.(Processor)
	return processorTime{source: source, sole: source != nil && c.Unslept}
}

// tick is the interval between two checks of the limits.
const tick = 2 * time.Millisecond

// serve answers the guest until it is done.
func (c *Connection) serve(a *Accounts) (wire.Done, error) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()

	var interrupt func()
	if i, ok := c.control.(Interrupter); ok {
		interrupt = i.Interrupt
	}

	charged := time.Now()
	for {
		if done, isOver, err := c.handleFrames(a); isOver || err != nil {
			return done, err
		}

		input := c.input
		if c.queued >= maxQueued || c.buffer.Len() > c.buffer.Max {
			input = nil // handle the frames that have arrived first
		}
		out, first := c.outgoing()
		select {
		case out <- first:
			c.dequeue()

		case part, isOpen := <-input:
			if !isOpen {
				c.isGone = true
				return wire.Done{}, ErrGone
			}
			c.add(part)
			if c.wasTakenOver(len(part)) {
				return wire.Done{}, c.welcomeKeeper()
			}

		case call := <-c.ended:
			c.charge(a, &charged)
			if len(c.pending) == 1 { // the guest waits for no other call
				c.resumeSlot(a)
				charged = time.Now()
			}
			if err := c.finishCall(a, call); err != nil {
				return wire.Done{}, c.stop()
			}

		case <-ticker.C:
			c.charge(a, &charged)
			a.slot.Release()
			if a.Watch(interrupt) {
				a.endSlot() // a keeper may take its time
				return wire.Done{}, c.stop()
			}
		}
	}
}

// handleFrames handles the complete frames that have arrived. Requests may be slow, and many may
// have arrived, so it returns after a tick at the latest, for a check of the limits.
func (c *Connection) handleFrames(a *Accounts) (done wire.Done, isOver bool, err error) {
	for begun := time.Now(); c.queued < maxQueued && time.Since(begun) < tick; {
		kind, payload, ok, err := c.cutFrame()
		if err != nil {
			return wire.Done{}, true, c.giveUp()
		}
		if !ok {
			return wire.Done{}, false, nil
		}
		if done, isOver, err := c.handleFrame(a, kind, payload); isOver || err != nil {
			return done, isOver, err
		}
	}
	return wire.Done{}, false, nil
}

// giveUp stops a guest that sent something invalid.
func (c *Connection) giveUp() error {
	c.isRude = true
	return c.stop()
}

// handleFrame handles one frame.
func (c *Connection) handleFrame(
	a *Accounts, kind byte, payload []byte,
) (done wire.Done, isOver bool, err error) {
	if c.OnFrame != nil && !isOfWire(kind) {
		if c.OnFrame(kind, payload) {
			c.isGone = true
			return wire.Done{}, true, ErrGone
		}
		return wire.Done{}, false, nil
	}

	if !c.isBegun { // left over or forged by an earlier snippet
		c.isBegun = kind == wire.KindBegun && bytes.Equal(payload, c.mark[:])
		return wire.Done{}, false, nil
	}

	switch kind {
	case wire.KindDone:
		done, err := wire.ParseDone(payload)
		if err != nil || done.Mark != c.mark {
			return wire.Done{}, true, c.giveUp()
		}
		done.More = bytes.Clone(done.More)
		return done, true, nil

	case wire.KindKeeper:
		if !c.mayKeep || !c.noteKeeper(payload) {
			return wire.Done{}, true, c.giveUp()
		}
		c.mayKeep = false                   // one keeper per order
		if c.wasTakenOver(c.buffer.Len()) { // the mark arrived together with this frame
			return wire.Done{}, true, c.welcomeKeeper()
		}

	case wire.KindRequest:
		request, err := wire.ParseRequest(payload)
		if err != nil {
			return wire.Done{}, true, c.giveUp()
		}
		if err := c.handleRequest(a, request); err != nil {
			return wire.Done{}, true, err
		}
	}
	return wire.Done{}, false, nil
}

func isOfWire(kind byte) bool {
	switch kind {
	case wire.KindDone, wire.KindKeeper, wire.KindRequest, wire.KindBegun, wire.KindReady:
		return true
	}
	return false
}

// Close ends the connection. Its owner must end the process.
func (c *Connection) Close() error {
	err := c.conn.Close()
	close(c.output)
	for range c.input { // until read has ended
	}
	return err
}

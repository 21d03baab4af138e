package pykernel

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed" // the first Python that a native guest runs
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

//go:embed native/native.py
var nativeSource string

// NativeLoader is what a native CPython is started with, by -c: it reads the
// rest from the connection, which is descriptor 3. Options are further arguments
// of the function start in native/native.py, empty for none.
func NativeLoader(options string) string {
	return nativeLoader + "native.start(parts[1], " + options + ")\n"
}

const nativeLoader = `import os
def read(n):
    data = b""
    while len(data) < n:
        part = os.read(3, n - len(data))
        if not part: os._exit(0)
        data += part
    return data
parts = [read(int.from_bytes(read(4), "little")).decode() for _ in "nb"]
native = __import__("types").ModuleType("native")
native.__builtins__ = dict(vars(__import__("builtins")))
exec(compile(parts[0], "<rlm native.py>", "exec"), native.__dict__)
`

// Frames of the connection: a length, a kind, a payload. The kinds are letters;
// native/native.py writes them as numbers.
const (
	frameHead    = 5
	frameRequest = 'q' // guest: number, request
	frameDone    = 'd' // guest: code, most memory it had in KiB
	frameBegin   = 'b' // guest: the mark of the run, before anything else of it
	frameKeeper  = 'k' // guest: process that keeps the state before the snippet, 0: none was made
	frameReady   = 'y' // guest: version of Python
	frameAnswer  = 'a' // host: number, failed, answer
	frameRun     = 'r' // host: flags, safe, mark, source
)

// markSize is the length of what a keeper sends when it takes the session over.
const markSize = 16

// What ends a run of a Remote without a code.
var (
	// ErrGone: the guest's process is gone, or the connection is damaged. The
	// Remote is of no more use.
	ErrGone = errors.New("the guest's process is gone")
	// ErrRestored: the guest was stopped, or died; a keeper has taken over in
	// the state before the last snippet that was run safely.
	ErrRestored = errors.New("the guest was restored")
)

// Control is what a tier can do to the process of a Remote.
type Control interface {
	// Interrupt raises KeyboardInterrupt in the guest.
	Interrupt()
	// Kill ends the processes of the guest but the one with that number inside,
	// 0 for all.
	Kill(keeper int)
}

// Remote is a runtime in a CPython process of its own at the other end of a
// connection. It has one owner.
type Remote struct {
	conn    io.ReadWriteCloser
	control Control
	Version [3]int // of Python

	input   chan []byte // what has been read; closed at the end
	buffer  []byte
	output  chan []byte // to the goroutine that writes; closed by Close
	queue   [][]byte    // what is to be written next
	queued  int         // its bytes
	peak    int64
	keeper  keeper
	former  keeper // the one before
	coming  keeper // what a keeper made now would be
	begun   bool   // the guest has begun with the run
	gone    bool
	closed  chan struct{} // closed when the connection has ended
	pending map[uint32]*remoteCall
	ended   chan *remoteCall

	work work // of the guest behind host calls
}

// NewRemote loads the runtime into a process that was started with NativeLoader.
func NewRemote(ctx context.Context, conn io.ReadWriteCloser, control Control) (*Remote, error) {
	r := &Remote{conn: conn, control: control, input: make(chan []byte, 4), output: make(chan []byte), closed: make(chan struct{})}
	var head []byte
	for _, part := range []string{nativeSource, Boot()} {
		head = binary.LittleEndian.AppendUint32(head, uint32(len(part)))
		head = append(head, part...)
	}
	go r.read()
	go r.write()
	r.send(head)
	if err := r.load(ctx); err != nil {
		close(r.output)
		return nil, fmt.Errorf("cannot load the Python runtime: %w", err)
	}
	return r, nil
}

// load waits until the guest has loaded the runtime.
func (r *Remote) load(ctx context.Context) error {
	for {
		kind, payload, err := r.frame(ctx)
		if err != nil {
			return err
		}
		switch {
		case kind == frameReady && len(payload) == 12:
			for i := range r.Version {
				r.Version[i] = int(binary.LittleEndian.Uint32(payload[4*i:]))
			}
			return nil
		case kind == frameRequest && len(payload) >= 4: // it rehearses: nobody listens
			if err := r.answer(binary.LittleEndian.Uint32(payload), Reply{Data: []byte("null"), ASCII: true}); err != nil {
				return err
			}
		}
	}
}

// Gone is closed when the guest has ended the connection.
func (r *Remote) Gone() <-chan struct{} { return r.closed }

func (r *Remote) read() {
	defer close(r.input)
	defer close(r.closed)
	part := make([]byte, 64<<10)
	for {
		n, err := r.conn.Read(part)
		if n > 0 {
			r.input <- append(make([]byte, 0, n), part[:n]...)
		}
		if err != nil {
			return
		}
	}
}

// write writes what send queues. It is a goroutine of its own because a guest
// need not read.
func (r *Remote) write() {
	broken := false
	for data := range r.output {
		if !broken {
			_, err := r.conn.Write(data)
			broken = err != nil // it shows at the next read
		}
	}
}

// maxQueued is how many bytes of answers may wait for a guest that does not
// read; until then no more of its requests are looked at.
const maxQueued = 32 << 20

// send queues bytes for the guest.
func (r *Remote) send(data []byte) {
	r.queue = append(r.queue, data)
	r.queued += len(data)
}

// outgoing is where to write and what; both nil if there is nothing.
func (r *Remote) outgoing() (chan<- []byte, []byte) {
	if len(r.queue) == 0 {
		return nil, nil
	}
	return r.output, r.queue[0]
}

func (r *Remote) written() {
	r.queued -= len(r.queue[0])
	r.queue[0] = nil
	r.queue = r.queue[1:]
}

// Peak is the most memory that the guest says it had, in bytes.
func (r *Remote) Peak() int64 { return r.peak }

// Close ends the connection; the process has to be ended by its owner.
func (r *Remote) Close() error {
	err := r.conn.Close()
	close(r.output)
	for range r.input { // lets read end
	}
	return err
}

// frame waits for the next frame; for the tests of limits, see Run.
func (r *Remote) frame(ctx context.Context) (kind byte, payload []byte, err error) {
	for {
		if kind, payload, ok, err := r.next(); ok || err != nil {
			return kind, payload, err
		}
		out, first := r.outgoing()
		select {
		case out <- first:
			r.written()
		case part, open := <-r.input:
			if !open {
				return 0, nil, ErrGone
			}
			r.buffer = append(r.buffer, part...)
		case <-ctx.Done():
			return 0, nil, context.Cause(ctx)
		}
	}
}

// next cuts a whole frame from the buffer.
func (r *Remote) next() (kind byte, payload []byte, ok bool, err error) {
	if len(r.buffer) < frameHead {
		return 0, nil, false, nil
	}
	size := int64(binary.LittleEndian.Uint32(r.buffer))
	if size > maxRequest+frameHead {
		return 0, nil, false, errRequest
	}
	if int64(len(r.buffer)) < frameHead+size {
		return 0, nil, false, nil
	}
	kind, payload = r.buffer[4], r.buffer[frameHead:frameHead+size]
	r.buffer = r.buffer[frameHead+size:]
	return kind, payload, true, nil
}

func (r *Remote) answer(number uint32, reply Reply) error {
	head := binary.LittleEndian.AppendUint32(make([]byte, 0, 16+len(reply.Data)), uint32(5+len(reply.Data)))
	head = append(head, frameAnswer)
	head = binary.LittleEndian.AppendUint32(head, number)
	failed := byte(0)
	if reply.Failed {
		failed = 1
	}
	head = append(head, failed)
	at := len(head)
	head = head[:at+len(reply.Data)]
	if err := reply.CopyTo(head[at:]); err != nil {
		return err
	}
	r.send(head)
	return nil
}

// Begun reports whether the guest has begun with the last run.
func (r *Remote) Begun() bool { return r.begun }

// Kept is the last snippet that the state holds to which ErrRestored returned.
func (r *Remote) Kept() int { return r.keeper.snippet }

// Run runs a snippet. Safe leaves a keeper behind, unless the guest has threads or
// processes, which no copy of it would have; it keeps the state after snippet
// before. The errors are ErrGone, ErrRestored, or the caller's.
func (r *Remote) Run(s *Session, source string, flags int, safe bool, before int) (code int, err error) {
	if r.gone {
		return -1, ErrGone
	}
	r.pending, r.ended, r.work = map[uint32]*remoteCall{}, make(chan *remoteCall, 16), work{}
	defer r.abandon()
	r.coming, r.begun = keeper{mark: make([]byte, markSize), snippet: before}, false
	_, _ = rand.Read(r.coming.mark) // it never fails
	head := binary.LittleEndian.AppendUint32(nil, uint32(21+len(source)))
	head = append(head, frameRun)
	head = binary.LittleEndian.AppendUint32(head, uint32(flags))
	head = append(head, b2i(safe))
	head = append(append(head, r.coming.mark...), source...)
	r.send(head)
	return r.serve(s)
}

func b2i(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// tick is how often the limits are looked at.
const tick = 2 * time.Millisecond

func (r *Remote) serve(s *Session) (int, error) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	asked := asking{control: r.control}
	last := time.Now()
	for {
		// Requests may be slow, and many may have come: the limits are looked at between.
		for begun := time.Now(); r.queued < maxQueued && time.Since(begun) < tick; {
			kind, payload, ok, err := r.next()
			if err != nil {
				return -1, r.stop()
			}
			if !ok {
				break
			}
			if code, done, err := r.handle(s, kind, payload); done || err != nil {
				return code, err
			}
		}
		input := r.input
		if r.queued >= maxQueued {
			input = nil
		}
		out, first := r.outgoing()
		select {
		case out <- first:
			r.written()
		case part, open := <-input:
			if !open {
				r.gone = true
				return -1, ErrGone
			}
			r.buffer = append(r.buffer, part...)
			if r.takenOver(len(part)) {
				return -1, r.welcome()
			}
		case call := <-r.ended:
			r.charge(s, &last)
			if s.Canceled() {
				continue // that is what ended it; the guest gets an interrupt instead
			}
			delete(r.pending, call.number)
			if err := r.answer(call.number, call.reply); err != nil && s.Broken() == nil {
				s.Broke(err)
				return -1, r.stop()
			}
		case <-ticker.C:
			r.charge(s, &last)
			if s.Over() != "" && asked.inVain() {
				return -1, r.stop()
			}
		}
	}
}

// asking has a snippet end itself. Its grace is counted in looks: what the host's own
// interrupts take, and what it has to wait for a processor itself, is no time in which
// the guest has disobeyed. A guest that keeps the host from looking has mostGrace.
type asking struct {
	control     Control
	looks       int
	begun, last time.Time     // the first look, the last interrupt
	spent       time.Duration // on interrupts
}

// How long a snippet that is asked to end may take, and how often it is asked.
const (
	remoteGrace = 500 * time.Millisecond
	mostGrace   = 5 * time.Second
	remoteNag   = 100 * time.Millisecond
)

// inVain asks when it is time to, and reports whether the guest has had its grace.
func (a *asking) inVain() bool {
	now := time.Now()
	if a.looks++; a.looks == 1 {
		a.begun = now
	}
	if a.looks > int(remoteGrace/tick) || now.Sub(a.begun)-a.spent > mostGrace {
		return true
	}
	if now.Sub(a.last) > remoteNag {
		a.control.Interrupt()
		a.last = time.Now()
		a.spent += a.last.Sub(now)
	}
	return false
}

// handle does what one frame asks for.
func (r *Remote) handle(s *Session, kind byte, payload []byte) (code int, done bool, err error) {
	if !r.begun { // what an earlier snippet left or forged
		r.begun = kind == frameBegin && bytes.Equal(payload, r.coming.mark)
		return 0, false, nil
	}
	switch kind {
	case frameDone:
		if len(payload) != 12 {
			return -1, true, r.stop()
		}
		r.peak = int64(min(binary.LittleEndian.Uint64(payload[4:]), 1<<40)) << 10
		return int(int32(binary.LittleEndian.Uint32(payload))), true, nil
	case frameKeeper:
		if len(payload) != 4 {
			return -1, true, r.stop()
		}
		if pid := int(binary.LittleEndian.Uint32(payload)); pid != 0 {
			r.former, r.keeper = r.keeper, r.coming
			r.keeper.pid = pid
		} else {
			r.keeper = r.former
		}
		if r.takenOver(len(r.buffer)) { // the mark came together with this
			return -1, true, r.welcome()
		}
		return 0, false, nil
	case frameRequest:
		if len(payload) < 5 {
			return -1, true, r.stop()
		}
		return r.request(s, binary.LittleEndian.Uint32(payload), payload[4:])
	}
	return 0, false, nil
}

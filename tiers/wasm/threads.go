package wasm

import (
	"context"
	"errors"
	"sync"

	"github.com/rlmhq/rlm/internal/machine/aot"
)

// threads runs the threads of one snippet. Each thread has a goroutine, which holds its calls in
// the engine, and a stack in the guest's memory. One thread runs at a time: it runs until it
// switches to another one, and then waits inside hostSwitch. So a plain function that waits for a
// host call can be suspended, and resumed when the answer arrives.
//
// The guest chooses the next thread (see threads.py). All fields belong to the running thread.
type threads struct {
	running *thread
	main    *thread
	others  map[uint32]*thread // by the address of the guest's thread_t
	group   sync.WaitGroup     // the goroutines of others
	stacks  int                // total size of the machine stacks of all waiting threads, in bytes

	isOver bool  // the snippet ended, so threads that wake up must end, too
	failed error // the error that ended a thread other than main
}

// thread is one thread of a snippet.
type thread struct {
	address      uint32        // 0 for the main thread
	function     function      // the guest's function that it runs
	resume       chan struct{} // it waits here
	stackPointer uint32        // its value while the thread does not run
	starter      *thread       // the thread that first switched to it
}

const (
	// maxThreads bounds the threads other than the main one, as threads.py does.
	maxThreads = 256
	// maxStacks bounds the machine stacks of all waiting threads, in bytes. A waiting thread
	// usually uses 20 to 160 KiB. Only the main thread may use more.
	maxStacks = 64 << 20
)

func newThread(address uint32, function function) *thread {
	return &thread{address: address, function: function, resume: make(chan struct{}, 1)}
}

// begin makes the caller's goroutine the main thread.
func (ts *threads) begin(function function) {
	main := newThread(0, function)
	ts.main, ts.running, ts.others, ts.stacks = main, main, nil, 0
	ts.isOver, ts.failed = false, nil
}

// end ends all threads except the main one, whose call has returned, and returns their error.
func (ts *threads) end() error {
	ts.isOver = true
	for _, t := range ts.others {
		t.resume <- struct{}{}
	}
	ts.group.Wait()

	return ts.failed
}

var (
	errThreads = errors.New("the guest switched to an impossible thread")
	errStacks  = errors.New("the calls of all threads together are too deep")
)

// hostSwitch makes another thread run, and returns when a thread switches back. It also returns if
// the process has no stack for a new thread; the thread then did not begin.
func hostSwitch(ctx context.Context, in *instance, stack []uint64) {
	ts := &in.threads
	self := ts.running
	next := ts.find(uint32(stack[0]))
	if next == nil {
		next = in.start(ctx, uint32(stack[0]), uint32(stack[1]))
	}

	size := self.function.shrinkStack()
	if ts.stacks += size; ts.stacks > maxStacks && len(ts.others) > 0 {
		panic(errStacks)
	}
	self.stackPointer = in.machine.stackPointer()
	if next != self {
		next.resume <- struct{}{}
		<-self.resume
	}
	if ts.isOver {
		panic(errKilled)
	}

	ts.running = self
	ts.stacks -= size
	in.machine.setStackPointer(self.stackPointer)
}

// find returns the thread at an address, or nil for a thread that has not begun.
func (ts *threads) find(address uint32) *thread {
	if address == 0 {
		return ts.main
	}
	return ts.others[address]
}

// start creates a thread, which waits until it is resumed.
func (in *instance) start(ctx context.Context, address, stackTop uint32) *thread {
	ts := &in.threads
	if len(ts.others) >= maxThreads || ts.isOver {
		panic(errThreads)
	}
	if ts.others == nil {
		ts.others = map[uint32]*thread{}
	}

	t := newThread(address, in.machine.function("thread"))
	t.stackPointer, t.starter = stackTop, ts.running
	ts.others[address] = t
	ts.group.Go(func() {
		<-t.resume
		if !ts.isOver {
			in.runThread(ctx, t)
		}
	})

	return t
}

// runThread calls the guest's function of a thread, and then resumes the thread that the guest
// names. After an error, it resumes the main thread, which ends the snippet. A thread that cannot
// begin is dropped, and its starter continues.
func (in *instance) runThread(ctx context.Context, t *thread) {
	ts := &in.threads
	ts.running = t
	in.machine.setStackPointer(t.stackPointer)
	stack := [1]uint64{uint64(t.address)}
	err := t.function.call(ctx, stack[:])
	if ts.isOver {
		return
	}

	delete(ts.others, t.address)
	if errors.Is(err, aot.ErrNoStack) {
		t.starter.resume <- struct{}{}
		return
	}

	next := ts.find(uint32(stack[0]))
	if err == nil && next == nil {
		err = errThreads
	}
	if err != nil {
		ts.isOver, ts.failed, next = true, err, ts.main
	}
	next.resume <- struct{}{}
}

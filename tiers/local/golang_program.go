package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/frame"
	"github.com/rlmhq/rlm/internal/gopipes"
	"github.com/rlmhq/rlm/internal/gorun"
	"github.com/rlmhq/rlm/internal/gosession"
	"github.com/rlmhq/rlm/internal/jail"
)

// goProgram is a compiled session that runs in its jail.
type goProgram struct {
	jail    *jail.Process
	streams *gopipes.Pipes
	frames  chan gosession.Frame // closed when it is gone
	broke   bool                 // it sent what is no frame; written before frames is closed
	gone    chan struct{}
	end     func() jail.Exit // kills it, and waits

	write  sync.Mutex // guards writing
	writer *frame.Writer
}

var _ gosession.Program = (*goProgram)(nil)

// programPath is where the program is in its jail.
const programPath = "/program/main"

// What a program needs beyond the snippet's own memory.
const (
	programMemory = 64 << 20 // resident
	programSpace  = 4 << 30  // address space: the runtime reserves much that it never uses
)

// takenIn bounds how long a program may take to read a frame.
const takenIn = 10 * time.Second

// Start starts a program. Its file is gone as soon as the jail holds it.
func (m *goMachine) Start(ctx context.Context, program []byte) (gosession.Program, error) {
	dir, err := os.MkdirTemp("", "rlm-go-")
	if err != nil {
		return nil, fmt.Errorf("cannot store a program: %w", err)
	}
	file := filepath.Join(dir, "main")
	var process *jail.Process
	if err = os.WriteFile(file, program, 0o755); err == nil { //nolint:gosec // for the guest's user
		process, err = jail.Start(context.WithoutCancel(ctx), jail.Config{
			Path: programPath, Args: []string{"main"},
			Env:     []string{"PATH=/usr/bin:/bin", "HOME=/sandbox", "LANG=C.UTF-8", "TMPDIR=/tmp", "GODEBUG=randseednop=0", "GOTRACEBACK=single"},
			Binds:   append(binds(programFolders), jail.Bind{Source: file, Target: programPath}),
			Profile: jail.CPython, MinClass: m.class,
			Limits: jail.Limits{Memory: m.memory + programMemory, AddressSpace: m.memory + programSpace},
		})
	}
	if err = errors.Join(err, os.RemoveAll(dir)); err != nil {
		if process != nil {
			err = errors.Join(err, process.Kill())
		}
		return nil, fmt.Errorf("cannot start a program: %w", err)
	}
	p := &goProgram{
		jail: process, frames: make(chan gosession.Frame), gone: make(chan struct{}),
		writer: frame.NewWriter(process.Conn(), gorun.MaxFromHost),
	}
	p.end = sync.OnceValue(p.kill)
	go p.read()
	if p.streams, err = gopipes.New(process.Conn()); err != nil {
		p.end()
		return nil, fmt.Errorf("cannot set up a program: %w", err)
	}
	return p, nil
}

// programFolders are what a program finds of the host.
var programFolders = []string{"/usr", "/lib", "/lib64", "/bin"}

// read hands on the program's frames until the connection ends.
func (p *goProgram) read() {
	defer close(p.frames)
	in := frame.NewReader(p.jail.Conn(), gorun.MaxFromGuest)
	for {
		kind, body, err := in.Next()
		if err != nil {
			p.broke = errors.Is(err, frame.ErrTooLarge)
			return
		}
		select {
		case p.frames <- gosession.Frame{Kind: kind, Body: append([]byte(nil), body...)}:
		case <-p.gone:
			return
		}
	}
}

// Send sends one frame.
func (p *goProgram) Send(kind byte, body []byte) error {
	p.write.Lock()
	defer p.write.Unlock()
	if err := p.jail.Conn().SetWriteDeadline(time.Now().Add(takenIn)); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return p.writer.Write(kind, body)
}

// kill ends the program and says how it had ended, if it had.
func (p *goProgram) kill() jail.Exit {
	close(p.gone)
	killed := p.jail.Kill()
	for range p.frames { // until the reader has ended
	}
	ctx, cancel := context.WithTimeout(context.Background(), orderTimeout)
	defer cancel()
	exit, err := p.jail.Wait(ctx)
	if err != nil || killed != nil {
		return jail.Exit{Code: -1, Killed: true}
	}
	return exit
}

// Frames is what the program sends.
func (p *goProgram) Frames() <-chan gosession.Frame { return p.frames }

// Broke reports that it sent what is no frame.
func (p *goProgram) Broke() bool { return p.broke }

// Attach makes its output go to sink.
func (p *goProgram) Attach(sink gopipes.Sink) { p.streams.Attach(sink) }

// Usage is what its jail has used.
func (p *goProgram) Usage() jail.Usage { return p.jail.Usage() }

// OOM reports that something in its jail was ended for its memory.
func (p *goProgram) OOM() bool { return p.jail.OOM() }

// Fault is nil: what ends a jail is the guest or its tier.
func (p *goProgram) Fault() error { return nil }

// End ends the program.
func (p *goProgram) End() { p.end() }

// Close ends the program and lets go of it.
func (p *goProgram) Close() {
	p.end()
	p.streams.Close()
}

// Died waits for a program whose connection has ended.
func (p *goProgram) Died() jail.Exit {
	ctx, cancel := context.WithTimeout(context.Background(), orderTimeout)
	defer cancel()
	exit, err := p.jail.Wait(ctx)
	if err != nil {
		return p.end()
	}
	return exit
}

package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rlmhq/rlm/images"
	"github.com/rlmhq/rlm/internal/frame"
	"github.com/rlmhq/rlm/internal/gopipes"
	"github.com/rlmhq/rlm/internal/gorelay"
	"github.com/rlmhq/rlm/internal/gorun"
	"github.com/rlmhq/rlm/internal/gosession"
	"github.com/rlmhq/rlm/internal/jail"
)

// goProgram is a compiled session that runs in a container of its own.
type goProgram struct {
	container
	tier   *Tier
	ending *sync.WaitGroup // of the machine: programs that are being let go
	folder *goFolder
	frames chan gosession.Frame // closed when it is gone
	gone   chan struct{}
	stop   func() // ends the container, and waits
	usage  atomic.Pointer[gorelay.Usage]

	// What follows is written before frames is closed.
	broke bool // it sent what is no frame
	exit  *gorelay.Exit

	oom bool

	write  sync.Mutex // guards writing
	writer *frame.Writer
}

var _ gosession.Program = (*goProgram)(nil)

// programFolder is where a container finds its program.
const programFolder = "/program"

// programEnv is all that a program finds of an environment.
var programEnv = []string{
	"PATH=/usr/bin:/bin", "HOME=/sandbox", "LANG=C.UTF-8", "TMPDIR=/tmp", "GODEBUG=randseednop=0", "GOTRACEBACK=single",
	"ZONEINFO=/usr/lib/rlm/zoneinfo.zip",
}

// programMemory is what the container of a program may have: the snippet's memory, and
// what the program, its first process and the files in memory take beside it.
func programMemory(limit int64) int64 {
	const page = 64 << 10 // the largest that a kernel has
	return (limit + 96<<20 + page - 1) / page * page
}

// takenIn bounds how long a program may take to read a frame.
const takenIn = 10 * time.Second

// goFolder is a folder of the host in which a program is put once its container
// waits for it. Only this user reaches it on the host; the container sees the inner
// folder, read-only.
type goFolder struct{ outer, inner string }

func newGoFolder() (*goFolder, error) {
	outer, err := os.MkdirTemp("", "rlm-go-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder for a program: %w", err)
	}
	f := &goFolder{outer, filepath.Join(outer, "program")}
	err = os.Mkdir(f.inner, 0o755) //nolint:gosec // the outer folder is closed
	if err == nil {
		err = os.Chmod(f.inner, 0o755) //nolint:gosec // whatever the umask is
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot make a folder for a program: %w", err), f.remove())
	}
	return f, nil
}

// put writes the program into the folder.
func (f *goFolder) put(program []byte) error {
	name := filepath.Join(f.inner, "main")
	if err := os.WriteFile(name, program, 0o755); err != nil { //nolint:gosec // the container's user runs it
		return fmt.Errorf("cannot store a program: %w", err)
	}
	return os.Chmod(name, 0o755) //nolint:gosec // whatever the umask is
}

func (f *goFolder) remove() error { return os.RemoveAll(f.outer) }

// startProgram starts a container that waits for a program.
func (m *goMachine) startProgram(ctx context.Context) (*goProgram, error) {
	folder, err := newGoFolder()
	if err != nil {
		return nil, err
	}
	p := &goProgram{tier: m.tier, ending: &m.ending, folder: folder, frames: make(chan gosession.Frame), gone: make(chan struct{})}
	n := needs{files: m.files.with(folder.inner, programFolder)}
	spec := m.spec("program", n)
	spec.Command = append([]string{images.GoGuest, "run", programFolder + "/main"}, programEnv...)
	spec.Memory, spec.Processes = programMemory(m.memory), processes
	if err := m.tier.boot(ctx, &p.container, spec); err != nil {
		return nil, errors.Join(err, folder.remove())
	}
	p.writer = frame.NewWriter(p.box, gorun.MaxFromHost)
	p.stop = sync.OnceFunc(p.kill)
	go p.read()
	if err := m.tier.trust(ctx, &p.container, &m.setup, n); err != nil {
		p.Close()
		return nil, err
	}
	if err := m.tier.removeLeft(ctx); err != nil { // the daemon answers again
		m.tier.options.Log.Warn().Err(err).Msg("cannot remove a container")
	}
	return p, nil
}

// begin has the container run its program.
func (p *goProgram) begin(program []byte) error {
	select {
	case <-p.frames: // nothing comes before the start but the end
		return errors.New("the container has ended while it waited")
	default:
	}
	if err := p.folder.put(program); err != nil {
		return err
	}
	return p.Send(gorelay.KindStart, nil)
}

// read hands on the program's frames until there are none. All of them are hostile.
func (p *goProgram) read() {
	defer close(p.frames)
	in := frame.NewReader(p.box, gorelay.MaxFrame)
	for {
		kind, body, err := in.Next()
		if err != nil {
			p.broke = errors.Is(err, frame.ErrTooLarge)
			return
		}
		f, more := p.take(kind, body)
		if !more {
			return
		}
		if f == nil {
			continue
		}
		select {
		case p.frames <- *f:
		case <-p.gone:
			return
		}
	}
}

// take makes of a frame what the session gets, nil for nothing, and reports whether
// another may come.
func (p *goProgram) take(kind byte, body []byte) (f *gosession.Frame, more bool) {
	switch kind {
	case gorelay.KindStdout:
		return &gosession.Frame{Stream: 1, Body: slices.Clone(body)}, true
	case gorelay.KindStderr:
		return &gosession.Frame{Stream: 2, Body: slices.Clone(body)}, true
	case gorelay.KindUsage:
		var usage gorelay.Usage
		if gorun.Decode(body, &usage) != nil || usage.CPUNanos < 0 || usage.PeakMemory < 0 {
			p.broke = true
			return nil, false
		}
		usage.PeakMemory = min(usage.PeakMemory, p.limit)
		p.usage.Store(&usage)
		return nil, true
	case gorelay.KindExit:
		var exit gorelay.Exit
		if gorun.Decode(body, &exit) != nil || exit.Code < -1 || exit.Code > 255 || exit.Signal < 0 || exit.Signal > 64 {
			p.broke = true
			return nil, false
		}
		p.exit = &exit
		return nil, false
	case gorelay.KindBroke:
		p.broke = true
		return nil, false
	}
	return &gosession.Frame{Kind: kind, Body: slices.Clone(body)}, true
}

// Send sends one frame.
func (p *goProgram) Send(kind byte, body []byte) error {
	p.write.Lock()
	defer p.write.Unlock()
	if err := p.box.SetWriteDeadline(time.Now().Add(takenIn)); err != nil {
		return fmt.Errorf("cannot write to a container: %w", err)
	}
	return p.writer.Write(kind, body)
}

// Frames is what the program sends.
func (p *goProgram) Frames() <-chan gosession.Frame { return p.frames }

// Broke reports that it sent what is no frame.
func (p *goProgram) Broke() bool { return p.broke }

// Attach does nothing: outputs are frames.
func (p *goProgram) Attach(gopipes.Sink) {}

// Usage is what the container's first process has counted last.
func (p *goProgram) Usage() jail.Usage {
	if u := p.usage.Load(); u != nil {
		return jail.Usage{PeakMemory: u.PeakMemory, CPUNanos: u.CPUNanos}
	}
	return jail.Usage{}
}

// OOM reports that the kernel has ended it, or something beside it, for its memory.
func (p *goProgram) OOM() bool { return p.oom }

// Died says how a program ended whose frames have ended, or are about to.
func (p *goProgram) Died() jail.Exit {
	late := time.NewTimer(orderTimeout)
	defer late.Stop()
	for open := true; open; {
		select {
		case _, open = <-p.frames:
		case <-late.C:
			p.End()
			return jail.Exit{Code: -1, Killed: true}
		}
	}
	if p.exit == nil { // its first process is gone
		p.oom = p.OutOfMemory(true)
		return jail.Exit{Code: -1, Killed: true, OOM: p.oom}
	}
	exit := jail.Exit{Code: p.exit.Code, Signal: syscall.Signal(p.exit.Signal)}
	p.oom = p.OutOfMemory(exit.Signal == syscall.SIGKILL)
	exit.OOM = p.oom
	return exit
}

// End ends the program, and looks whether somebody else has had a hand in it.
func (p *goProgram) End() {
	select {
	case <-p.gone:
		return
	default:
	}
	if p.fault == nil {
		p.fault = p.trouble(nil)
	}
	p.stop()
}

// kill ends the container, and waits.
func (p *goProgram) kill() {
	close(p.gone)
	p.killed = true
	if err := p.end(); err != nil { // it is removed later, or the tier's Close reports it
		p.tier.options.Log.Warn().Err(err).Msg("cannot remove a container")
	}
	for range p.frames { // until the reader has ended
	}
}

// Close ends the program and lets go of it. It does not wait, the machine's Close
// does: to remove a container takes as long as to compile a program.
func (p *goProgram) Close() {
	p.ending.Go(func() {
		p.stop()
		if err := p.folder.remove(); err != nil {
			p.tier.options.Log.Warn().Err(err).Msg("cannot remove a program")
		}
	})
}

package golang

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rlmhq/rlm/internal/golang/guest/relay"
	"github.com/rlmhq/rlm/internal/golang/guest/run"
	"github.com/rlmhq/rlm/internal/snippet/frame"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/snippet/session/wire"
)

// program is a relay with the program that it runs or waits for.
type program struct {
	box        Box
	folder     *folder
	connection *session.Connection
	usage      atomic.Pointer[relay.Usage]
	limit      int64 // on the memory use that the program may report
	close      func() error

	// The fields below belong to the goroutine that serves the program.
	isConfigured bool
	accounts     *session.Accounts // the current snippet's accounts
	exit         *relay.Exit       // how the program ended, or nil
	isRude       bool              // the program sent an invalid message
	isKilled     bool              // by the host
	outOfMemory  bool
	fault        error
}

var (
	_ session.Control   = (*program)(nil)
	_ session.Processor = (*program)(nil)
)

// startProgram starts a relay that waits for its program.
func startProgram(ctx context.Context, wall Wall, memory int64) (*program, error) {
	folder, err := makeFolder()
	if err != nil {
		return nil, err
	}
	box, err := wall.StartRelay(ctx, folder.inner)
	if err != nil {
		return nil, errors.Join(err, folder.remove())
	}

	p := &program{box: box, folder: folder, limit: memory + ProgramMemory}
	p.connection = session.NewConnection(box.Conn(), p)
	p.connection.MaxRequest = wire.MaxGoRequest
	p.connection.OnFrame = p.takeFrame
	p.connection.Unslept = true
	p.close = sync.OnceValue(func() error {
		err := errors.Join(box.Close(), folder.remove())
		_ = p.connection.Close() // the box also closes the connection
		return err
	})
	return p, nil
}

// begin makes the relay start a program.
func (p *program) begin(file []byte) error {
	select {
	case <-p.connection.Gone():
		return errors.New("the process ended while it waited for a snippet")
	default:
	}

	if err := p.folder.put(file); err != nil {
		return err
	}
	p.connection.Send(frame.AppendHeader(nil, relay.KindStart, 0))
	return nil
}

// run runs snippet number n of the program.
func (p *program) run(a *session.Accounts, n int, s run.Session) (wire.Done, error) {
	p.accounts = a
	order := wire.Order{Flags: n << wire.OrdinalShift}
	if !p.isConfigured {
		source, err := json.Marshal(s)
		if err != nil {
			return wire.Done{}, err
		}
		p.isConfigured = true
		order.Flags |= wire.FlagConfigure
		order.Source = string(source)
	}

	done, err := p.connection.Run(a, order, 0)
	if err == nil && done.Code != wire.CodeOK && done.Code != wire.CodeRaised &&
		done.Code != wire.CodeExited {
		p.isRude = true
		p.Kill(0)
		err = session.ErrGone
	}
	if err != nil {
		p.inquire()
	}
	return done, err
}

// takeFrame handles a frame sent by the relay itself. Its numbers are not trusted.
func (p *program) takeFrame(kind byte, body []byte) (isGone bool) {
	switch kind {
	case relay.KindStdout, relay.KindStderr:
		p.accounts.Print(kind == relay.KindStderr, body)
		return false

	case relay.KindUsage:
		var usage relay.Usage
		if frame.DecodeJSON(body, &usage) != nil || usage.CPUNanos < 0 || usage.PeakMemory < 0 {
			break
		}
		usage.PeakMemory = min(usage.PeakMemory, p.limit)
		if last := p.usage.Load(); last != nil { // neither count may decrease
			usage.CPUNanos = max(usage.CPUNanos, last.CPUNanos)
			usage.PeakMemory = max(usage.PeakMemory, last.PeakMemory)
		}
		p.usage.Store(&usage)
		return false

	case relay.KindExit:
		var exit relay.Exit
		if frame.DecodeJSON(body, &exit) != nil || exit.Code < -1 || exit.Code > 255 ||
			exit.Signal < 0 || exit.Signal > 64 {
			break
		}
		p.exit = &exit
		return true
	}
	p.isRude = true
	return true
}

// Processor returns the program's processor time according to the last report of its relay.
func (p *program) Processor() time.Duration {
	if u := p.usage.Load(); u != nil {
		return time.Duration(u.CPUNanos)
	}
	return 0
}

// peak returns the program's peak memory use, in bytes.
func (p *program) peak() int64 {
	if u := p.usage.Load(); u != nil {
		return u.PeakMemory
	}
	return 0
}

// Kill ends the program.
func (p *program) Kill(int) {
	if p.isKilled {
		return
	}

	p.isKilled = true
	_, p.fault = p.box.Diagnose(false)
	_ = p.close() // the guest reports the error
}

// inquire determines why the program ended, unless the host killed it.
func (p *program) inquire() {
	p.isRude = p.isRude || p.connection.IsRude()
	if p.isKilled {
		return
	}
	if p.exit == nil || p.exit.Signal == int(syscall.SIGKILL) {
		p.outOfMemory, p.fault = p.box.Diagnose(true)
	}
}

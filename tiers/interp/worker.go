package interp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/snippet/session/wire"
	"github.com/rlmhq/rlm/internal/wall/jail"
)

// jailed is the part of a jail that the tier uses.
type jailed interface {
	Conn() net.Conn
	Kill() error
	Wait(ctx context.Context) (jail.Exit, error)
	Output() []byte
	OOM() bool
	Usage() jail.Usage
}

// starter starts a worker's jail with the given memory, in bytes.
type starter func(ctx context.Context, memory int64) (jailed, error)

const (
	// readyTimeout bounds the start of a worker, endTimeout its end.
	readyTimeout = 30 * time.Second
	endTimeout   = 10 * time.Second
)

// process is the host's end of one worker. It has one owner.
type process struct {
	jail       jailed
	connection *session.Connection
	end        func() jail.Exit // kills it if it is alive, and returns how it ended
	isRude     bool             // it violated the protocol
}

var (
	_ session.Control   = (*process)(nil)
	_ session.Processor = (*process)(nil)
)

// launch starts a worker and waits until it is warm.
func launch(ctx context.Context, start starter, memory int64) (*process, error) {
	j, err := start(context.WithoutCancel(ctx), memory)
	if err != nil {
		return nil, fmt.Errorf("cannot start a worker: %w", err)
	}

	p := &process{jail: j}
	p.connection = session.NewConnection(j.Conn(), p)
	p.connection.MaxRequest, p.connection.Unslept = wire.MaxGoRequest, true
	p.end = sync.OnceValue(p.finish)

	limited, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	_, err = p.connection.Await(limited, wire.KindReady)
	switch {
	case err == nil:
		return p, nil
	case errors.Is(err, session.ErrGone):
		err = fmt.Errorf("cannot start a worker: it died (%s)", jail.LastLine(j.Output()))
	case ctx.Err() == nil:
		err = errors.New("cannot start a worker: it was not ready in time")
	}

	p.end()
	return nil, err
}

// Kill ends the worker. process.end reports the error.
func (p *process) Kill(int) { _ = p.jail.Kill() }

// Processor returns the processor time of the worker.
func (p *process) Processor() time.Duration { return time.Duration(p.jail.Usage().CPUNanos) }

// finish kills the worker if it is alive, waits until it has ended, and returns how it ended.
func (p *process) finish() jail.Exit {
	outOfMemory := p.jail.OOM()
	killed := p.jail.Kill()
	ctx, cancel := context.WithTimeout(context.Background(), endTimeout)
	defer cancel()
	exit, err := p.jail.Wait(ctx)
	if err != nil || killed != nil {
		exit = jail.Exit{Code: -1, Killed: true}
	}

	_ = p.connection.Close() // its other end is gone

	exit.OOM = exit.OOM || outOfMemory
	return exit
}

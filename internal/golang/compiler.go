package golang

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rlmhq/rlm/internal/golang/guest/build"
)

// buildTimeout bounds one compilation. Only an attack takes more than seconds.
const buildTimeout = 20 * time.Second

// compiler compiles the programs of one session. It starts a process on demand, and again after it
// had to stop the previous one.
type compiler struct {
	wall Wall
	box  Box // nil if the process does not run
}

// maxRounds bounds how often the compiler may request additional packages.
const maxRounds = 3

// compile compiles the program of a session. The error is a [*build.CompileError] for a mistake in
// a snippet, or if a snippet exceeds the compiler's limits.
func (c *compiler) compile(ctx context.Context, request *build.Request) (build.Built, error) {
	var missing []string
	for range maxRounds {
		toolchain, err := c.wall.Toolchain(ctx, missing)
		if err != nil {
			return build.Built{}, err
		}

		request.Toolchain = toolchain
		built, more, err := c.ask(ctx, request)
		if err != nil || len(more) == 0 {
			return built, err
		}
		missing = more
	}
	return build.Built{}, build.Stopped("the compiler requests packages endlessly")
}

var errCompilerGone = errors.New("the compiler broke")

// ask sends a request, and repeats the request once if the compiler has ended.
func (c *compiler) ask(ctx context.Context, request *build.Request) (build.Built, []string, error) {
	built, missing, err := c.askOnce(ctx, request)
	if errors.Is(err, errCompilerGone) {
		built, missing, err = c.askOnce(ctx, request)
	}
	if errors.Is(err, errCompilerGone) {
		err = build.Stopped(err.Error())
	}
	return built, missing, err
}

// askOnce sends one request, within the limits of a compilation.
func (c *compiler) askOnce(
	ctx context.Context, request *build.Request,
) (build.Built, []string, error) {
	if c.box == nil {
		box, err := c.wall.StartCompiler(ctx)
		if err != nil {
			return build.Built{}, nil, fmt.Errorf("cannot start the compiler: %w", err)
		}
		c.box = box
	}

	deadline := time.Now().Add(buildTimeout)
	limited, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	box := c.box
	defer context.AfterFunc(limited, func() { _ = box.Close() })() // the error is reported below
	built, missing, err := build.Ask(box.Conn(), request)
	var failure *build.CompileError
	if err == nil || errors.As(err, &failure) {
		return built, missing, err
	}

	isLate := time.Now().After(deadline)
	outOfMemory := false
	if limited.Err() == nil {
		var fault error
		outOfMemory, fault = box.Diagnose(true)
		err = errors.Join(err, fault)
	}
	if said := box.Said(); said != "" {
		err = errors.Join(err, errors.New(said))
	}
	err = errors.Join(err, c.close())

	switch {
	case ctx.Err() != nil:
		return build.Built{}, nil, context.Cause(ctx)
	case outOfMemory:
		return build.Built{}, nil, build.Stopped(
			fmt.Sprintf("the compiler needed more than %d MiB", CompilerMemory>>20),
		)
	case isLate:
		return build.Built{}, nil, build.Stopped(
			fmt.Sprintf("the compiler took longer than %v", buildTimeout),
		)
	}
	return build.Built{}, nil, fmt.Errorf("%w: %w", errCompilerGone, err)
}

func (c *compiler) close() error {
	if c.box == nil {
		return nil
	}
	err := c.box.Close()
	c.box = nil
	return err
}

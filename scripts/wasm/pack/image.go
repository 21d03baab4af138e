package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/rlmhq/rlm/internal/machine/cpython/manifest"
)

// withGuest calls use with a guest of the module.
func withGuest(ctx context.Context, module, image []byte, use func(*guest) error) (err error) {
	h, err := newHost(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close(ctx)) }()

	code, err := h.compile(ctx, module)
	if err != nil {
		return err
	}

	g, err := h.instantiate(ctx, code, image)
	if err != nil {
		return err
	}
	return use(g)
}

// takeImage starts Python, runs preload and returns the memory.
func takeImage(ctx context.Context, module, preload []byte, stackPointer uint32) ([]byte, error) {
	var image []byte
	err := withGuest(ctx, module, nil, func(g *guest) error {
		if err := g.start(ctx, preload); err != nil {
			return err
		}
		if err := g.checkQuiet(stackPointer); err != nil {
			return err
		}

		memory, ok := g.mod.Memory().Read(0, g.mod.Memory().Size())
		if !ok || len(memory)%manifest.PageSize != 0 {
			return errors.New("the memory cannot be read")
		}

		image = bytes.Clone(memory)
		clear(image[:stackPointer]) // removes leftovers of calls that have returned
		return nil
	})
	return image, err
}

func (g *guest) start(ctx context.Context, preload []byte) error {
	if _, err := g.call(ctx, "_initialize"); err != nil {
		return err
	}
	if err := g.succeed(ctx, "init"); err != nil {
		return err
	}
	if err := g.boot(ctx, preload); err != nil {
		return err
	}

	_, err := g.call(ctx, "settle")
	return err
}

// checkQuiet checks that the run left no state outside the memory.
func (g *guest) checkQuiet(stackPointer uint32) error {
	if got := uint32(g.mod.ExportedGlobal(stackPointerGlobal).Get()); got != stackPointer {
		return fmt.Errorf("the stack pointer is %#x, not back at %#x", got, stackPointer)
	}
	if g.output.Len() > 0 {
		return fmt.Errorf("the preload printed:\n%s", g.output.String())
	}
	if len(g.calls) > 0 {
		return fmt.Errorf("the preload called the host: %q", g.calls)
	}
	return nil
}

const versionScript = `
import _rlm, platform
try:
    _rlm.call(platform.python_version())
except _rlm.HostError:
    pass
`

// askVersion runs the module over the image, and returns the version that Python reports.
func askVersion(ctx context.Context, module, image []byte) (string, error) {
	var version string
	err := withGuest(ctx, module, image, func(g *guest) error {
		if err := g.boot(ctx, []byte(versionScript)); err != nil {
			return err
		}
		if len(g.calls) != 1 {
			return fmt.Errorf("the guest made %d calls, not 1", len(g.calls))
		}

		version = g.calls[0]
		return nil
	})
	return version, err
}

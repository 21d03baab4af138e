package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/rlmhq/rlm/internal/frame"
	"github.com/rlmhq/rlm/internal/gohost"
	"github.com/rlmhq/rlm/internal/jail"
	"github.com/rlmhq/rlm/tiers/local/gobuild"
)

// builder compiles the programs of one session, in a jail of its own. It has one
// owner.
type builder struct {
	tools  *toolchain
	class  jail.Class
	within time.Duration // of one compilation
	jail   *jail.Process // nil until it is needed
}

// buildIn bounds one compilation. Everything that is no attack takes seconds.
const buildIn = 20 * time.Second

// builtGo is a compiled session.
type builtGo struct {
	program []byte
	refs    [][]gobuild.Ref
}

// build compiles snippets. What is wrong with them is a *gobuild.CompileError.
func (b *builder) build(ctx context.Context, request gobuild.Request) (builtGo, error) {
	var missing []string
	for range 3 {
		var err error
		if request.Exports, err = b.tools.provide(ctx, missing...); err != nil {
			return builtGo{}, err
		}
		for _, path := range missing {
			if _, ok := request.Exports[path]; !ok {
				request.Exports[path] = "" // so that the builder refuses it
			}
		}
		request.Tools, request.GoVersion, request.Arch = b.tools.tools, b.tools.version, runtime.GOARCH
		built, more, err := b.ask(ctx, request)
		if err != nil || len(more) == 0 {
			return built, err
		}
		missing = more
	}
	return builtGo{}, gohost.ErrProtocol
}

// ask has one request answered, within the limits of a compilation.
func (b *builder) ask(ctx context.Context, request gobuild.Request) (built builtGo, missing []string, err error) {
	if b.jail == nil {
		config := b.tools.buildJail()
		config.MinClass = b.class
		if b.jail, err = jail.Start(context.WithoutCancel(ctx), config); err != nil {
			return builtGo{}, nil, fmt.Errorf("cannot start a jail for the compiler: %w", err)
		}
	}
	body, err := json.Marshal(request)
	if err != nil {
		return builtGo{}, nil, err
	}
	deadline := time.Now().Add(b.within)
	limited, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	conn := b.jail.Conn()
	defer context.AfterFunc(limited, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })() // a closed connection needs none
	if err = frame.NewWriter(conn, gobuild.MaxFrame).Write(gobuild.KindBuild, body); err == nil {
		built, missing, err = b.answer(frame.NewReader(conn, gobuild.MaxFrame))
	}
	var failure *gobuild.CompileError
	if err == nil || errors.As(err, &failure) {
		return built, missing, err
	}
	oom := b.jail.OOM()
	err = errors.Join(err, b.close())
	switch {
	case ctx.Err() != nil:
		return builtGo{}, nil, context.Cause(ctx)
	case oom:
		return builtGo{}, nil, compilerStopped(fmt.Sprintf("the compiler needed more than %d MiB", int64(buildMemory)>>20))
	case time.Now().After(deadline):
		return builtGo{}, nil, compilerStopped(fmt.Sprintf("the compiler took longer than %v", b.within))
	}
	return builtGo{}, nil, compilerStopped(fmt.Sprintf("the compiler broke: %v", err))
}

func compilerStopped(why string) error {
	return &gobuild.CompileError{Type: "CompileError", Message: why, Text: why + "\n"}
}

// answer reads what the builder says. It is hostile: a program is only ever run
// in a jail, and refs only ever go back to the builder.
func (b *builder) answer(in *frame.Reader) (built builtGo, missing []string, err error) {
	for {
		kind, body, err := in.Next()
		if err != nil {
			return builtGo{}, nil, err
		}
		switch kind {
		case gobuild.KindMissing:
			var m gobuild.Missing
			err := json.Unmarshal(body, &m)
			return builtGo{}, m.Paths[:min(len(m.Paths), maxImports)], err
		case gobuild.KindFailed:
			failure := &gobuild.CompileError{}
			if err := json.Unmarshal(body, failure); err != nil {
				return builtGo{}, nil, err
			}
			return builtGo{}, nil, failure
		case gobuild.KindRefs:
			if err := json.Unmarshal(body, &built.refs); err != nil {
				return builtGo{}, nil, err
			}
		case gobuild.KindProgram:
			built.program = append([]byte(nil), body...)
			return built, nil, nil
		default:
			return builtGo{}, nil, gohost.ErrProtocol
		}
	}
}

// maxImports bounds the packages that one request can have compiled.
const maxImports = 100

// close ends the jail.
func (b *builder) close() error {
	if b.jail == nil {
		return nil
	}
	p := b.jail
	b.jail = nil
	return p.Kill()
}

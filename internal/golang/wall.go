// Package golang runs the Go snippets of a session as compiled programs, whatever wall
// stands around compiler and program. A tier gives it a [Wall].
//
// A session is one program. Each snippet compiles it anew, and the earlier snippets run
// again in it, silently and with the answers that the host gave before.
//
// Below guest/ is what runs behind the wall: build compiles snippets, relay starts the
// program and counts what it uses, run is compiled into the program.
package golang

import (
	"context"
	"io"

	"github.com/rlmhq/rlm/internal/golang/guest/build"
)

// Wall starts the processes of one Go session behind a tier's wall. It has one owner,
// but StartRelay may run beside the other methods.
type Wall interface {
	// Toolchain returns what programs are compiled with. Packages are those that
	// snippets import; one that does not exist has an empty name in Exports. A wall
	// whose compiler has a toolchain of its own returns the zero value.
	Toolchain(ctx context.Context, packages []string) (build.Toolchain, error)
	// StartCompiler starts a process that runs [build.Serve].
	StartCompiler(ctx context.Context) (Box, error)
	// StartRelay starts a process that runs package relay's Run and finds the folder
	// at [relay.Folder], read-only.
	StartRelay(ctx context.Context, folder string) (Box, error)
}

// Box is a process behind a wall.
type Box interface {
	// Conn leads to the process. Closing the box closes it.
	Conn() io.ReadWriteCloser
	// Diagnose asks, before the box is closed, why its process has ended, or if it has
	// not, whether something keeps it from working: outOfMemory says that the kernel
	// ended it for its memory, fault is what neither the process nor its tier did.
	Diagnose(hasEnded bool) (outOfMemory bool, fault error)
	// Said is what the process itself wrote for people, empty if nothing.
	Said() string
	// Close ends the process and waits. It is idempotent and may be called while Conn
	// is used.
	Close() error
}

// Memory that a process needs beyond the snippet's own, in bytes.
const (
	// ProgramMemory is for a program, its relay, and the files in memory.
	ProgramMemory = 96 << 20
	// CompilerMemory is for compiler and linker, all of it.
	CompilerMemory = 1 << 30
)

package golang

import (
	"context"
	"io"

	"github.com/rlmhq/rlm/internal/golang/guest/build"
)

// Wall starts the processes of one Go session behind a tier's wall. It has one owner, but
// StartRelay may run concurrently with the other methods.
type Wall interface {
	// Toolchain returns the toolchain of programs that import these packages. A package that
	// does not exist has an empty name in Exports. A wall whose compiler brings a toolchain
	// returns the zero value.
	Toolchain(ctx context.Context, packages []string) (build.Toolchain, error)
	// StartCompiler starts a process that runs [build.Serve].
	StartCompiler(ctx context.Context) (Box, error)
	// StartRelay starts a process that runs package relay's Run and finds the folder
	// at [relay.Folder], read-only.
	StartRelay(ctx context.Context, folder string) (Box, error)
}

// Box is a process behind a wall.
type Box interface {
	// Conn returns the connection to the process. Closing the box closes it.
	Conn() io.ReadWriteCloser
	// Diagnose returns why the process has ended or, if it has not, why it does not respond.
	// outOfMemory reports that the kernel killed it for its memory. fault is a cause outside
	// the process and its tier. Call it before Close.
	Diagnose(hasEnded bool) (outOfMemory bool, fault error)
	// Said returns the messages of the process for people, empty if none.
	Said() string
	// Close ends the process and waits. It is idempotent and may be called while Conn
	// is used.
	Close() error
}

// The memory that a process needs beyond the snippet's, in bytes.
const (
	// ProgramMemory is for a program, its relay, and the files in memory.
	ProgramMemory = 96 << 20
	// CompilerMemory is the whole memory of compiler and linker.
	CompilerMemory = 1 << 30
)

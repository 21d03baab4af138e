package golang

import (
	"context"
	"io"

	"github.com/rlmhq/rlm/internal/golang/guest/build"
)

// Wall starts the processes of one Go session behind a tier's wall. Its methods must not be called
// concurrently, except that StartRelay may run concurrently with the others.
type Wall interface {
	// Toolchain returns the toolchain for programs that import these packages. A package that does
	// not exist has an empty name in Exports. If the wall's compiler has its own toolchain,
	// Toolchain returns the zero value.
	Toolchain(ctx context.Context, packages []string) (build.Toolchain, error)
	// StartCompiler starts a process that runs [build.Serve].
	StartCompiler(ctx context.Context) (Box, error)
	// StartRelay starts a process that runs package relay's Run. The process has read-only access
	// to the folder at [relay.Folder].
	StartRelay(ctx context.Context, folder string) (Box, error)
}

// Box is a process behind a wall.
type Box interface {
	// Conn returns the connection to the process. Closing the box closes the connection.
	Conn() io.ReadWriteCloser
	// Diagnose returns why the process has ended or, if it is still running, why it does not
	// respond. outOfMemory means that the kernel killed the process for lack of memory. fault is a
	// cause outside the process and its tier. Call it before Close.
	Diagnose(hasEnded bool) (outOfMemory bool, fault error)
	// Said returns the process's messages for display, or an empty string.
	Said() string
	// Close ends the process and waits for its end. It is idempotent and may be called while Conn
	// is in use.
	Close() error
}

// The memory that a process needs in addition to the snippet's, in bytes.
const (
	// ProgramMemory is for a program, its relay, and the files in memory.
	ProgramMemory = 96 << 20
	// CompilerMemory is the total memory of the compiler and linker.
	CompilerMemory = 1 << 30
)

// Package relay connects a host to a compiled Go program behind a wall. It starts the program and
// forwards frames in both directions. It also reports the program's output, its use of resources,
// and its end.
//
// The relay runs inside the wall, as the first process of a container or in a jail. The program
// cannot send frames in the relay's name. It can attack the relay, which is a process of the same
// user, but this harms only the program's own session.
//
// The package is compiled into container images, so it imports only the standard library and
// packages that are also compiled into the images.
package relay

import (
	"embed"

	"github.com/rlmhq/rlm/internal/snippet/session/wire"
)

// Source holds the sources of this package for the images.
//
//go:embed pipes_linux.go relay.go relay_linux.go usage_linux.go
var Source embed.FS

// The kinds of frames that the relay itself sends or receives. Package wire defines the others.
const (
	KindStart = 'B' // host: the program is in place; everything after this is for the program

	KindStdout = '1' // relay: a part of standard output
	KindStderr = '2' // relay: a part of standard error
	KindUsage  = 'U' // relay: Usage
	KindExit   = 'X' // relay: Exit; the last frame
	// relay: the program sent something that is not a frame; the last frame
	KindBroke = 'P'
)

// isReserved reports whether the program must not send frames of a kind.
func isReserved(kind byte) bool {
	switch kind {
	case KindStdout, KindStderr, KindUsage, KindExit, KindBroke:
		return true
	}
	return false
}

// MaxFrame bounds the frames of the relay, in bytes.
const MaxFrame = wire.MaxGoRequest

// Usage describes the resources used by the processes behind the wall.
type Usage struct {
	// CPUNanos is their processor time in nanoseconds, without the relay. PeakMemory is the
	// program's peak memory use, in bytes.
	CPUNanos   int64 `json:"cpu_nanos"`
	PeakMemory int64 `json:"peak_memory"`
}

// Exit describes the end of the program.
type Exit struct {
	// Code is the exit code, or -1 if a signal ended the program. Signal is that signal, or 0.
	Code   int `json:"code"`
	Signal int `json:"signal"`
}

// The location of the program for a relay.
const (
	Folder = "/program"
	Path   = Folder + "/main"
)

// workFolder is the working folder of programs.
const workFolder = "/sandbox"

// environment is the environment of every program.
var environment = []string{
	"PATH=/usr/bin:/bin", "HOME=" + workFolder, "LANG=C.UTF-8", "TMPDIR=/tmp",
	"GODEBUG=randseednop=0", "GOTRACEBACK=single",
}

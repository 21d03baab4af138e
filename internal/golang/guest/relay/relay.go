// Package relay stands between a host and a compiled Go program behind a wall. It
// starts the program, hands frames on in both directions, and adds what the program
// wrote, what it used, and how it ended.
//
// It runs inside the wall: as the first process of a container, or in a jail. The
// program may not send anything in the relay's name. Whatever it does to the relay,
// which is a process of the same user, it does to its own session.
//
// It is compiled into container images, so it imports only the standard library and
// packages that are compiled into them, too.
package relay

import (
	"embed"

	"github.com/rlmhq/rlm/internal/session/wire"
)

// Source is this package as images are built with it.
//
//go:embed pipes_linux.go relay.go relay_linux.go usage_linux.go
var Source embed.FS

// The kinds of frame that are the relay's own. All others are package wire's.
const (
	KindStart = 'B' // host: the program is there; everything after this is for the program

	KindStdout = '1' // relay: a part of standard output
	KindStderr = '2' // relay: a part of standard error
	KindUsage  = 'U' // relay: Usage
	KindExit   = 'X' // relay: Exit; nothing comes after it
	// relay: the program sent something that is not a frame; nothing comes after it
	KindBroke = 'P'
)

// isReserved reports whether the program may not send frames of a kind.
func isReserved(kind byte) bool {
	switch kind {
	case KindStdout, KindStderr, KindUsage, KindExit, KindBroke:
		return true
	}
	return false
}

// MaxFrame bounds the frames of the relay, in bytes.
const MaxFrame = wire.MaxGoRequest

// Usage is what the processes behind the wall have used.
type Usage struct {
	// CPUNanos is the time that they have computed, without the relay. PeakMemory is
	// the most memory that the program has had, in bytes.
	CPUNanos   int64 `json:"cpu_nanos"`
	PeakMemory int64 `json:"peak_memory"`
}

// Exit is how the program ended.
type Exit struct {
	// Code is its exit code, -1 if a signal ended it. Signal is that signal, 0 for none.
	Code   int `json:"code"`
	Signal int `json:"signal"`
}

// Where a relay finds its program.
const (
	Folder = "/program"
	Path   = Folder + "/main"
)

// workFolder is where programs start.
const workFolder = "/sandbox"

// environment is what every program finds.
var environment = []string{
	"PATH=/usr/bin:/bin", "HOME=" + workFolder, "LANG=C.UTF-8", "TMPDIR=/tmp",
	"GODEBUG=randseednop=0", "GOTRACEBACK=single",
}

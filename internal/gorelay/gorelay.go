// Package gorelay stands between a host and a compiled Go session that runs in a
// container, where nothing but standard streams leads out. The container's first
// process runs it: it starts the program, hands frames of package gorun on in both
// directions, and adds what the program wrote, used, and how it ended.
//
// The program may send nothing in the relay's name. What it does to the relay, which
// is a process of the same user, it does to its own session.
//
// It is compiled into a container's image, so it may import nothing but the standard
// library and packages that are compiled into it, too.
package gorelay

import (
	"embed"

	"github.com/rlmhq/rlm/internal/gorun"
)

// Source is this package as an image is made with it.
//
//go:embed gorelay.go relay_linux.go usage_linux.go
var Source embed.FS

// The kinds of frame that are the relay's own. All others are package gorun's.
const (
	KindStart = 'B' // host: the program is there; everything after it is for the program

	KindStdout = '1' // relay: a part of standard output
	KindStderr = '2' // relay: a part of standard error
	KindUsage  = 'U' // relay: Usage
	KindExit   = 'X' // relay: Exit; nothing comes after it
	KindBroke  = 'P' // relay: the program sent what is no frame; nothing comes after it
)

// own reports whether a kind is one that the program may not send.
func own(kind byte) bool {
	switch kind {
	case KindStdout, KindStderr, KindUsage, KindExit, KindBroke:
		return true
	}
	return false
}

// MaxFrame is the size of the largest frame of the relay.
const MaxFrame = gorun.MaxFromGuest

// Usage is what the processes of the container have used.
type Usage struct {
	// CPUNanos is the time that they have computed, without the relay. PeakMemory is
	// the most memory that the program has had, in bytes.
	CPUNanos   int64 `json:"cpu_nanos"`
	PeakMemory int64 `json:"peak_memory"`
}

// Exit is how the program ended.
type Exit struct {
	// Code is its exit code, -1 if a signal ended it; Signal is that, 0 if none did.
	Code   int `json:"code"`
	Signal int `json:"signal"`
}

// Program is what a relay starts.
type Program struct {
	// Path is the executable file, Dir the folder it starts in, Env all that it finds of
	// an environment, each NAME=VALUE.
	Path, Dir string
	Env       []string
}

//go:build linux && (amd64 || arm64)

package jail

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// helperName is the first argument of a process that this package starts of
// its own binary. Without more arguments it is the init, with roleProgram or
// with roleWorker and a name it is the guest.
const (
	helperName  = "rlm-jail"
	roleProgram = "program"
	roleWorker  = "worker"
)

// The descriptors of the helpers.
const (
	connFD     = 3 // to the launcher, the guest keeps it
	launcherFD = 4 // to the launcher, the helpers keep it to themselves
	initGate   = 5 // in the init: what will be launcherFD of the guest
	awakeFD    = 5 // closed by the guest when its libraries are loaded, with cgo only
	firstTree  = 6 // the binds of a root launcher, as detached mounts
)

// quietRuntime keeps the Go runtime of a helper from opening the files of its
// cgroup, which it would keep open, to the guest's delight.
const quietRuntime = "GODEBUG=containermaxprocs=0,updatemaxprocs=0"

// swiftEnd keeps a helper of a program with the race detector from waiting a second
// at its end. Others do not look at it.
const swiftEnd = "GORACE=atexit_sleep_ms=0"

// helperFailed is the exit code of a helper that could not do its work. The
// reason has been sent before.
const helperFailed = 125

// init turns the process into a helper if it was started as one. A worker is
// not known yet: the packages that register them come later.
func init() {
	switch {
	case len(os.Args) == 0 || os.Args[0] != helperName:
	case len(os.Args) == 1:
		runInit()
	default:
		if withCgo {
			_ = unix.Close(awakeFD) // this is how the init is told
		}
		if os.Args[1] == roleProgram {
			runGuest(nil)
		}
	}
}

var workers struct {
	sync.Mutex
	names map[string]bool
}

// Register names a function that can run in a jail: in the guest, on a
// goroutine of its own, after lock-down. Its result is the exit code of the
// guest. Call it once for each name, from an init function of the package that
// has the function: in a jail Register runs it and does not return, so that
// packages which are initialised later never run there.
//
// The function reads and writes conn, the guest's end of Process.Conn. In
// profile Interp it cannot open anything else; what it needs from files must
// have been embedded in the binary or is sent to it.
func Register(name string, main func(conn *os.File) int) {
	if len(os.Args) == 3 && os.Args[0] == helperName && os.Args[1] == roleWorker && os.Args[2] == name {
		runGuest(main)
	}
	workers.Lock()
	defer workers.Unlock()
	if workers.names[name] {
		panic(fmt.Sprintf("jail: worker %q is registered twice", name))
	}
	if workers.names == nil {
		workers.names = map[string]bool{}
	}
	workers.names[name] = true
}

// registered reports whether Register was called with a name.
func registered(name string) bool {
	workers.Lock()
	defer workers.Unlock()
	return workers.names[name]
}

// exit ends a helper.
func exit(code int) {
	os.Exit(code) //nolint:forbidigo // a helper has no main to return to
}

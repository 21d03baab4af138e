//go:build linux && (amd64 || arm64)

package jail

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// helperName is the first argument of a process that this package starts from its own binary.
// Without further arguments, it starts the init. With roleProgram, or with roleWorker and a name,
// it starts the guest.
const (
	helperName  = "rlm-jail"
	roleProgram = "program"
	roleWorker  = "worker"
)

// The descriptors of the helpers.
const (
	connFD     = 3 // to the launcher; the guest keeps it
	launcherFD = 4 // to the launcher; only the helpers have it
	initGate   = 5 // in the init: the future launcherFD of the guest
	awakeFD    = 5 // with cgo only; the guest closes it when its libraries are loaded
	firstTree  = 6 // the binds of a root launcher, as detached mounts
)

// noCgroupFiles keeps the Go runtime of a helper from opening its cgroup files. They would stay
// open, and the guest would inherit them.
const noCgroupFiles = "GODEBUG=containermaxprocs=0,updatemaxprocs=0"

// noRaceDelay keeps a helper built with the race detector from sleeping for a second at exit. Other
// programs ignore it.
const noRaceDelay = "GORACE=atexit_sleep_ms=0"

// helperFailed is the exit code of a helper that failed. The helper has already sent the reason.
const helperFailed = 125

// init turns the process into a helper if it was started as one. At this time, no workers are
// registered, because their packages are initialised later.
func init() {
	switch {
	case len(os.Args) == 0 || os.Args[0] != helperName:
	case len(os.Args) == 1:
		runInit()
	default:
		if withCgo {
			_ = unix.Close(awakeFD) // the init waits for this
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

// Register names a function that can run in a jail. It runs in the guest after lock-down,
// on its own goroutine, and its result is the guest's exit code.
//
// Call Register once for each name, from an init function of the package that defines the function.
// In a jail, Register runs the function and does not return, so packages that are initialised later
// never run there.
//
// The function reads and writes conn, the guest's end of Process.Conn. In profile Compute, it
// cannot open anything else, so embed the files that it needs in the binary, or send them.
func Register(name string, main func(conn *os.File) int) {
	args := os.Args
	if len(args) == 3 && args[0] == helperName && args[1] == roleWorker && args[2] == name {
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

// isRegistered reports whether Register was called with this name.
func isRegistered(name string) bool {
	workers.Lock()
	defer workers.Unlock()
	return workers.names[name]
}

// exitHelper exits from a helper process.
func exitHelper(code int) {
	os.Exit(code) //nolint:forbidigo // a helper has no main to return to
}

//go:build linux && (amd64 || arm64)

package jail

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// lockedSecurebits are flags that permanently deny user 0 special rights, and keep the ambient set
// of capabilities empty.
const lockedSecurebits = secbitNoRoot | secbitNoRoot<<1 |
	secbitNoSetuidFixup | secbitNoSetuidFixup<<1 |
	secbitKeepCaps<<1 | secbitNoAmbientRaise | secbitNoAmbientRaise<<1

// Security flags. The next higher bit of each flag locks the flag.
const (
	secbitNoRoot         = 1 << 0
	secbitNoSetuidFixup  = 1 << 2
	secbitKeepCaps       = 1 << 4
	secbitNoAmbientRaise = 1 << 6
)

// dropPrivileges removes from this thread the privileges that its children would inherit. The
// thread keeps its own rights for now, because it must still mount file systems.
func dropPrivileges() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot set no_new_privs: %w", err)
	}
	err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	if err != nil {
		return fmt.Errorf("cannot clear ambient capabilities: %w", err)
	}

	// Without a separate session keyring, the guest would share the launcher's. Containers
	// refuse keyctl altogether.
	_, _, errno := unix.Syscall(unix.SYS_KEYCTL, unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0)
	if errno != 0 && errno != unix.ENOSYS && errno != unix.EPERM {
		return fmt.Errorf("cannot make a session keyring: %w", errno)
	}

	held, err := readCapabilities()
	if err != nil {
		return err
	}
	if held&(1<<unix.CAP_SETPCAP) == 0 {
		return nil // in class Nested of an ordinary user, no_new_privs must be enough
	}
	if err := emptyBoundingSet(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_SECUREBITS, lockedSecurebits, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot lock securebits: %w", err)
	}
	return nil
}

// emptyBoundingSet drops every capability from the bounding set.
func emptyBoundingSet() error {
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			return nil // there are no more capabilities
		}
		if err != nil {
			return fmt.Errorf("cannot drop capability %d: %w", c, err)
		}
	}
}

// readCapabilities returns the permitted set of this thread.
func readCapabilities() (uint64, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return 0, fmt.Errorf("cannot read capabilities: %w", err)
	}
	return uint64(data[1].Permitted)<<32 | uint64(data[0].Permitted), nil
}

// keepInitCapabilities reduces the init, on all of its threads, to the capabilities that it needs
// to inspect and kill every process of its namespace.
func keepInitCapabilities(class Class) error {
	keep := uint32(1<<unix.CAP_KILL | 1<<unix.CAP_SYS_PTRACE)
	if class == Nested {
		keep = 0
	}
	return setCapabilities(keep)
}

// setCapabilities sets the capabilities of all threads.
func setCapabilities(keep uint32) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	data := [2]unix.CapUserData{{Effective: keep, Permitted: keep}}
	_, _, errno := psx.Syscall3(unix.SYS_CAPSET,
		uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0)
	if errno != 0 {
		return fmt.Errorf("cannot reduce capabilities: %w", errno)
	}
	return nil
}

// checkPrivileges looks for remaining privileges in a parsed /proc/thread-self/status, and returns
// the first as an error.
func checkPrivileges(status map[string]string) error {
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		if bits, err := strconv.ParseUint(status[set], 16, 64); err != nil || bits != 0 {
			return fmt.Errorf("the capability set %s is %q, not empty", set, status[set])
		}
	}
	if status["NoNewPrivs"] != "1" {
		return fmt.Errorf("NoNewPrivs is %q, not 1", status["NoNewPrivs"])
	}
	return nil
}

// readStatus parses an open /proc/<pid>/status.
func readStatus(f *os.File) (map[string]string, error) {
	buf := make([]byte, 8<<10)
	n, err := unix.Pread(int(f.Fd()), buf, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", f.Name(), err)
	}

	status := map[string]string{}
	for line := range strings.Lines(string(buf[:n])) {
		if key, value, ok := strings.Cut(line, ":"); ok {
			status[key] = strings.TrimSpace(value)
		}
	}
	return status, nil
}

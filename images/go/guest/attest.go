//go:build linux

package main

import (
	"bytes"
	"errors"
	"math"
	"os"
	"strings"
	"syscall"
)

// attestation describes the surroundings of this process, in the form that tier docker reads.
type attestation struct {
	Status     map[string]string   `json:"status"`
	PID        int                 `json:"pid"`
	Mounts     map[string][]string `json:"mounts"`
	Files      map[string][]uint64 `json:"files"`
	Inodes     map[string][]uint64 `json:"inodes"`
	Limits     map[string]int64    `json:"limits"`
	Interfaces []string            `json:"interfaces"`
	Sys        int                 `json:"sys"`
	Refused    map[string]int      `json:"refused"`
}

// attest describes the container from inside. It omits unreadable facts, which then count as
// gaps.
func attest() attestation {
	a := attestation{
		Status:     readStatus(),
		PID:        os.Getpid(),
		Mounts:     map[string][]string{},
		Files:      map[string][]uint64{},
		Inodes:     map[string][]uint64{},
		Limits:     readLimits(),
		Interfaces: listInterfaces(),
		Refused:    tryForbidden(),
	}
	a.addMounts()

	entries, _ := os.ReadDir("/sys") // what cannot be listed shows nothing
	a.Sys = len(entries)
	return a
}

// addMounts adds what is mounted, and how much the places that can be written hold.
func (a *attestation) addMounts() {
	for place, options := range readMounts() {
		below := strings.HasPrefix(place, "/proc/") || strings.HasPrefix(place, "/sys/") ||
			strings.HasPrefix(place, "/dev/")
		if !below || place == "/dev/shm" {
			a.Mounts[place] = options
			a.Inodes[place] = readInode(place)
		}
	}

	for _, place := range []string{"/tmp", "/sandbox", "/dev/shm", "/out"} {
		var s syscall.Statfs_t
		if a.Mounts[place] != nil && syscall.Statfs(place, &s) == nil {
			size := s.Blocks * uint64(max(0, s.Frsize))
			a.Files[place] = []uint64{size, s.Files, uint64(max(0, s.Flags))}
		}
	}
}

// readLimits returns the limits of this process, by name.
func readLimits() map[string]int64 {
	const memlock, sigpending, msgqueue = 8, 11, 12 // package syscall has no names for them
	limits := map[string]int64{}
	for name, resource := range map[string]int{
		"NOFILE": syscall.RLIMIT_NOFILE, "FSIZE": syscall.RLIMIT_FSIZE,
		"CORE": syscall.RLIMIT_CORE, "STACK": syscall.RLIMIT_STACK,
		"MEMLOCK": memlock, "MSGQUEUE": msgqueue, "SIGPENDING": sigpending,
	} {
		var l syscall.Rlimit
		if syscall.Getrlimit(resource, &l) == nil {
			limits[name] = int64(min(l.Max, math.MaxInt64))
		}
	}
	return limits
}

// readStatus returns the lines of /proc/self/status that are about privileges.
func readStatus() map[string]string {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil
	}
	found := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":\t")
		switch name {
		case "Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb",
			"NoNewPrivs", "Seccomp":
			found[name] = value
		}
	}
	return found
}

// unescaped turns a path of mountinfo, in which blanks and backslashes are numbers, into
// the path that is meant.
var unescaped = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// readInode returns the device and the number of a file or folder.
func readInode(place string) []uint64 {
	var s syscall.Stat_t
	if syscall.Stat(place, &s) != nil {
		return nil
	}
	return []uint64{s.Dev, s.Ino}
}

// readMounts returns the options of what is mounted, by place.
func readMounts() map[string][]string {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	found := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 5 {
			found[unescaped.Replace(fields[4])] = strings.Split(fields[5], ",")
		}
	}
	return found
}

// listInterfaces returns the names of the network's interfaces.
func listInterfaces() []string {
	text, err := os.ReadFile("/proc/self/net/dev")
	if err != nil {
		return []string{"unknown"}
	}
	names := []string{}
	for line := range bytes.Lines(text) {
		if name, _, ok := bytes.Cut(line, []byte(":")); ok {
			names = append(names, string(bytes.TrimSpace(name)))
		}
	}
	return names
}

// tryForbidden tries what must be refused, and returns by which errors it was.
func tryForbidden() map[string]int {
	const alg, vsock = 38, 40 // package syscall does not name them everywhere
	refused := map[string]int{}
	for what, err := range map[string]error{
		"unix":      trySocket(syscall.AF_UNIX, syscall.SOCK_STREAM),
		"inet":      trySocket(syscall.AF_INET, syscall.SOCK_STREAM),
		"inet6":     trySocket(syscall.AF_INET6, syscall.SOCK_DGRAM),
		"netlink":   trySocket(syscall.AF_NETLINK, syscall.SOCK_RAW),
		"packet":    trySocket(syscall.AF_PACKET, syscall.SOCK_RAW),
		"alg":       trySocket(alg, syscall.SOCK_SEQPACKET),
		"vsock":     trySocket(vsock, syscall.SOCK_STREAM),
		"datagram":  trySocket(syscall.AF_UNIX, syscall.SOCK_DGRAM),
		"userns":    tryUserNamespace(),
		"root file": tryOpen("/rlm-probe", syscall.O_CREAT|syscall.O_WRONLY),
		"sysctl":    tryOpen("/proc/sys/kernel/core_pattern", syscall.O_WRONLY),
		"mknod":     syscall.Mknod("/tmp/rlm-probe", syscall.S_IFCHR|0o600, 1<<8|3),
	} {
		var errno syscall.Errno
		if errors.As(err, &errno) {
			refused[what] = int(errno)
		}
	}
	return refused
}

// tryOpen opens a file and closes it again.
func tryOpen(name string, flags int) error {
	fd, err := syscall.Open(name, flags|syscall.O_CLOEXEC, 0o600)
	if err == nil {
		err = syscall.Close(fd)
	}
	return err
}

// trySocket makes a socket and closes it again.
func trySocket(family, kind int) error {
	fd, err := syscall.Socket(family, kind|syscall.SOCK_CLOEXEC, 0)
	if err == nil {
		err = syscall.Close(fd)
	}
	return err
}

// tryUserNamespace starts a child in a new user namespace. This process cannot change over
// itself, because it has threads.
func tryUserNamespace() error {
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"guest", endAtOnce},
		&syscall.ProcAttr{Sys: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}})
	if err == nil {
		_, err = syscall.Wait4(pid, nil, 0, nil)
	}
	return err
}

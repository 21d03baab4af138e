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

// attestation is what this process sees around it, as tier docker reads it.
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

// attest looks around. What cannot be read is left out, and so counts as a hole.
func attest() attestation {
	a := attestation{
		Status: status(), PID: os.Getpid(), Mounts: map[string][]string{}, Files: map[string][]uint64{}, Inodes: map[string][]uint64{},
		Limits: map[string]int64{}, Refused: map[string]int{}, Interfaces: interfaces(),
	}
	for place, options := range mounts() {
		below := strings.HasPrefix(place, "/proc/") || strings.HasPrefix(place, "/sys/") || strings.HasPrefix(place, "/dev/")
		if !below || place == "/dev/shm" {
			a.Mounts[place] = options
			a.Inodes[place] = inode(place)
		}
	}
	for _, place := range []string{"/tmp", "/sandbox", "/dev/shm", "/out"} {
		var s syscall.Statfs_t
		if a.Mounts[place] != nil && syscall.Statfs(place, &s) == nil {
			a.Files[place] = []uint64{s.Blocks * uint64(max(0, s.Frsize)), s.Files, uint64(max(0, s.Flags))}
		}
	}
	const memlock, msgqueue = 8, 12 // which package syscall does not name
	for name, resource := range map[string]int{
		"NOFILE": syscall.RLIMIT_NOFILE, "FSIZE": syscall.RLIMIT_FSIZE, "CORE": syscall.RLIMIT_CORE, "STACK": syscall.RLIMIT_STACK,
		"MEMLOCK": memlock, "MSGQUEUE": msgqueue,
	} {
		var l syscall.Rlimit
		if syscall.Getrlimit(resource, &l) == nil {
			a.Limits[name] = int64(min(l.Max, math.MaxInt64))
		}
	}
	entries, _ := os.ReadDir("/sys") // what cannot be listed shows nothing
	a.Sys = len(entries)
	a.deeds()
	return a
}

// status are the lines of /proc/self/status that tell of privileges.
func status() map[string]string {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil
	}
	found := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":\t")
		switch name {
		case "Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp":
			found[name] = value
		}
	}
	return found
}

// unescaped is a path of mountinfo, in which blanks and backslashes are written as
// numbers.
var unescaped = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// inode is the device and the number of a file or folder.
func inode(place string) []uint64 {
	var s syscall.Stat_t
	if syscall.Stat(place, &s) != nil {
		return nil
	}
	return []uint64{s.Dev, s.Ino}
}

// mounts are the options of what is mounted, by place.
func mounts() map[string][]string {
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

// interfaces are the names of the network's.
func interfaces() []string {
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

// deeds tries what must be refused, and notes by which error.
func (a *attestation) deeds() {
	open := func(name string, flags int) error {
		fd, err := syscall.Open(name, flags|syscall.O_CLOEXEC, 0o600)
		if err == nil {
			err = syscall.Close(fd)
		}
		return err
	}
	socket := func(family, kind int) error {
		fd, err := syscall.Socket(family, kind|syscall.SOCK_CLOEXEC, 0)
		if err == nil {
			err = syscall.Close(fd)
		}
		return err
	}
	const alg, vsock = 38, 40 // which package syscall does not name everywhere
	for deed, err := range map[string]error{
		"unix":      socket(syscall.AF_UNIX, syscall.SOCK_STREAM),
		"inet":      socket(syscall.AF_INET, syscall.SOCK_STREAM),
		"inet6":     socket(syscall.AF_INET6, syscall.SOCK_DGRAM),
		"netlink":   socket(syscall.AF_NETLINK, syscall.SOCK_RAW),
		"packet":    socket(syscall.AF_PACKET, syscall.SOCK_RAW),
		"alg":       socket(alg, syscall.SOCK_SEQPACKET),
		"vsock":     socket(vsock, syscall.SOCK_STREAM),
		"userns":    newUserNamespace(),
		"root file": open("/rlm-probe", syscall.O_CREAT|syscall.O_WRONLY),
		"sysctl":    open("/proc/sys/kernel/core_pattern", syscall.O_WRONLY),
		"mknod":     syscall.Mknod("/tmp/rlm-probe", syscall.S_IFCHR|0o600, 1<<8|3),
	} {
		var errno syscall.Errno
		if errors.As(err, &errno) {
			a.Refused[deed] = int(errno)
		}
	}
}

// newUserNamespace starts a child in a user namespace of its own. This process
// cannot change over itself, having threads.
func newUserNamespace() error {
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"guest", nothing}, &syscall.ProcAttr{
		Sys: &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER},
	})
	if err == nil {
		_, err = syscall.Wait4(pid, nil, 0, nil)
	}
	return err
}

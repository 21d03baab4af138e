//go:build unix

package postgres

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// These are the signals of a server.
const (
	kill   = syscall.SIGKILL
	pause  = syscall.SIGSTOP
	resume = syscall.SIGCONT
)

// findUser returns an ordinary user for servers, because PostgreSQL refuses to run as root. It is
// nil if this process is not root.
func findUser() *syscall.Credential {
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := account(name)
		if err == nil {
			return found
		}
	}
	return &syscall.Credential{Uid: 65534, Gid: 65534}
}

// account returns the numbers of a user.
func account(name string) (*syscall.Credential, error) {
	found, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(found.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(found.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// lowerRights makes a program run as the user for servers. It gets a group of processes of its own,
// so that Ctrl-C reaches only the test, which then stops its servers.
func lowerRights(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: findUser(), Setpgid: true}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=" + os.TempDir()}
}

// giveAway makes the user for servers the owner of a folder.
func giveAway(dir string) error {
	to := findUser()
	if to == nil {
		return nil
	}
	return os.Chown(dir, int(to.Uid), int(to.Gid))
}

// signalAll sends a signal to the server and to its processes.
func (s *Server) signalAll(signal syscall.Signal) error {
	if signal == kill { // a stopped server starts no further processes
		_ = syscall.Kill(s.pid, pause)
	}
	children := findChildren(s.pid)
	err := syscall.Kill(s.pid, signal)
	for _, child := range children {
		if failed := syscall.Kill(child, signal); !errors.Is(failed, syscall.ESRCH) {
			err = errors.Join(err, failed)
		}
	}

	if signal == kill { // a new server refuses to start while one of them has the memory
		for _, child := range children {
			awaitEnd(child)
		}
	}
	return err
}

// awaitEnd waits until a killed process has ended.
func awaitEnd(pid int) {
	for limit := time.Now().Add(readyWithin); time.Now().Before(limit); time.Sleep(time.Millisecond) {
		_, state, ok := readStat(fmt.Sprintf("/proc/%d/stat", pid))
		if !ok || state == "Z" {
			return
		}
	}
}

// readStat returns the parent and the state of a process.
func readStat(name string) (parent, state string, ok bool) {
	text, err := os.ReadFile(name)
	if err != nil {
		return "", "", false // it has ended
	}
	_, rest, _ := strings.Cut(string(text), ") ") // behind the name of the program
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return "", "", false
	}
	return fields[1], fields[0], true
}

// findChildren lists the processes that a process has started. On systems without /proc, it finds
// none; the processes of a killed server then end by themselves.
func findChildren(parent int) (all []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range stats {
		if of, _, ok := readStat(name); !ok || of != strconv.Itoa(parent) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name))); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

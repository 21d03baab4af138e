//go:build linux && (amd64 || arm64)

package jail

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"syscall"
)

// A slot is a user number of the host that one jail at a time has for itself,
// so that jails of a launcher that is root do not share a user. What reserves
// it is the name of an abstract socket, which the kernel takes back when the
// launcher dies.
type slot struct {
	uid    int
	socket net.PacketConn
}

// Where the slots lie. The second range is for containers, which seldom have
// more than 65536 users.
var slotRanges = []int{200000, 61000}

// slotCount is how many jails can run at the same time.
const slotCount = 1024

var nextSlot atomic.Uint32

// takeSlot reserves a free slot, nil if this launcher may not use other users
// than its own.
func takeSlot() (*slot, error) {
	for _, first := range slotRanges {
		if !mayBecome(first, first+slotCount) {
			continue
		}
		start := int(nextSlot.Add(1)) + os.Getpid()*31
		for i := range slotCount {
			uid := first + (start+i)%slotCount
			socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: fmt.Sprintf("@rlm-jail-%d", uid)})
			if err == nil {
				return &slot{uid: uid, socket: socket}, nil
			}
			if !errors.Is(err, syscall.EADDRINUSE) {
				return nil, fmt.Errorf("cannot reserve user %d: %w", uid, err)
			}
		}
		return nil, fmt.Errorf("cannot reserve a user for the jail: all %d are in use", slotCount)
	}
	return nil, nil //nolint:nilnil // no slot is an answer: the jail keeps the launcher's user
}

// mayBecome reports whether the users from first up to last exist in this user
// namespace and this process may become one of them.
func mayBecome(first, last int) bool {
	held, err := capabilities()
	if err != nil || held&(1<<6) == 0 || held&(1<<7) == 0 { // CAP_SETGID, CAP_SETUID
		return false
	}
	for _, name := range []string{"/proc/self/uid_map", "/proc/self/gid_map"} {
		if !mapped(name, first, last) {
			return false
		}
	}
	return true
}

// mapped reports whether a range lies within one line of a map of users.
func mapped(name string, first, last int) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var inside, outside, size int
		if _, err := fmt.Sscan(lines.Text(), &inside, &outside, &size); err == nil && inside <= first && last <= inside+size {
			return true
		}
	}
	return false
}

// Close gives the slot back.
func (s *slot) Close() error { return s.socket.Close() }

// tasksOf counts the threads of a user, which count against the limit of
// processes of a jail that has the same user and no namespace.
func tasksOf(uid int) int {
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	count := 0
	for _, process := range processes {
		info, err := process.Info()
		if err != nil {
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) == uid {
			tasks, _ := os.ReadDir("/proc/" + process.Name() + "/task") // no process, no tasks
			count += len(tasks)
		}
	}
	return count
}

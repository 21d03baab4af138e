//go:build linux && (amd64 || arm64)

package jail

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// A slot is a user number of the host that one jail at a time has for itself,
// so that jails of a launcher that is root do not share a user. What reserves
// it is a locked file, which the kernel unlocks when the launcher dies. It lies in
// a folder that only root can enter: no other user can take a slot, or all.
type slot struct {
	uid  int
	file *os.File
}

// Where the slots lie: above the ranges that systems hand out to users and to
// their containers. The second range is for containers, which seldom have more
// than 65536 users.
var slotRanges = []int{1_900_000_000, 61000}

// slotParents are where the folder of the locks can be. In the first only root can
// make it; in the others somebody else may have been faster.
var slotParents = []string{"/run", "/tmp", "/dev/shm"}

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
		dir, err := slotFolder(slotParents)
		if err != nil {
			return nil, fmt.Errorf("cannot reserve a user for the jail: %w", err)
		}
		start := int(nextSlot.Add(1)) + os.Getpid()*31
		for i := range slotCount {
			uid := first + (start+i)%slotCount
			s, err := lockSlot(dir, uid)
			if s != nil || err != nil {
				return s, err
			}
		}
		return nil, fmt.Errorf("cannot reserve a user for the jail: all %d are in use", slotCount)
	}
	return nil, nil //nolint:nilnil // no slot is an answer: the jail keeps the launcher's user
}

// lockSlot reserves one user, nil if it is in use.
func lockSlot(dir string, uid int) (*slot, error) {
	f, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(uid)), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot reserve user %d: %w", uid, err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return &slot{uid: uid, file: f}, nil
	}
	err = errors.Join(err, f.Close())
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, nil //nolint:nilnil // documented: in use
	}
	return nil, fmt.Errorf("cannot reserve user %d: %w", uid, err)
}

// slotFolder makes the folder of the locks, or finds it, in the first place where
// it belongs to this user alone.
func slotFolder(parents []string) (string, error) {
	var errs []error
	for _, parent := range parents {
		dir := filepath.Join(parent, "rlm-jails")
		if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			errs = append(errs, err)
			continue
		}
		info, err := os.Lstat(dir)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if ok && info.IsDir() && info.Mode().Perm() == 0o700 && int(stat.Uid) == os.Geteuid() {
			return dir, nil
		}
		errs = append(errs, fmt.Errorf("%s is not a folder of user %d with mode 0700: remove it", dir, os.Geteuid()))
	}
	return "", errors.Join(errs...)
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
func (s *slot) Close() error { return s.file.Close() }

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

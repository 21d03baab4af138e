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

// A slot is a user number of the host, reserved for one jail at a time, so that the jails of a
// launcher that is root never share a user. A locked file reserves it, and the kernel unlocks the
// file when the launcher dies. The file is in a folder that only root can enter, so other users
// cannot reserve slots.
type slot struct {
	uid  int
	file *os.File
}

// slotRanges start above the ranges that systems assign to users and to their containers. The
// second range is for use inside containers, which rarely have more than 65536 users.
var slotRanges = []int{1_900_000_000, 61000}

// slotParents are the possible parents of the folder of the locks. In the first parent, only root
// can create the folder. In the others, another user may have created it before.
var slotParents = []string{"/run", "/tmp", "/dev/shm"}

// slotCount bounds the jails that can run at the same time.
const slotCount = 1024

var nextSlot atomic.Uint32

// takeSlot reserves a free slot. It returns nil if this launcher cannot use any user except its
// own.
func takeSlot() (*slot, error) {
	for _, first := range slotRanges {
		if !mayBecome(first, first+slotCount) {
			continue
		}
		s, err := takeSlotFrom(first)
		if err != nil {
			return nil, fmt.Errorf("cannot reserve a user for the jail: %w", err)
		}
		return s, nil
	}
	return nil, nil //nolint:nilnil // no slot is an answer: the jail keeps the launcher's user
}

// takeSlotFrom reserves a free slot of one range.
func takeSlotFrom(first int) (*slot, error) {
	dir, err := makeSlotFolder(slotParents)
	if err != nil {
		return nil, err
	}

	start := int(nextSlot.Add(1)) + os.Getpid()*31
	for i := range slotCount {
		s, err := lockSlot(dir, first+(start+i)%slotCount)
		if s != nil || err != nil {
			return s, err
		}
	}
	return nil, fmt.Errorf("all %d users are in use", slotCount)
}

// lockSlot reserves one user, or returns nil if the user is in use.
func lockSlot(dir string, uid int) (*slot, error) {
	name := filepath.Join(dir, strconv.Itoa(uid))
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
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

// makeSlotFolder creates or finds the folder of the locks, in the first parent where it belongs
// only to this user.
func makeSlotFolder(parents []string) (string, error) {
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
		errs = append(errs, fmt.Errorf("%s is not a folder of user %d with mode 0700: remove it",
			dir, os.Geteuid()))
	}
	return "", errors.Join(errs...)
}

// mayBecome reports whether the users from first to last exist in this user namespace and this
// process may become any of them.
func mayBecome(first, last int) bool {
	const needed = 1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID
	held, err := readCapabilities()
	if err != nil || held&needed != needed {
		return false
	}
	return isMapped("/proc/self/uid_map", first, last) &&
		isMapped("/proc/self/gid_map", first, last)
}

// isMapped reports whether a range is within one line of a user map.
func isMapped(name string, first, last int) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()

	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var inside, outside, size int
		_, err := fmt.Sscan(lines.Text(), &inside, &outside, &size)
		if err == nil && inside <= first && last <= inside+size {
			return true
		}
	}
	return false
}

// Close releases the slot.
func (s *slot) Close() error { return s.file.Close() }

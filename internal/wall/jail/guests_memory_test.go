//go:build linux && (amd64 || arm64)

package jail

import (
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// The attempts below allocate memory that belongs to no process, and keep it until a sample detects
// it.

// queues fills the buffers of a number of socket pairs, in both directions, and keeps them.
func queues(argument string) string {
	n, _ := strconv.Atoi(argument)
	block := make([]byte, 32<<10)
	for range n {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			return outcome(err)
		}

		for _, fd := range pair {
			for err == nil {
				_, err = unix.Write(fd, block)
			}
			err = nil
		}
	}

	time.Sleep(time.Minute) // the guest is killed earlier
	return "done"
}

// sharedMemory writes a number of mebibytes to shared memory, and returns with most of them in no
// process's page table.
func sharedMemory(argument string) string {
	n, _ := strconv.Atoi(argument)
	for range n {
		memory, err := unix.Mmap(-1, 0, 1<<20, unix.PROT_READ|unix.PROT_WRITE,
			unix.MAP_SHARED|unix.MAP_ANON)
		if err != nil {
			return outcome(err)
		}
		for i := 0; i < len(memory); i += 4096 {
			memory[i] = 1
		}
		if err := unix.Madvise(memory, unix.MADV_DONTNEED); err != nil {
			return outcome(err)
		}
	}

	return "done"
}

// keepFile keeps 80 MiB in a deleted file of a folder.
func keepFile(dir string) string {
	f, err := os.Create(dir + "/kept")
	if err == nil {
		err = os.Remove(f.Name())
	}
	if err != nil {
		return outcome(err)
	}
	defer f.Close()

	block := make([]byte, 1<<20)
	for range 80 {
		if _, err := f.Write(block); err != nil {
			return outcome(err)
		}
	}
	time.Sleep(time.Minute) // the guest is killed earlier
	return "done"
}

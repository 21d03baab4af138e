//go:build linux && (amd64 || arm64)

package jail

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// samplePause is the time between two samples.
const samplePause = 50 * time.Millisecond

// The maximum memory, in bytes, that the kernel uses for one object that the sampler counts.
const (
	inodeMemory = 1 << 10  // a file of a tmpfs
	pipeMemory  = 64 << 10 // a pipe; the filter keeps it from growing
)

// watchMemory kills the jail when it exceeds its memory limit. It replaces a cgroup.
//
// It counts the private memory of all processes including swapped-out pages and page tables, the
// scratch folders, and a full buffer for each socket and each pipe. The filter refuses calls that
// would make these numbers too small. The sampler misses the kernel's memory for mappings (about
// 256 bytes each, 16 MiB per process), for file locks and for epoll watches, pipes in transit
// through a socket, and the page cache. A fast guest can exceed the limit by the amount that it
// writes between two samples.
func (in *initProcess) watchMemory() {
	socket := measureSocket()
	for range time.Tick(samplePause) {
		if in.sampleMemory(socket) > in.limit.Load() {
			in.memory.Store(true)
			_ = sendToLauncher(message{Outgrown: true}) // without a launcher, the jail also ends
			in.signalAll(unix.SIGKILL)
		}
	}
}

// sampleMemory returns the memory of the jail, in bytes, at the given number of bytes per socket.
func (in *initProcess) sampleMemory(socket int64) int64 {
	var sum int64
	pipes := map[string]bool{}
	for _, pid := range in.listOthers() {
		sum += readMemory(pid)
		if !findPipes(pid, pipes) {
			sum += int64(in.plan.Limits.OpenFiles/2) * pipeMemory
		}
	}
	sum += int64(len(pipes)) * pipeMemory

	if in.plan.wants(Mounts) {
		for _, dir := range in.plan.scratch() {
			sum += readScratch(dir)
		}
	}
	if in.plan.wants(Network) {
		sum += countSockets()*socket + readTCP()
	}
	return sum
}

// readMemory returns the memory that belongs to a process, in bytes: its private pages, in memory
// or swapped out, and its page tables. Pages of files are not counted.
func readMemory(pid int) int64 {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0 // the process has ended
	}

	var sum int64
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[2] != "kB" {
			continue
		}
		switch fields[0] {
		case "RssAnon:", "VmSwap:", "VmPTE:":
			kilobytes, _ := strconv.ParseInt(fields[1], 10, 64) // the kernel writes valid numbers
			sum += kilobytes << 10
		}
	}
	return sum
}

// findPipes adds the open pipes of a process. Processes share most of them. It reports whether it
// could read them, since a worker hides its descriptors even from the init.
func findPipes(pid int, pipes map[string]bool) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd/"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return !errors.Is(err, fs.ErrPermission) // a process that has ended has no pipes
	}

	for _, entry := range entries {
		link, err := os.Readlink(dir + entry.Name())
		if err == nil && strings.HasPrefix(link, "pipe:") {
			pipes[link] = true
		}
	}
	return true
}

// readScratch returns the memory of a scratch folder, in bytes, including deleted files that are
// still open.
func readScratch(dir string) int64 {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0 // the file tree is not this jail's
	}
	return int64(s.Blocks-s.Bfree)*s.Bsize + int64(s.Files-s.Ffree)*inodeMemory
}

// countSockets counts the Unix sockets of the jail's network, including those in transit through
// another socket.
func countSockets() int64 {
	text, err := os.ReadFile("/proc/self/net/unix")
	if err != nil {
		return 0 // this kernel has no such sockets
	}
	return int64(max(0, bytes.Count(text, []byte("\n"))-1)) // without the heading
}

// readTCP returns the memory of the TCP sockets of the jail's network, in bytes: twice the content
// of their queues. The sockets are the connections to and from the proxy.
func readTCP() int64 {
	text, err := os.ReadFile("/proc/self/net/tcp")
	if err != nil {
		return 0 // this kernel has no such sockets
	}

	var sum int64
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		for queue := range strings.SplitSeq(fields[4], ":") {
			waits, _ := strconv.ParseInt(queue, 16, 64) // 0 for the heading, which is not a number
			sum += 2 * waits
		}
	}
	return sum
}

// measureSocket returns the maximum memory, in bytes, that the kernel keeps for data that one
// socket sent. The message that exceeds the buffer may be half as long as the buffer.
func measureSocket() int64 {
	const usual = 212992
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return usual * 3 / 2
	}
	defer func() { _, _ = unix.Close(pair[0]), unix.Close(pair[1]) }()

	size, err := syscall.GetsockoptInt(pair[0], unix.SOL_SOCKET, unix.SO_SNDBUF)
	if err != nil {
		size = usual
	}
	return int64(size) * 3 / 2
}

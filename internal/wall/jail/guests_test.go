//go:build linux && (amd64 || arm64)

package jail

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rlmhq/rlm/internal/snippet/frame"
)

// The guests of the tests. A hostile guest receives frames with the name of an attempt and its
// argument, and answers each with the outcome of the attempt.

func init() {
	Register("echo", func(conn *os.File) int {
		if _, err := io.Copy(conn, conn); err != nil {
			return 1
		}
		return 7
	})

	Register("hostile", hostile)
	Register("panic", func(*os.File) int { panic("as it should") })
	Register("talk", func(*os.File) int {
		for range 4096 {
			fmt.Fprintln(os.Stderr, strings.Repeat("talk ", 20))
		}
		return 0
	})
}

func hostile(conn *os.File) int {
	r, w := frame.NewReader(conn, 1<<16), frame.NewWriter(conn, 1<<16)
	for {
		_, request, err := r.Next()
		if err != nil {
			return 0
		}

		name, argument, _ := strings.Cut(string(request), " ")
		answer := "no such attempt"
		if attempt, ok := attempts[name]; ok {
			answer = attempt(argument)
		}
		if err := w.Write(0, []byte(answer)); err != nil {
			return 1
		}
	}
}

// outcome describes the outcome of an attempt: the name of the error, or "done".
func outcome(err error) string {
	var errno syscall.Errno
	switch {
	case err == nil:
		return "done"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}

	return err.Error()
}

// call makes a system call.
func call(number uintptr, args ...uintptr) string {
	var a [6]uintptr
	copy(a[:], args)
	_, _, errno := syscall.RawSyscall6(number, a[0], a[1], a[2], a[3], a[4], a[5])
	if errno != 0 {
		return unix.ErrnoName(errno)
	}

	return "done"
}

// socket returns an attempt to create a socket.
func socket(family, kind int) func(string) string {
	return func(string) string {
		fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.Close(fd)
		}
		return outcome(err)
	}
}

// system returns an attempt to make a system call.
func system(number uintptr, args ...uintptr) func(string) string {
	return func(string) string { return call(number, args...) }
}

var (
	rootPath = []byte("/\x00")
	zeros    [256]byte
)

// locked are the files locked by the guest.
var locked []*os.File

func at(b *byte) uintptr { return uintptr(unsafe.Pointer(b)) }

var attempts = map[string]func(argument string) string{
	"read":    func(name string) string { _, err := os.ReadFile(name); return outcome(err) },
	"list":    func(name string) string { _, err := os.ReadDir(name); return outcome(err) },
	"write":   func(name string) string { return outcome(os.WriteFile(name, []byte("x"), 0o755)) },
	"dial":    dial,
	"unix":    socket(unix.AF_UNIX, unix.SOCK_STREAM),
	"inet":    socket(unix.AF_INET, unix.SOCK_STREAM),
	"inet6":   socket(unix.AF_INET6, unix.SOCK_DGRAM),
	"netlink": socket(unix.AF_NETLINK, unix.SOCK_RAW),
	"packet":  socket(unix.AF_PACKET, unix.SOCK_RAW),
	"alg":     socket(unix.AF_ALG, unix.SOCK_SEQPACKET),
	"vsock":   socket(unix.AF_VSOCK, unix.SOCK_STREAM),
	"pair": func(argument string) string {
		kind, _ := strconv.Atoi(argument) // a stream by default
		pair, err := unix.Socketpair(unix.AF_UNIX, max(kind, unix.SOCK_STREAM)|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = errors.Join(unix.Close(pair[0]), unix.Close(pair[1]))
		}
		return outcome(err)
	},
	"datagram": datagram,
	"execute":  func(name string) string { return outcome(exec.Command(name).Run()) },
	"script": func(name string) string {
		if err := os.WriteFile(name, []byte("#!/bin/true\n"), 0o755); err != nil {
			return "write: " + outcome(err)
		}
		defer os.Remove(name)
		return outcome(exec.Command(name).Run())
	},
	"fill":   fill,
	"inodes": inodes,
	"files":  openMany,
	"large":  large,
	"flood":  flood,
	"hoard":  hoard,
	"forks":  forks,
	"threads": func(argument string) string {
		n, _ := strconv.Atoi(argument)
		return runThreads(n, func() string { return "done" })
	},
	"ptrace": system(unix.SYS_PTRACE, unix.PTRACE_TRACEME),
	"vm_readv": func(string) string {
		return call(unix.SYS_PROCESS_VM_READV, uintptr(os.Getppid()))
	},
	"unshare": system(unix.SYS_UNSHARE, unix.CLONE_NEWUSER),
	"setns":   system(unix.SYS_SETNS, 0),
	"mount": func(string) string {
		return outcome(unix.Mount("none", "/tmp", "tmpfs", 0, ""))
	},
	"bpf":         system(unix.SYS_BPF, 0, at(&zeros[0]), 64),
	"io_uring":    system(unix.SYS_IO_URING_SETUP, 1, at(&zeros[0])),
	"userfaultfd": system(unix.SYS_USERFAULTFD, 1),
	"keyctl":      system(unix.SYS_KEYCTL, 0),
	"lock": func(name string) string {
		f, err := os.Open(name)
		if err == nil {
			locked = append(locked, f) // closing it would end the lock
			err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		}
		return outcome(err)
	},
	"queues": queues,
	"keep":   keepFile,
	"read_some": func(name string) string {
		f, err := os.Open(name)
		if err == nil {
			_, err = f.Read(make([]byte, 1))
			err = errors.Join(err, f.Close())
		}
		return outcome(err)
	},
	"shared": sharedMemory,
	"fcntl": func(argument string) string {
		command, _ := strconv.Atoi(argument)
		f, err := os.Open("/usr")
		if err != nil {
			return outcome(err)
		}
		defer f.Close()
		return call(unix.SYS_FCNTL, f.Fd(), uintptr(command), 0)
	},
	"setsockopt": func(argument string) string {
		option, _ := strconv.Atoi(argument)
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err == nil {
			err = unix.SetsockoptInt(pair[0], unix.SOL_SOCKET, option, 1<<20)
		}
		return outcome(errors.Join(err, unix.Close(pair[0]), unix.Close(pair[1])))
	},
	"memfd":    system(unix.SYS_MEMFD_CREATE, at(&rootPath[0]), 0),
	"perf":     system(unix.SYS_PERF_EVENT_OPEN, at(&zeros[0])),
	"handle":   system(unix.SYS_OPEN_BY_HANDLE_AT),
	"chroot":   system(unix.SYS_CHROOT, at(&rootPath[0])),
	"setuid":   system(unix.SYS_SETUID, 0),
	"shmget":   system(unix.SYS_SHMGET, 0, 4096, 0o600|unix.IPC_CREAT),
	"mq_open":  system(unix.SYS_MQ_OPEN),
	"clone3":   system(unix.SYS_CLONE3),
	"execveat": system(unix.SYS_EXECVEAT),
	"new_user": system(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD)),
	"namespace": func(string) string {
		c := exec.Command("/bin/true")
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
		return outcome(c.Run())
	},
	"x32":        system(x32Bit + unix.SYS_GETPID),
	"unknown":    system(9999),
	"limit_init": system(unix.SYS_PRLIMIT64, 1, unix.RLIMIT_NOFILE, at(&zeros[0])),
	"raise": func(string) string {
		return outcome(unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{Cur: 9, Max: 9}))
	},
	"core": func(string) string {
		var r unix.Rlimit
		_ = unix.Getrlimit(unix.RLIMIT_CORE, &r)
		return fmt.Sprint(r.Max)
	},
	"exec_memory": execMemory,
	"kill":        func(pid string) string { return signalTo(pid, unix.SIGKILL) },
	"kill_parent": func(string) string { return outcome(unix.Kill(os.Getppid(), unix.SIGKILL)) },
	"signal":      func(pid string) string { return signalTo(pid, 0) },
	"pid":         func(string) string { return strconv.Itoa(os.Getpid()) },
	"ids": func(string) string {
		g, _ := os.Getgroups()
		return fmt.Sprint(os.Getuid(), os.Getgid(), g)
	},
	"env":         func(string) string { return strings.Join(os.Environ(), ",") },
	"hostname":    func(string) string { name, _ := os.Hostname(); return name },
	"cwd":         func(string) string { dir, err := os.Getwd(); return fmt.Sprint(dir, err) },
	"processes":   processes,
	"descriptors": descriptors,
	"each_thread": eachThread,
	"list_threads": func(string) string {
		return runThreads(30, func() string { _, err := os.ReadDir("/"); return outcome(err) })
	},
	"children": children,
	"orphans":  orphans,
	"spin": func(string) string {
		for {
			runtime.Gosched()
		}
	},
}

// signalTo sends a signal to a process, given its number.
func signalTo(pid string, sig syscall.Signal) string {
	n, _ := strconv.Atoi(pid)
	return outcome(unix.Kill(n, sig))
}

func dial(argument string) string {
	network, address, _ := strings.Cut(argument, " ")
	c, err := net.DialTimeout(network, address, time.Second)
	if err != nil {
		return outcome(err)
	}
	defer c.Close()

	_, err = c.Write([]byte("canary"))
	return outcome(err)
}

// datagram sends a datagram to a named socket from one socket of a pair.
func datagram(name string) string {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = unix.Sendto(pair[0], []byte("canary"), 0, &unix.SockaddrUnix{Name: name})
		err = errors.Join(err, unix.Close(pair[0]), unix.Close(pair[1]))
	}
	return outcome(err)
}

func fill(dir string) string {
	f, err := os.Create(dir + "/fill")
	if err != nil {
		return outcome(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()

	block := make([]byte, 1<<20)
	for i := range 64 {
		if _, err := f.Write(block); err != nil {
			return fmt.Sprintf("%s after %d MiB", outcome(err), i)
		}
	}

	return "done"
}

func inodes(dir string) string {
	for i := range 10000 {
		name := fmt.Sprintf("%s/%d", dir, i)
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			return outcome(err)
		}
		defer os.Remove(name) //nolint:gocritic // at the end is when
	}

	return "done"
}

func openMany(string) string {
	for range 600 {
		f, err := os.Open("/dev/null")
		if err != nil {
			return outcome(err)
		}
		defer f.Close() //nolint:gocritic // at the end is when
	}

	return "done"
}

func large(name string) string {
	f, err := os.Create(name)
	if err != nil {
		return outcome(err)
	}
	defer os.Remove(name)
	defer f.Close()

	return outcome(f.Truncate(3 << 20))
}

// flood writes to argument MiB of memory.
func flood(argument string) string {
	n, _ := strconv.Atoi(argument)
	memory, err := unix.Mmap(-1, 0, n<<20,
		unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return outcome(err)
	}
	defer unix.Munmap(memory)

	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
		if i%(1<<20) == 0 {
			time.Sleep(200 * time.Microsecond) // otherwise, a sampler would be too slow
		}
	}

	return "done"
}

// hoard is like flood, but keeps the memory, so that occasional samples detect it.
func hoard(argument string) string {
	n, _ := strconv.Atoi(argument)
	memory := make([]byte, n<<20)
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1
	}
	time.Sleep(time.Minute)

	return fmt.Sprintf("done %d", memory[0])
}

// startChild starts a program of the jail that sleeps.
func startChild() (*exec.Cmd, error) {
	c := exec.Command("/bin/sleep", "1000")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err := c.Start()
	return c, err
}

// forks starts as many processes as it can, up to argument.
func forks(argument string) string {
	n, _ := strconv.Atoi(argument)
	for i := range n {
		c, err := startChild()
		if err != nil {
			return fmt.Sprintf("%s after %d", outcome(err), i)
		}

		//nolint:gocritic // at the end is when
		defer func() {
			_ = c.Process.Kill()
			_ = c.Wait()
		}()
	}

	return "done"
}

// children leaves running child processes behind.
func children(argument string) string {
	n, _ := strconv.Atoi(argument)
	for range n {
		if _, err := startChild(); err != nil {
			return outcome(err)
		}
	}

	return "done"
}

// orphans leaves processes behind whose parents have ended.
func orphans(string) string {
	for range 5 {
		c := exec.Command("/bin/sh", "-c", "/bin/sleep 0.01 & exit 0")
		if err := c.Run(); err != nil {
			return outcome(err)
		}
	}

	return "done"
}

// runThreads calls do on n threads concurrently, and returns the distinct results.
func runThreads(n int, do func() string) string {
	var all, ready sync.WaitGroup
	var mu sync.Mutex
	answers := map[string]bool{}
	ready.Add(n)

	for range n {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready.Done()
			ready.Wait()
			answer := do()
			mu.Lock()
			defer mu.Unlock()

			answers[answer] = true
		})
	}

	all.Wait()
	var different []string
	for answer := range answers {
		different = append(different, answer)
	}
	slices.Sort(different)

	return strings.Join(different, ",")
}

func execMemory(string) string {
	memory, err := unix.Mmap(-1, 0, 4096,
		unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err == nil {
		err = unix.Munmap(memory)
	}
	return outcome(err)
}

func processes(string) string {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return outcome(err)
	}

	others := 0
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && pid != os.Getpid() {
			others++
		}
	}

	return fmt.Sprintf("%d others, %d entries that are no process", others, len(entries)-others-1)
}

func descriptors(string) string {
	var odd []string
	for fd := range 1024 {
		link, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		if err != nil {
			continue
		}

		kind, _, _ := strings.Cut(link, ":[")
		switch {
		case fd == 0 && link == "/dev/null", fd <= 2 && kind == "pipe", fd == 3 && kind == "socket":
		case link == "anon_inode:[eventpoll]", link == "anon_inode:[eventfd]":
		default:
			odd = append(odd, fmt.Sprintf("%d=%s", fd, link))
		}
	}

	return strings.Join(odd, ",")
}

// eachThread describes the status of those threads of the guest that are not locked down.
func eachThread(string) string {
	var odd []string
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return outcome(err)
	}

	for _, task := range tasks {
		f, err := os.Open("/proc/self/task/" + task.Name() + "/status")
		if err != nil {
			return outcome(err)
		}

		status, err := readStatus(f)
		if err = errors.Join(err, f.Close()); err == nil {
			err = checkPrivileges(status)
		}
		if err != nil || status["Seccomp"] != "2" || status["Groups"] != "" {
			odd = append(odd, fmt.Sprint(err, status["Seccomp"], status["Groups"]))
		}
	}

	return strings.Join(odd, ",")
}

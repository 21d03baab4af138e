//go:build linux && (amd64 || arm64)

package jail

import (
	"fmt"
	"maps"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A filter is a list: for each system call what to do, and for those that are
// known but refused EPERM. Everything else fails with ENOSYS, because programs
// fall back on older calls when a kernel lacks a new one. Foreign calling
// conventions, which number the calls otherwise, end the process.

// The places in struct seccomp_data.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

// verdicts of a filter.
const (
	allow   = unix.SECCOMP_RET_ALLOW
	refuse  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	unknown = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	lethal  = unix.SECCOMP_RET_KILL_PROCESS
)

// x32Bit marks the calls of the x32 convention of amd64.
const x32Bit = 0x40000000

// instructions of a filter.
func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func give(verdict uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: verdict}
}

func jump(how uint16, k uint32, yes, no int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | how | unix.BPF_K, Jt: uint8(yes), Jf: uint8(no), K: k}
}

// condition is what an argument must be for a call to be allowed.
type condition struct {
	arg  uint32
	mask uint32   // if not zero, the bits of the lower half that are looked at
	any  []uint32 // the values allowed; the upper half of the argument is not looked at
}

// judge returns the instructions that judge a call whose number has matched: all
// conditions must hold.
func judge(conditions []condition) []unix.SockFilter {
	var code []unix.SockFilter
	for _, c := range conditions {
		code = append(code, load(offArgs+8*c.arg))
		if c.mask != 0 {
			code = append(code, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: c.mask})
		}
		for i, value := range c.any {
			code = append(code, jump(unix.BPF_JEQ, value, len(c.any)-i, 0)) // behind the refusal
		}
		code = append(code, give(refuse))
	}
	return append(code, give(allow))
}

// The upper half of an argument is ignored by the kernel too where conditions
// are used: flags of clone, address families, commands and process numbers are
// 32 bits wide. The protection of mmap is not, but it has no bits up there.

// policy is a profile as the assembler takes it.
type policy struct {
	allowed []uintptr
	refused []uintptr
	only    map[uintptr][]condition
}

// assemble returns the program of a policy.
func assemble(p policy) []unix.SockFilter {
	program := []unix.SockFilter{
		load(offArch), jump(unix.BPF_JEQ, auditArch, 1, 0), give(lethal),
		load(offNumber), jump(unix.BPF_JGE, x32Bit, 0, 1), give(lethal),
	}
	// The conditions first: they win over the lists.
	for _, number := range slices.Sorted(maps.Keys(p.only)) {
		code := judge(p.only[number])
		program = append(program, jump(unix.BPF_JEQ, uint32(number), 0, len(code)))
		program = append(program, code...)
	}
	for _, number := range p.allowed {
		program = append(program, jump(unix.BPF_JEQ, uint32(number), 0, 1), give(allow))
	}
	for _, number := range p.refused {
		program = append(program, jump(unix.BPF_JEQ, uint32(number), 0, 1), give(refuse))
	}
	return append(program, give(unknown))
}

// filterCalls installs the filter of a profile on all threads.
func filterCalls(profile Profile, proxy bool) error {
	program := assemble(policyOf(profile, proxy))
	header := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	thread, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&header)))
	if errno != 0 {
		return fmt.Errorf("cannot install the seccomp filter: %w", errno)
	}
	if thread != 0 {
		return fmt.Errorf("cannot install the seccomp filter on thread %d", thread)
	}
	return nil
}

// families are address families that a guest must not get a socket of.
var families = []int{
	unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK, unix.AF_PACKET, unix.AF_ALG, unix.AF_VSOCK,
}

// checkCalls tries what the filter must refuse.
func checkCalls(status map[string]string, proxy bool) error {
	if status["Seccomp"] != "2" {
		return fmt.Errorf("Seccomp is %q", status["Seccomp"]) //nolint:staticcheck // the kernel's spelling
	}
	for _, family := range families {
		for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM} {
			if proxy && family == unix.AF_INET && kind == unix.SOCK_STREAM {
				continue
			}
			if err := checkSocket(family, kind); err != nil {
				return err
			}
		}
	}
	var pair [2]int32
	_, _, errno := unix.RawSyscall6(unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_DGRAM, 0, uintptr(unsafe.Pointer(&pair)), 0, 0)
	if errno != unix.EPERM {
		return fmt.Errorf("a pair of datagram sockets can be had, or gives the wrong error: %w", errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0); errno != unix.EPERM {
		return fmt.Errorf("ptrace can be had, or gives the wrong error: %w", errno)
	}
	return nil
}

func checkSocket(family, kind int) error {
	fd, _, errno := unix.RawSyscall(unix.SYS_SOCKET, uintptr(family), uintptr(kind|unix.SOCK_CLOEXEC), 0)
	if errno == 0 {
		_ = unix.Close(int(fd)) // the jail is given up
	}
	if errno != unix.EPERM {
		return fmt.Errorf("a socket of family %d and type %d can be had, or gives the wrong error: %w", family, kind, errno)
	}
	return nil
}

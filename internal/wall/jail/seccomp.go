//go:build linux && (amd64 || arm64)

package jail

import (
	"fmt"
	"maps"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A filter is a list of verdicts on system calls. Known calls that are refused fail with EPERM. All
// other calls fail with ENOSYS, because programs fall back to older calls when a kernel lacks a new
// one. A call with a foreign calling convention, which numbers the calls differently, kills the
// process.

// The offsets in struct seccomp_data.
const (
	offsetNumber = 0
	offsetArch   = 4
	offsetArgs   = 16
)

// The verdicts of a filter.
const (
	allow   = unix.SECCOMP_RET_ALLOW
	refuse  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	unknown = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	lethal  = unix.SECCOMP_RET_KILL_PROCESS
)

// x32Bit marks calls of amd64's x32 convention.
const x32Bit = 0x40000000

// loadWord returns the instruction that loads a word of struct seccomp_data.
func loadWord(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

// maskWord returns the instruction that keeps some bits of the loaded word.
func maskWord(mask uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: mask}
}

// jumpIf returns the instruction that compares the loaded word with k and skips yes or no
// instructions.
func jumpIf(test uint16, k uint32, yes, no int) unix.SockFilter {
	return unix.SockFilter{
		Code: unix.BPF_JMP | test | unix.BPF_K, Jt: uint8(yes), Jf: uint8(no), K: k,
	}
}

// endWith returns the instruction that ends the filter with a verdict.
func endWith(verdict uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: verdict}
}

// condition restricts an argument of an allowed call.
//
// The filter checks only the lower half of an argument. In all arguments with conditions, the
// kernel also ignores the upper half, because flags of clone, address families, commands and
// process numbers are 32 bits wide. The protection of mmap is wider, but has no bits in the upper
// half.
type condition struct {
	arg  uint32
	mask uint32   // the bits to compare; 0 means all
	any  []uint32 // the values allowed; nil means all
	none []uint32 // the values refused
}

// checkArguments returns the instructions for a call with a matching number, which require all
// conditions.
func checkArguments(conditions []condition) []unix.SockFilter {
	var code []unix.SockFilter
	for _, c := range conditions {
		code = append(code, loadWord(offsetArgs+8*c.arg))
		if c.mask != 0 {
			code = append(code, maskWord(c.mask))
		}
		for _, value := range c.none {
			code = append(code, jumpIf(unix.BPF_JEQ, value, 0, 1), endWith(refuse))
		}
		if c.any == nil {
			continue
		}
		for i, value := range c.any {
			// A match skips the other values and the refusal.
			code = append(code, jumpIf(unix.BPF_JEQ, value, len(c.any)-i, 0))
		}
		code = append(code, endWith(refuse))
	}
	return append(code, endWith(allow))
}

// policy is a profile in the form that the assembler accepts.
type policy struct {
	allowed []uintptr
	refused []uintptr
	only    map[uintptr][]condition
}

// assemble returns the program of a policy.
func (p policy) assemble() []unix.SockFilter {
	program := []unix.SockFilter{
		loadWord(offsetArch), jumpIf(unix.BPF_JEQ, auditArch, 1, 0), endWith(lethal),
		loadWord(offsetNumber), jumpIf(unix.BPF_JGE, x32Bit, 0, 1), endWith(lethal),
	}

	// The conditions come first, because they override the lists.
	for _, number := range slices.Sorted(maps.Keys(p.only)) {
		code := checkArguments(p.only[number])
		program = append(program, jumpIf(unix.BPF_JEQ, uint32(number), 0, len(code)))
		program = append(program, code...)
	}
	for _, number := range p.allowed {
		program = append(program, jumpIf(unix.BPF_JEQ, uint32(number), 0, 1), endWith(allow))
	}
	for _, number := range p.refused {
		program = append(program, jumpIf(unix.BPF_JEQ, uint32(number), 0, 1), endWith(refuse))
	}
	return append(program, endWith(unknown))
}

// installFilter installs the filter of a plan on all threads.
func installFilter(p *plan) error {
	program := policyOf(p).assemble()
	header := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}

	thread, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&header)))
	if errno != 0 {
		return fmt.Errorf("cannot install the seccomp filter: %w", errno)
	}
	// If one thread cannot accept the filter, the call succeeds, but no thread has the filter.
	if thread != 0 {
		return fmt.Errorf("cannot install the seccomp filter on thread %d", thread)
	}
	return nil
}

// families are address families for which a guest must not get a socket.
var families = []int{
	unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK, unix.AF_PACKET, unix.AF_ALG,
	unix.AF_VSOCK,
}

// checkFilter proves, by making calls, that the filter refuses the calls that it must refuse.
func checkFilter(status map[string]string, proxy bool) error {
	if status["Seccomp"] != "2" {
		//nolint:staticcheck // the kernel's spelling
		return fmt.Errorf("Seccomp is %q, not 2 (filter)", status["Seccomp"])
	}
	if err := checkSockets(proxy); err != nil {
		return err
	}

	var pair [2]int32
	_, _, errno := unix.RawSyscall6(unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_DGRAM, 0,
		uintptr(unsafe.Pointer(&pair)), 0, 0)
	if errno != unix.EPERM {
		return fmt.Errorf("a pair of datagram sockets is allowed, or gives the wrong error: %w",
			errno)
	}

	_, _, errno = unix.RawSyscall(unix.SYS_PTRACE, unix.PTRACE_TRACEME, 0, 0)
	if errno != unix.EPERM {
		return fmt.Errorf("ptrace is allowed, or gives the wrong error: %w", errno)
	}
	return nil
}

// checkSockets tries to create each kind of socket.
func checkSockets(proxy bool) error {
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
	return nil
}

// checkSocket tries to create one socket.
func checkSocket(family, kind int) error {
	fd, _, errno := unix.RawSyscall(unix.SYS_SOCKET, uintptr(family),
		uintptr(kind|unix.SOCK_CLOEXEC), 0)
	if errno == 0 {
		_ = unix.Close(int(fd)) // the start fails
	}
	if errno != unix.EPERM {
		return fmt.Errorf("a socket of family %d and type %d is allowed, "+
			"or gives the wrong error: %w", family, kind, errno)
	}
	return nil
}

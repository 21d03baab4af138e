//go:build linux && (amd64 || arm64)

package jail

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"
)

// What Landlock can forbid, by the ABI that brought it.
const (
	accessABI1  = 1<<13 - 1 // execute to make_sym
	accessRead  = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	accessRun   = accessRead | unix.LANDLOCK_ACCESS_FS_EXECUTE
	accessWrite = accessRead | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SYM |
		unix.LANDLOCK_ACCESS_FS_MAKE_FIFO
	accessFile = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// nestedABI is the first ABI that keeps a guest from sending signals to
// processes outside, which a process namespace does otherwise.
const nestedABI = 6

// syncABI is the first ABI that restricts all threads at once, when asked by
// the flag restrictSync.
const (
	syncABI      = 8
	restrictSync = 1 << 3
)

// landlockABI returns which Landlock the kernel has, 0 if none.
func landlockABI() int {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(abi)
}

// landlockHandled returns all that an ABI can forbid. A later ABI than we know
// is used as the last one that we know.
func landlockHandled(abi int) unix.LandlockRulesetAttr {
	attr := unix.LandlockRulesetAttr{Access_fs: accessABI1}
	if abi >= 2 {
		attr.Access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if abi >= 3 {
		attr.Access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if abi >= 4 {
		attr.Access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if abi >= 5 {
		attr.Access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if abi >= nestedABI {
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	return attr
}

// landlockRule allows something below a path.
type landlockRule struct {
	path   string
	access uint64
}

// landlockRules returns what a guest may reach. A guest of profile Interp may
// reach nothing.
func landlockRules(p *plan) []landlockRule {
	if p.Profile == Interp {
		return nil
	}
	var rules []landlockRule
	for _, t := range p.Trees {
		access := uint64(accessRun)
		if t.Write {
			access = accessWrite
		}
		if !t.Folder {
			access &= accessFile
		}
		rules = append(rules, landlockRule{t.Target, access})
	}
	if !p.has(Mounts) {
		return rules
	}
	for _, dir := range scratch {
		rules = append(rules, landlockRule{dir, accessWrite})
	}
	return append(rules, landlockRule{"/proc", accessRead})
}

// restrictFiles puts all threads under Landlock rules.
func restrictFiles(p *plan) error {
	abi := landlockABI()
	if abi == 0 {
		return fmt.Errorf("the kernel has no Landlock: use Linux 5.13 or later with landlock in CONFIG_LSM or lsm=")
	}
	if p.Class == Nested && abi < nestedABI && p.HostUID == p.UID {
		return fmt.Errorf("without a process namespace Landlock ABI %d is needed, the kernel has %d: use Linux 6.12 or later", nestedABI, abi)
	}
	attr := landlockHandled(abi)
	if abi < syncABI && p.Worker != "" && p.Profile == CPython && p.has(Namespaces) {
		// Thread by thread, each thread gets a domain of its own, and could not
		// signal the children of another. The process namespace does this job.
		attr.Scoped &^= unix.LANDLOCK_SCOPE_SIGNAL
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), attrSize(abi), 0)
	if errno != 0 {
		return fmt.Errorf("cannot create a Landlock rule set: %w", errno)
	}
	defer unix.Close(int(fd)) //nolint:errcheck // nothing was written
	rules := landlockRules(p)
	if withCgo && abi < syncABI {
		// The C library asks which threads there are after it restricted the first.
		rules = append(rules, landlockRule{"/proc/self/task", unix.LANDLOCK_ACCESS_FS_READ_DIR})
	}
	for _, rule := range rules {
		if err := addRule(int(fd), rule, attr.Access_fs); err != nil {
			return err
		}
	}
	if p.Proxy && attr.Access_net != 0 {
		if err := addPort(int(fd), ProxyPort); err != nil {
			return err
		}
	}
	if abi >= syncABI {
		_, _, errno = unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, restrictSync, 0)
	} else {
		_, _, errno = psx.Syscall3(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0)
	}
	if errno != 0 {
		return fmt.Errorf("cannot enforce the Landlock rule set: %w", errno)
	}
	return nil
}

// attrSize returns how much of the attributes an ABI knows, in bytes.
func attrSize(abi int) uintptr {
	switch {
	case abi < 4:
		return 8
	case abi < nestedABI:
		return 16
	}
	return 24
}

// ruleNetPort is LANDLOCK_RULE_NET_PORT, which package unix does not have.
const ruleNetPort = 2

// addPort allows to connect to a TCP port.
func addPort(ruleset int, port uint64) error {
	attr := struct{ access, port uint64 }{unix.LANDLOCK_ACCESS_NET_CONNECT_TCP, port}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), ruleNetPort,
		uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("cannot allow port %d: %w", port, errno)
	}
	return nil
}

// addRule allows access below a path.
func addRule(ruleset int, rule landlockRule, handled uint64) error {
	fd, err := unix.Open(rule.path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("cannot allow %s: %w", rule.path, err)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing was written
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rule.access & handled, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("cannot allow %s: %w", rule.path, errno)
	}
	return nil
}

// Package seccomp derives the profile of our containers from Docker's default profile.
package seccomp

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// profileFile is the profile that package dockerapi ships.
const profileFile = "../../../internal/wall/dockerapi/seccomp.json"

var update = flag.Bool("update", false, "write seccomp.json anew from moby's profile")

// refusedCalls are calls that moby's profile allows, but no snippet needs. They inspect other
// processes, use keys, create objects that outlive a process, or enter parts of the kernel with a
// bad security record. Others use resources that the whole machine or all containers share: AIO
// contexts, inotify instances, cached pages and the flushing of all disks. With the call seccomp, a
// process could decide on another process's calls.
var refusedCalls = []string{
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "kcmp", "pidfd_getfd",
	"pidfd_open", "pidfd_send_signal",
	"add_key", "keyctl", "request_key", "userfaultfd", "perf_event_open", "bpf",
	"open_by_handle_at", "name_to_handle_at",
	"unshare", "setns", "mount", "umount", "umount2", "mount_setattr", "fsopen", "fsconfig",
	"fsmount", "fspick", "move_mount", "open_tree",
	"memfd_create", "memfd_secret", "landlock_create_ruleset", "landlock_add_rule",
	"landlock_restrict_self",
	"io_uring_setup", "io_uring_enter", "io_uring_register", "socketcall", "chroot",
	"io_setup", "io_destroy", "io_submit", "io_cancel", "io_getevents", "io_pgetevents",
	"io_pgetevents_time64",
	"inotify_init", "inotify_init1", "inotify_add_watch", "inotify_rm_watch", "sync", "syncfs",
	"fanotify_mark", "fanotify_init",
	"mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr",
	"mq_timedsend_time64", "mq_timedreceive_time64",
	"mknod", "mknodat", "setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid",
	"setgroups", "setfsuid", "setfsgid",
	"capset", "vmsplice", "syslog", "modify_ldt", "remap_file_pages", "ioprio_set", "adjtimex",
	"clock_adjtime", "clock_adjtime64", "cachestat", "seccomp",
}

// restrictedCalls are allowed only with some arguments.
var restrictedCalls = []string{
	"socket", "socketpair", "setsockopt", "personality", "ioctl", "madvise", "prctl", "preadv2",
	"pwritev2",
}

// The bits of arguments in conditions.
const (
	kindsOfSockets = 0xf             // the higher bits are flags
	noWait         = unix.RWF_NOWAIT // reveals whether a page is cached
)

// harmlessPrctl are the operations that runtimes apply to their own process. Another operation,
// which merges pages with equal pages of other containers, is not harmless.
var harmlessPrctl = []uint64{
	unix.PR_SET_NAME, unix.PR_GET_NAME, unix.PR_SET_PDEATHSIG, unix.PR_GET_PDEATHSIG,
	unix.PR_SET_DUMPABLE, unix.PR_GET_DUMPABLE, unix.PR_GET_SECCOMP, unix.PR_SET_NO_NEW_PRIVS,
	unix.PR_GET_NO_NEW_PRIVS, unix.PR_CAPBSET_READ, unix.PR_SET_VMA, unix.PR_SET_TIMERSLACK,
	unix.PR_GET_TIMERSLACK, unix.PR_SET_CHILD_SUBREAPER, unix.PR_GET_CHILD_SUBREAPER,
}

// harmlessAdvice is every advice about memory except MADV_MERGEABLE.
var harmlessAdvice = []uint64{
	unix.MADV_NORMAL, unix.MADV_RANDOM, unix.MADV_SEQUENTIAL, unix.MADV_WILLNEED, unix.MADV_DONTNEED,
	unix.MADV_FREE, unix.MADV_REMOVE, unix.MADV_DONTFORK, unix.MADV_DOFORK, unix.MADV_HUGEPAGE,
	unix.MADV_NOHUGEPAGE, unix.MADV_DONTDUMP, unix.MADV_DODUMP, unix.MADV_WIPEONFORK,
	unix.MADV_KEEPONFORK, unix.MADV_COLD, unix.MADV_PAGEOUT, unix.MADV_POPULATE_READ,
	unix.MADV_POPULATE_WRITE, unix.MADV_COLLAPSE,
}

// harmlessIoctl are the operations that runtimes apply to files, pipes and sockets, as in package
// jail.
var harmlessIoctl = []uint64{
	unix.TCGETS, unix.TIOCGWINSZ, unix.TIOCGPGRP, unix.TIOCINQ,
	0x5421, 0x5450, 0x5451, // FIONBIO, FIONCLEX, FIOCLEX
}

// derived derives the profile of a container without network from moby's.
func derived() *seccomp.Seccomp {
	from := seccomp.DefaultProfile()
	to := &seccomp.Seccomp{}
	to.DefaultAction, to.DefaultErrnoRet = from.DefaultAction, from.DefaultErrnoRet

	for _, m := range from.ArchMap {
		if m.Arch == specs.ArchX86_64 || m.Arch == specs.ArchAARCH64 {
			m.SubArches = nil // no 32-bit calls, which have other numbers for the same actions
			to.ArchMap = append(to.ArchMap, m)
		}
	}

	for _, rule := range from.Syscalls {
		if rule.Includes != nil && len(rule.Includes.Caps) > 0 ||
			rule.Includes != nil && foreign(rule.Includes.Arches) {
			continue // a container has no capabilities
		}
		copied := *rule
		copied.Names = slices.DeleteFunc(slices.Clone(rule.Names), func(name string) bool {
			return slices.Contains(refusedCalls, name) || slices.Contains(restrictedCalls, name)
		})
		if len(copied.Names) > 0 {
			to.Syscalls = append(to.Syscalls, &copied)
		}
	}

	allow := func(name string, args ...specs.LinuxSeccompArg) {
		to.Syscalls = append(to.Syscalls, &seccomp.Syscall{LinuxSyscall: specs.LinuxSyscall{
			Names: []string{name}, Action: specs.ActAllow, Args: args,
		}})
	}
	is := func(index uint, value uint64) specs.LinuxSeccompArg {
		return specs.LinuxSeccompArg{Index: index, Value: value, Op: specs.OpEqualTo}
	}
	masked := func(index uint, mask, value uint64) specs.LinuxSeccompArg {
		return specs.LinuxSeccompArg{Index: index, Value: mask, ValueTwo: value, Op: specs.OpMaskedEqual}
	}
	for _, name := range []string{"socket", "socketpair"} {
		allow(name, is(0, unix.AF_UNIX), masked(1, kindsOfSockets, unix.SOCK_STREAM))
	}
	// The options of SOL_SOCKET from this one on attach BPF programs, or are rare.
	allow("setsockopt", is(1, unix.SOL_SOCKET),
		specs.LinuxSeccompArg{Index: 2, Value: unix.SO_ATTACH_FILTER, Op: specs.OpLessThan})
	allow("setsockopt", is(1, unix.IPPROTO_IP))
	allow("setsockopt", is(1, unix.IPPROTO_TCP))
	allow("personality", is(0, 0))
	allow("personality", is(0, 0xffffffff))
	for _, request := range harmlessIoctl {
		allow("ioctl", is(1, request))
	}
	for _, advice := range harmlessAdvice {
		allow("madvise", is(2, advice))
	}
	for _, option := range harmlessPrctl {
		allow("prctl", is(0, option))
	}
	for _, name := range []string{"preadv2", "pwritev2"} {
		allow(name, masked(5, noWait, 0))
	}

	return to
}

func foreign(arches []string) bool {
	return len(arches) > 0 && !slices.Contains(arches, "amd64") && !slices.Contains(arches, "arm64")
}

func TestSeccompProfileIsDerivedFromMobys(t *testing.T) {
	want, err := json.MarshalIndent(derived(), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile(profileFile, want, 0o644); err != nil { //nolint:gosec // a source file
			t.Fatal(err)
		}
		return
	}

	if !bytes.Equal(readProfile(t), want) {
		t.Error("seccomp.json differs from moby's profile of today: " +
			"run go test -C scripts ./checks/seccomp -update, and read the difference")
	}
}

func readProfile(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(profileFile)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestSeccompProfileHasNoRuleForWhatIsRefused(t *testing.T) {
	var profile seccomp.Seccomp
	if err := json.Unmarshal(readProfile(t), &profile); err != nil {
		t.Fatal(err)
	}
	if profile.DefaultAction != specs.ActErrno || len(profile.Syscalls) < 3 {
		t.Fatalf(
			"the profile refuses nothing: %s, %d rules",
			profile.DefaultAction,
			len(profile.Syscalls),
		)
	}

	for _, rule := range profile.Syscalls {
		for _, name := range rule.Names {
			if slices.Contains(refusedCalls, name) {
				t.Errorf("%s is allowed", name)
			}
			if (name == "clone" || slices.Contains(restrictedCalls, name)) && len(rule.Args) == 0 {
				t.Errorf("%s is allowed with all arguments", name)
			}
		}
	}
}

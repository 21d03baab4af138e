package dockerapi

import (
	"encoding/json"
	"flag"
	"os"
	"slices"
	"testing"

	"github.com/moby/profiles/seccomp"
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

var update = flag.Bool("update", false, "write seccomp.json anew from moby's profile")

// refusedCalls are calls that moby's profile allows and no snippet needs: to look
// into other processes, to use keys, to make what outlives a process, parts of
// the kernel with a bad record, and what the whole machine or all containers share:
// AIO contexts, inotify instances and the writing of all disks.
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
	"clock_adjtime", "clock_adjtime64",
}

// restrictedCalls are allowed with some arguments only.
var restrictedCalls = []string{"socket", "personality", "ioctl"}

// harmlessIoctl are what runtimes ask of files, pipes and sockets, as in package jail.
var harmlessIoctl = []uint64{
	unix.TCGETS, unix.TIOCGWINSZ, unix.TIOCGPGRP, unix.TIOCINQ,
	0x5421, 0x5450, 0x5451, // FIONBIO, FIONCLEX, FIOCLEX
}

// derived is the profile of a container without network, from moby's.
func derived() *seccomp.Seccomp {
	from := seccomp.DefaultProfile()
	to := &seccomp.Seccomp{}
	to.DefaultAction, to.DefaultErrnoRet = from.DefaultAction, from.DefaultErrnoRet

	for _, m := range from.ArchMap {
		if m.Arch == specs.ArchX86_64 || m.Arch == specs.ArchAARCH64 {
			m.SubArches = nil // no 32-bit calls: they have other numbers for the same deeds
			to.ArchMap = append(to.ArchMap, m)
		}
	}

	for _, rule := range from.Syscalls {
		if rule.Includes != nil && len(rule.Includes.Caps) > 0 ||
			rule.Includes != nil && foreign(rule.Includes.Arches) {
			continue // a container has no capability
		}
		copied := *rule
		copied.Names = slices.DeleteFunc(slices.Clone(rule.Names), func(name string) bool {
			return slices.Contains(refusedCalls, name) || slices.Contains(restrictedCalls, name)
		})
		if len(copied.Names) > 0 {
			to.Syscalls = append(to.Syscalls, &copied)
		}
	}

	allow := func(name string, index uint, value uint64) {
		to.Syscalls = append(to.Syscalls, &seccomp.Syscall{LinuxSyscall: specs.LinuxSyscall{
			Names: []string{name}, Action: specs.ActAllow,
			Args: []specs.LinuxSeccompArg{{Index: index, Value: value, Op: specs.OpEqualTo}},
		}})
	}
	allow("socket", 0, unix.AF_UNIX)
	allow("personality", 0, 0)
	allow("personality", 0, 0xffffffff)
	for _, request := range harmlessIoctl {
		allow("ioctl", 1, request)
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
		if err := os.WriteFile(
			"seccomp.json",
			want,
			0o644,
		); err != nil { //nolint:gosec // a source file
			t.Fatal(err)
		}
		return
	}

	if seccompProfile != string(want) {
		t.Error(
			"seccomp.json differs from moby's profile of today: " +
				"run go test ./internal/dockerapi -update, and read the difference",
		)
	}
}

func TestSeccompProfileHasNoRuleForWhatIsRefused(t *testing.T) {
	var profile seccomp.Seccomp
	if err := json.Unmarshal([]byte(seccompProfile), &profile); err != nil {
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

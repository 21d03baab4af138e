//go:build linux && (amd64 || arm64)

package jail

import (
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// policyOf returns the policy of a plan, for the calling process.
func policyOf(p *plan) policy {
	self := uint32(unix.Getpid())
	if p.Profile == Compute {
		return computePolicy(self)
	}
	if p.Profile == Engine {
		return enginePolicy(self)
	}

	list := programsPolicy(self, p.Proxy)
	if p.Sample {
		maps.Copy(list.only, measurable)
	}
	return list
}

// computePolicy returns the policy of profile Compute.
func computePolicy(self uint32) policy {
	return policy{
		allowed: slices.Concat(callsRunning, archRunning),
		refused: slices.Concat(callsRefused, archRefused, callsPrograms, archPrograms),
		only: map[uintptr][]condition{
			// Threads are allowed, but processes are not. The other flags are for libraries.
			unix.SYS_CLONE: {{
				arg: 0, mask: newNamespaces | unix.CLONE_THREAD | unix.CLONE_PTRACE,
				any: []uint32{unix.CLONE_THREAD},
			}},
			unix.SYS_TGKILL:   {{arg: 0, any: []uint32{self}}},
			unix.SYS_KILL:     {{arg: 0, any: []uint32{self}}},
			unix.SYS_MMAP:     {{arg: 2, mask: unix.PROT_EXEC, any: []uint32{0}}, private},
			unix.SYS_MPROTECT: {{arg: 2, mask: unix.PROT_EXEC, any: []uint32{0}}},
			unix.SYS_PRCTL:    {{arg: 0, any: harmlessPrctl}},
			unix.SYS_FCNTL:    {{arg: 1, none: slices.Concat(watchingFcntl, growingFcntl)}},
			unix.SYS_MADVISE:  {unshared},
		},
	}
}

// enginePolicy returns the policy of profile Engine.
func enginePolicy(self uint32) policy {
	p := computePolicy(self)
	p.allowed = slices.Concat(p.allowed, []uintptr{unix.SYS_MEMFD_CREATE, unix.SYS_FTRUNCATE})
	p.only[unix.SYS_MMAP] = []condition{private}
	delete(p.only, unix.SYS_MPROTECT)
	p.allowed = append(p.allowed, unix.SYS_MPROTECT)
	return p
}

// programsPolicy returns the policy of profile Programs. With a proxy, the guest may connect with
// TCP over IPv4, because its network contains nothing but the proxy.
func programsPolicy(self uint32, proxy bool) policy {
	p := policy{
		allowed: slices.Concat(callsRunning, archRunning, callsPrograms, archPrograms),
		refused: slices.Concat(callsRefused, archRefused),
		only: map[uintptr][]condition{
			unix.SYS_CLONE: {
				{arg: 0, mask: newNamespaces | unix.CLONE_PTRACE, any: []uint32{0}},
			},
			unix.SYS_SOCKETPAIR: {{arg: 0, any: []uint32{unix.AF_UNIX}}, streams},
			unix.SYS_PRCTL:      {{arg: 0, any: harmlessPrctl}},
			unix.SYS_IOCTL:      {{arg: 1, any: harmlessIoctl}},
			unix.SYS_FCNTL:      {{arg: 1, none: watchingFcntl}},
			unix.SYS_MADVISE:    {unshared},
			unix.SYS_PREADV2:    {waiting},
			unix.SYS_PWRITEV2:   {waiting},
			unix.SYS_SETSOCKOPT: {unfiltered},
			// Only for itself, because the guest must not set the limits of the init.
			unix.SYS_PRLIMIT64:   {{arg: 0, any: []uint32{0, self}}},
			unix.SYS_PERSONALITY: {{arg: 0, any: []uint32{0, 0xffffffff}}},
		},
	}
	if proxy {
		p.allowed = append(p.allowed, unix.SYS_CONNECT)
		p.only[unix.SYS_SOCKET] = []condition{
			{arg: 0, any: []uint32{unix.AF_INET}},
			streams,
			{arg: 2, any: []uint32{0, unix.IPPROTO_TCP}},
		}
	}
	return p
}

// streams allows only sockets that can reach only their peer. A datagram socket can send to any
// name, even if it is one of a pair. The bits above the type are flags.
var streams = condition{arg: 1, mask: 0xf, any: []uint32{unix.SOCK_STREAM}}

// newNamespaces are the flags of clone that create namespaces. CLONE_NEWTIME is missing, because
// its bit is part of clone's signal; it is only for unshare and clone3.
const newNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// harmlessPrctl lists the operations that runtimes apply to themselves.
var harmlessPrctl = []uint32{
	unix.PR_SET_NAME, unix.PR_GET_NAME, unix.PR_SET_PDEATHSIG, unix.PR_GET_PDEATHSIG,
	unix.PR_GET_DUMPABLE, unix.PR_GET_SECCOMP, unix.PR_GET_NO_NEW_PRIVS, unix.PR_CAPBSET_READ,
	unix.PR_SET_VMA, unix.PR_GET_TIMERSLACK,
}

// harmlessIoctl lists the operations that runtimes apply to files, pipes and sockets.
var harmlessIoctl = []uint32{
	unix.TCGETS, unix.TIOCGWINSZ, unix.TIOCGPGRP, unix.TIOCINQ,
	0x5421, 0x5450, 0x5451, // FIONBIO, FIONCLEX, FIOCLEX
}

// watchingFcntl lists the commands that report how others use a file or folder, or make others wait
// for it.
var watchingFcntl = []uint32{unix.F_NOTIFY, unix.F_SETLEASE}

// growingFcntl lists the commands that make the kernel use more memory than usual for a descriptor.
var growingFcntl = []uint32{
	unix.F_SETPIPE_SZ, unix.F_SETLK, unix.F_SETLKW, unix.F_OFD_SETLK, unix.F_OFD_SETLKW,
}

// private keeps a guest from sharing memory that belongs to no file. Such memory outlives its pages
// in the page table of a process, which is all that a sampler can read.
var private = condition{
	arg: 3, mask: unix.MAP_SHARED | unix.MAP_ANONYMOUS,
	any: []uint32{0, unix.MAP_SHARED, unix.MAP_ANONYMOUS},
}

// unshared keeps a guest's pages from being merged with equal pages of others, because the duration
// of a write would then reveal the others' content.
var unshared = condition{arg: 2, none: []uint32{unix.MADV_MERGEABLE}}

// waiting keeps a guest from testing whether a page of a file is cached, which would reveal what
// others have read.
var waiting = condition{arg: 5, mask: unix.RWF_NOWAIT, any: []uint32{0}}

// unfiltered keeps a guest from loading BPF programs into the kernel.
var unfiltered = condition{arg: 2, none: []uint32{
	unix.SO_ATTACH_FILTER, unix.SO_ATTACH_BPF, unix.SO_ATTACH_REUSEPORT_CBPF,
	unix.SO_ATTACH_REUSEPORT_EBPF,
}}

// measurable restricts the calls of a guest of profile Programs whose memory is sampled, so
// that the sampler's estimates are upper bounds.
var measurable = map[uintptr][]condition{
	unix.SYS_MMAP: {private},
	unix.SYS_FCNTL: {
		{arg: 1, none: append([]uint32{unix.F_SETPIPE_SZ}, watchingFcntl...)},
	},
	unix.SYS_SETSOCKOPT: {unfiltered, {arg: 2, none: []uint32{
		unix.SO_SNDBUF, unix.SO_SNDBUFFORCE, unix.SO_RCVBUF, unix.SO_RCVBUFFORCE,
	}}},
}

// callsRunning are the calls of a running Go or C program on its existing descriptors and memory.
var callsRunning = []uintptr{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREAD64,
	unix.SYS_PWRITE64,
	unix.SYS_LSEEK, unix.SYS_CLOSE, unix.SYS_FSTAT, unix.SYS_FCNTL, unix.SYS_DUP, unix.SYS_DUP3,
	unix.SYS_SENDMSG, unix.SYS_RECVMSG, unix.SYS_SENDTO, unix.SYS_RECVFROM, unix.SYS_SHUTDOWN,
	unix.SYS_GETSOCKOPT, unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME,
	unix.SYS_PPOLL, unix.SYS_PSELECT6, unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL,
	unix.SYS_EPOLL_PWAIT,
	unix.SYS_EVENTFD2, unix.SYS_PIPE2,
	unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MADVISE, unix.SYS_BRK, unix.SYS_MINCORE,
	unix.SYS_FUTEX, unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_SET_TID_ADDRESS,
	unix.SYS_MEMBARRIER,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
	unix.SYS_RESTART_SYSCALL, unix.SYS_SETITIMER, unix.SYS_GETITIMER,
	unix.SYS_TIMER_CREATE, unix.SYS_TIMER_SETTIME, unix.SYS_TIMER_DELETE,
	unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES,
	unix.SYS_GETTIMEOFDAY,
	unix.SYS_GETPID, unix.SYS_GETPPID, unix.SYS_GETTID, unix.SYS_GETUID, unix.SYS_GETEUID,
	unix.SYS_GETGID, unix.SYS_GETEGID,
	unix.SYS_GETRANDOM, unix.SYS_GETRLIMIT, unix.SYS_GETRUSAGE, unix.SYS_UNAME,
	unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY, unix.SYS_GETCPU,
	unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
}

// callsPrograms are the additional calls of programs: files, processes, and their own settings.
var callsPrograms = []uintptr{
	unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_EXECVE, unix.SYS_SOCKETPAIR,
	unix.SYS_SETSOCKOPT,
	unix.SYS_NEWFSTATAT, unix.SYS_STATX, unix.SYS_STATFS, unix.SYS_FSTATFS, unix.SYS_FACCESSAT,
	unix.SYS_FACCESSAT2,
	unix.SYS_GETDENTS64, unix.SYS_GETCWD, unix.SYS_CHDIR, unix.SYS_FCHDIR, unix.SYS_READLINKAT,
	unix.SYS_MKDIRAT, unix.SYS_UNLINKAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT,
	unix.SYS_SYMLINKAT,
	unix.SYS_FTRUNCATE, unix.SYS_TRUNCATE, unix.SYS_FALLOCATE, unix.SYS_FADVISE64,
	unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_SYNC_FILE_RANGE, unix.SYS_FLOCK,
	unix.SYS_UTIMENSAT,
	unix.SYS_FCHMOD, unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2, unix.SYS_UMASK,
	unix.SYS_FGETXATTR, unix.SYS_GETXATTR, unix.SYS_LGETXATTR, unix.SYS_FLISTXATTR,
	unix.SYS_LISTXATTR, unix.SYS_LLISTXATTR,
	unix.SYS_SENDFILE, unix.SYS_COPY_FILE_RANGE, unix.SYS_SPLICE, unix.SYS_TEE, unix.SYS_PREADV,
	unix.SYS_PWRITEV,
	unix.SYS_PREADV2, unix.SYS_PWRITEV2, unix.SYS_SENDMMSG, unix.SYS_RECVMMSG,
	unix.SYS_CLOSE_RANGE,
	unix.SYS_TIMERFD_CREATE, unix.SYS_TIMERFD_SETTIME, unix.SYS_TIMERFD_GETTIME,
	unix.SYS_SIGNALFD4, unix.SYS_EPOLL_PWAIT2,
	unix.SYS_WAIT4, unix.SYS_WAITID, unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL,
	unix.SYS_RT_SIGPENDING, unix.SYS_RT_SIGSUSPEND, unix.SYS_RT_SIGTIMEDWAIT,
	unix.SYS_RT_SIGQUEUEINFO, unix.SYS_RT_TGSIGQUEUEINFO,
	unix.SYS_PIDFD_OPEN, unix.SYS_PIDFD_SEND_SIGNAL,
	unix.SYS_GETPGID, unix.SYS_SETPGID, unix.SYS_GETSID, unix.SYS_SETSID, unix.SYS_GETGROUPS,
	unix.SYS_GETRESUID, unix.SYS_GETRESGID, unix.SYS_CAPGET, unix.SYS_SETRLIMIT,
	unix.SYS_GETPRIORITY, unix.SYS_SETPRIORITY, unix.SYS_TIMES, unix.SYS_SYSINFO,
	unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_GETPARAM, unix.SYS_SCHED_GETSCHEDULER,
	unix.SYS_SCHED_GETATTR,
	unix.SYS_SCHED_GET_PRIORITY_MAX, unix.SYS_SCHED_GET_PRIORITY_MIN,
	unix.SYS_SCHED_RR_GET_INTERVAL,
	unix.SYS_TIMER_GETTIME, unix.SYS_TIMER_GETOVERRUN, unix.SYS_GET_ROBUST_LIST,
	unix.SYS_MMAP, unix.SYS_MPROTECT, unix.SYS_MSYNC, unix.SYS_MLOCK, unix.SYS_MUNLOCK,
	unix.SYS_READAHEAD,
}

// callsRefused are calls that programs try, but no guest may make. They fail with EPERM. Without
// this list, they would fail with ENOSYS, which suggests an old kernel.
var callsRefused = []uintptr{
	unix.SYS_SOCKET, unix.SYS_CONNECT, unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT,
	unix.SYS_ACCEPT4,
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV,
	unix.SYS_PROCESS_MADVISE,
	unix.SYS_PROCESS_MRELEASE, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
	unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT,
	unix.SYS_CHROOT,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_OPEN_TREE,
	unix.SYS_MOVE_MOUNT, unix.SYS_MOUNT_SETATTR,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP,
	unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_IO_SETUP, unix.SYS_IO_SUBMIT, unix.SYS_FANOTIFY_INIT, unix.SYS_FANOTIFY_MARK,
	unix.SYS_INOTIFY_INIT1, unix.SYS_INOTIFY_ADD_WATCH, unix.SYS_SYNC, unix.SYS_SYNCFS,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_MEMFD_CREATE,
	unix.SYS_MEMFD_SECRET, unix.SYS_EXECVEAT,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_MKNODAT,
	unix.SYS_SETUID, unix.SYS_SETGID, unix.SYS_SETREUID, unix.SYS_SETREGID, unix.SYS_SETRESUID,
	unix.SYS_SETRESGID,
	unix.SYS_SETGROUPS, unix.SYS_SETFSUID, unix.SYS_SETFSGID, unix.SYS_CAPSET, unix.SYS_FCHOWN,
	unix.SYS_FCHOWNAT,
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_REMOVEXATTR,
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SHMDT, unix.SYS_SEMGET,
	unix.SYS_SEMOP, unix.SYS_SEMCTL,
	unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN,
	unix.SYS_MQ_UNLINK,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD,
	unix.SYS_REBOOT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_SYSLOG, unix.SYS_QUOTACTL,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	unix.SYS_CLOCK_SETTIME, unix.SYS_SETTIMEOFDAY, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME,
	unix.SYS_VHANGUP,
	unix.SYS_SECCOMP, unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_ADD_RULE,
	unix.SYS_LANDLOCK_RESTRICT_SELF,
	unix.SYS_MBIND, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES, unix.SYS_SET_MEMPOLICY,
	unix.SYS_LOOKUP_DCOOKIE,
	unix.SYS_MLOCKALL, unix.SYS_MLOCK2, unix.SYS_REMAP_FILE_PAGES, unix.SYS_VMSPLICE,
	unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETATTR,
	unix.SYS_IOPRIO_SET,
}

//go:build linux

package jail

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// Additional system calls of amd64, for old programs.

var archRunning = []uintptr{
	unix.SYS_ARCH_PRCTL, unix.SYS_POLL, unix.SYS_SELECT, unix.SYS_EPOLL_WAIT, unix.SYS_DUP2,
	unix.SYS_PIPE,
	unix.SYS_TIME, unix.SYS_EPOLL_CREATE, unix.SYS_EVENTFD,
}

var archPrograms = []uintptr{
	unix.SYS_OPEN, unix.SYS_CREAT, unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_ACCESS,
	unix.SYS_READLINK, unix.SYS_GETDENTS,
	unix.SYS_MKDIR, unix.SYS_RMDIR, unix.SYS_UNLINK, unix.SYS_RENAME, unix.SYS_LINK,
	unix.SYS_SYMLINK, unix.SYS_CHMOD,
	unix.SYS_FORK, unix.SYS_VFORK, unix.SYS_GETPGRP, unix.SYS_ALARM, unix.SYS_PAUSE,
	unix.SYS_UTIME, unix.SYS_UTIMES,
	unix.SYS_FUTIMESAT, unix.SYS_SIGNALFD,
}

var archRefused = []uintptr{
	unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_MKNOD, unix.SYS_MODIFY_LDT, unix.SYS_IOPL,
	unix.SYS_IOPERM, unix.SYS_USELIB, unix.SYS_INOTIFY_INIT,
	unix.SYS_USTAT, unix.SYS_SYSFS, unix.SYS__SYSCTL, unix.SYS_KEXEC_FILE_LOAD,
}

//go:build linux

package jail

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// arm64 is newer and has no old calls.

var archRunning, archPrograms []uintptr

var archRefused = []uintptr{unix.SYS_KEXEC_FILE_LOAD}

//go:build unix

package folder

import "syscall"

// plainly opens neither the target of a link nor a pipe without a writer, if one of them replaces
// the file in the meantime.
const plainly = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

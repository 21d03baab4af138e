//go:build linux && (amd64 || arm64)

package jail

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// The functions below read facts about processes from /proc.

// listOthers lists the processes of the jail except the init. Without a process namespace, these
// are the init's descendants.
func (in *initProcess) listOthers() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}

	self := os.Getpid()
	parents := map[int]int{}
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && pid != self {
			parents[pid] = 0
			if in.plan.Class == Nested {
				parents[pid] = readParent(pid)
			}
		}
	}

	var all []int
	for pid := range parents {
		if in.plan.Class != Nested || isDescendant(parents, pid, self) {
			all = append(all, pid)
		}
	}
	return all
}

// isDescendant reports whether a process is below another one.
func isDescendant(parents map[int]int, pid, ancestor int) bool {
	for range len(parents) + 1 {
		if pid = parents[pid]; pid == ancestor {
			return true
		}
		if pid == 0 {
			return false
		}
	}
	return false
}

// readStat returns the fields after the name in /proc/<pid>/stat: state, parent, and so on. It
// returns nil if the process does not exist.
func readStat(pid int) []string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	// The name is in parentheses and may contain parentheses itself.
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}

// readParent returns the parent of a process, or 0 if the process does not exist.
func readParent(pid int) int {
	if fields := readStat(pid); len(fields) > 1 {
		if parent, err := strconv.Atoi(fields[1]); err == nil {
			return parent
		}
	}
	return 0
}

// readStartTime returns the start time of a process, in the kernel's units, or an empty string if
// the process does not exist.
func readStartTime(pid int) string {
	if fields := readStat(pid); len(fields) > 19 {
		return fields[19]
	}
	return ""
}

// isZombie reports whether a process has ended and is waiting to be reaped.
func isZombie(pid int) bool {
	fields := readStat(pid)
	return len(fields) == 0 || fields[0] == "Z" || fields[0] == "X"
}

// countTasks counts the threads of a user. They count towards the process limit of a jail with the
// same user and without namespaces.
func countTasks(uid int) int {
	processes, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}

	count := 0
	for _, process := range processes {
		info, err := process.Info()
		if err != nil {
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) == uid {
			tasks, _ := os.ReadDir("/proc/" + process.Name() + "/task") // a process that has ended has no tasks
			count += len(tasks)
		}
	}
	return count
}

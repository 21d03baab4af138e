//go:build linux && (amd64 || arm64)

package workers

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// machineMemory returns the memory of this machine in bytes, or the limit of this process's
// cgroups if that is lower.
func machineMemory() int64 {
	most := int64(math.MaxInt64)
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err == nil {
		most = int64(info.Totalram) * int64(info.Unit) //nolint:gosec // bytes of memory
	}
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return most // there are no cgroups
	}

	for line := range strings.Lines(string(text)) {
		// The format is hierarchy:controllers:path. For version 2, the controllers are empty.
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(fields) != 3:
		case fields[1] == "":
			most = min(most, groupMemory("/sys/fs/cgroup", fields[2], "memory.max"))
		case strings.Contains(","+fields[1]+",", ",memory,"):
			most = min(most, groupMemory("/sys/fs/cgroup/memory", fields[2], "memory.limit_in_bytes"))
		}
	}
	return most
}

// groupMemory returns the lowest memory limit of a group and its ancestors. In a container, the
// path may lie outside the visible root; then the root's limit applies.
func groupMemory(root, path, file string) int64 {
	most := int64(math.MaxInt64)
	for dir := filepath.Join(root, path); strings.HasPrefix(dir, root); dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			continue // the file does not exist, or sets no limit
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && n > 0 {
			most = min(most, n)
		}
	}
	return most
}

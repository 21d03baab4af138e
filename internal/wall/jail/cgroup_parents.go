//go:build linux && (amd64 || arm64)

package jail

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// controllers are the controllers that a jail uses. Only the first requiredControllers are
// mandatory.
var controllers = []string{"memory", "pids", "freezer", "cpuacct"}

const requiredControllers = 2

// cgroupParents are the folders below which a cgroup can be created, by controller.
type cgroupParents struct {
	version int
	folders map[string]string
}

var errNoCgroup = errors.New("cannot create a cgroup")

// findCgroupParents finds the folders in which this process may create cgroups. They are the
// process's own groups, so the launcher's limits also apply to its jails.
func findCgroupParents() (cgroupParents, error) {
	mounts, err := readMounts()
	if err != nil {
		return cgroupParents{}, err
	}
	mountPoints := map[string]bool{}
	for _, m := range mounts {
		if m.kind == "cgroup" || m.kind == "cgroup2" {
			mountPoints[m.point] = true
		}
	}

	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return cgroupParents{}, err
	}
	parents := cgroupParents{version: 1, folders: map[string]string{}}
	unified := ""
	for line := range strings.Lines(string(text)) {
		// A line is hierarchy:controllers:path; controllers is empty for version 2.
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(fields) != 3:
		case fields[1] == "":
			unified = fields[2]
		default:
			parents.addHierarchy(fields[1], fields[2], mountPoints)
		}
	}

	if parents.isComplete() {
		return parents, nil
	}
	return findUnifiedParent(mountPoints, unified)
}

// addHierarchy adds the folders in which cgroups can be created, from one hierarchy of version 1.
func (p cgroupParents) addHierarchy(names, path string, mountPoints map[string]bool) {
	for _, controller := range controllers {
		if !slices.Contains(strings.Split(names, ","), controller) {
			continue
		}
		for _, mountedAs := range []string{names, controller} {
			point := "/sys/fs/cgroup/" + mountedAs
			dir := filepath.Join(point, path)
			if mountPoints[point] && mayMakeCgroups(dir) {
				p.folders[controller] = dir
			}
		}
	}
}

// isComplete reports whether every required controller was found.
func (p cgroupParents) isComplete() bool {
	for _, controller := range controllers[:requiredControllers] {
		if p.folders[controller] == "" {
			return false
		}
	}
	return true
}

// findUnifiedParent finds a folder of version 2. A group with processes cannot delegate
// controllers, so the result is the nearest ancestor that delegates them.
func findUnifiedParent(mountPoints map[string]bool, own string) (cgroupParents, error) {
	const point = "/sys/fs/cgroup"
	if !mountPoints[point] {
		return cgroupParents{}, fmt.Errorf("%w: the memory and pids controllers are not at %s, "+
			"or this user cannot write there", errNoCgroup, point)
	}

	for dir := filepath.Join(point, own); ; dir = filepath.Dir(dir) {
		text, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
		if err == nil && mayMakeCgroups(dir) && handsDownRequired(strings.Fields(string(text))) {
			parents := cgroupParents{version: 2, folders: map[string]string{}}
			for _, controller := range controllers {
				parents.folders[controller] = dir
			}
			return parents, nil
		}

		if dir == point {
			return cgroupParents{}, fmt.Errorf("%w: no group at or above %s delegates memory and pids "+
				"to this user: delegate it, for example with "+
				"systemd-run --user --scope -p Delegate=yes", errNoCgroup, own)
		}
	}
}

// handsDownRequired reports whether a list of controllers contains all required ones.
func handsDownRequired(list []string) bool {
	for _, controller := range controllers[:requiredControllers] {
		if !slices.Contains(list, controller) {
			return false
		}
	}
	return true
}

// mayMakeCgroups reports whether this process may create groups in a folder.
func mayMakeCgroups(dir string) bool {
	return unix.Access(dir, unix.W_OK) == nil &&
		unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) == nil
}

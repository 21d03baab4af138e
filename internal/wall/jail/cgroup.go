//go:build linux && (amd64 || arm64)

package jail

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// cgroup is the control group of one jail. It has one folder for each controller in version 1, and
// a single folder in version 2.
type cgroup struct {
	version int
	dirs    map[string]string // by controller; the same for all in version 2
}

var cgroupCount atomic.Int64

// newCgroupName returns a new name that identifies the owner of the group: rlm-<process
// namespace>-<process>-<its start>-<count>.
func newCgroupName() string {
	pid := os.Getpid()
	return fmt.Sprintf("%s%d-%s-%d", cgroupPrefix(), pid, readStartTime(pid), cgroupCount.Add(1))
}

// cgroupPrefix returns the common prefix of the group names of all launchers in this process
// namespace.
func cgroupPrefix() string {
	link, _ := os.Readlink("/proc/self/ns/pid") // an empty name also works
	return "rlm-" + strings.Trim(link, "pid:[]") + "-"
}

// newCgroup creates the groups and sets the limits.
func newCgroup(l Limits, class Class) (*cgroup, error) {
	parents, err := findCgroupParents()
	if err != nil {
		return nil, err
	}

	c := &cgroup{version: parents.version, dirs: map[string]string{}}
	name := newCgroupName()
	for controller, parent := range parents.folders {
		removeStale(parent)
		if controller == "freezer" && parents.version == 1 && class == Full {
			// This controller is not needed, because the process namespace kills all processes
			// together, and each controller costs milliseconds.
			continue
		}
		dir := filepath.Join(parent, name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			err = fmt.Errorf("cannot make a cgroup: %w", err)
			return nil, errors.Join(err, c.remove(context.Background()))
		}
		c.dirs[controller] = dir
	}

	if err := c.setLimits(l); err != nil {
		return nil, errors.Join(err, c.remove(context.Background()))
	}
	return c, nil
}

// cgroupLimit is one limit of a group.
type cgroupLimit struct {
	controller, file, value string
	optional                bool // some kernels lack it
}

// setLimits sets the limits and reads them back.
func (c *cgroup) setLimits(l Limits) error {
	tasks := cgroupLimit{"pids", "pids.max", strconv.Itoa(l.Processes + ownTasks), false}
	for _, limit := range append(c.memoryLimits(l.Memory), tasks) {
		if err := c.setLimit(limit); err != nil {
			return err
		}
	}
	return nil
}

// memoryLimits returns the limits that bound memory to a number of bytes.
func (c *cgroup) memoryLimits(bytes int64) []cgroupLimit {
	memory := strconv.FormatInt(bytes, 10)
	if c.version == 2 {
		return []cgroupLimit{{"memory", "memory.max", memory, false}, {"memory", "memory.swap.max", "0", true}}
	}
	return []cgroupLimit{
		{"memory", "memory.limit_in_bytes", memory, false},
		{"memory", "memory.memsw.limit_in_bytes", memory, true}, // kernels that count no swap
	}
}

// setLimit sets one limit and reads it back.
func (c *cgroup) setLimit(limit cgroupLimit) error {
	file := filepath.Join(c.dirs[limit.controller], limit.file)
	if err := os.WriteFile(file, []byte(limit.value), 0); err != nil {
		if limit.optional && errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return fmt.Errorf("cannot set %s to %s: %w", limit.file, limit.value, err)
	}

	got, err := os.ReadFile(file)
	if err != nil || !isSameLimit(string(got), limit.value) {
		return fmt.Errorf("%s is %s after setting it to %s",
			limit.file, bytes.TrimSpace(got), limit.value)
	}
	return nil
}

// isSameLimit compares limits. The kernel rounds them down to pages.
func isSameLimit(got, want string) bool {
	g, err1 := strconv.ParseInt(strings.TrimSpace(got), 10, 64)
	w, err2 := strconv.ParseInt(want, 10, 64)
	return err1 == nil && err2 == nil && g <= w && w-g < int64(os.Getpagesize())
}

// listDirs returns every folder once.
func (c *cgroup) listDirs() []string {
	seen := map[string]bool{}
	var all []string
	for _, dir := range c.dirs {
		if !seen[dir] {
			seen[dir] = true
			all = append(all, dir)
		}
	}
	return all
}

// add moves a process into the groups.
func (c *cgroup) add(pid int) error {
	for _, dir := range c.listDirs() {
		file := filepath.Join(dir, "cgroup.procs")
		if err := os.WriteFile(file, []byte(strconv.Itoa(pid)), 0); err != nil {
			return fmt.Errorf("cannot put process %d into %s: %w", pid, dir, err)
		}
	}
	return nil
}

// readNumber reads a number from a controller's file: the only number, or the number in the line
// that begins with key.
func (c *cgroup) readNumber(controller, file, key string) int64 {
	text, err := os.ReadFile(filepath.Join(c.dirs[controller], file))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || len(fields) == 2 && fields[0] != key {
			continue
		}
		if n, err := strconv.ParseInt(fields[len(fields)-1], 10, 64); err == nil {
			return n
		}
	}
	return 0
}

// sawOOM reports whether the kernel killed any process of the group for lack of memory.
func (c *cgroup) sawOOM() bool {
	if c.version == 2 {
		return c.readNumber("memory", "memory.events", "oom_kill") > 0
	}
	return c.readNumber("memory", "memory.oom_control", "oom_kill") > 0
}

// readUsage returns the resources that the group has used.
func (c *cgroup) readUsage() Usage {
	if c.version == 2 {
		return Usage{
			PeakMemory: c.readNumber("memory", "memory.peak", ""),
			CPUNanos:   c.readNumber("cpuacct", "cpu.stat", "usage_usec") * 1000,
		}
	}
	return Usage{
		PeakMemory: c.readNumber("memory", "memory.max_usage_in_bytes", ""),
		CPUNanos:   c.readNumber("cpuacct", "cpuacct.usage", ""),
	}
}

// kill kills every process of the group.
func (c *cgroup) kill() {
	for _, dir := range c.listDirs() {
		killCgroup(dir)
	}
}

// killCgroup kills every process in one folder, in one step if the kernel supports that. Otherwise,
// it freezes the processes first, so that none escapes by forking. Without a freezer, the caller
// must repeat the call.
func killCgroup(dir string) {
	if os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0) == nil {
		return
	}

	freezer := filepath.Join(dir, "freezer.state")
	_ = os.WriteFile(freezer, []byte("FROZEN"), 0)             // only one controller has this file
	text, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs")) // a missing group is fine
	for line := range strings.Lines(string(text)) {
		if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && pid > 1 {
			_ = unix.Kill(pid, unix.SIGKILL) // fails if the process has ended
		}
	}
	_ = os.WriteFile(freezer, []byte("THAWED"), 0) // only one controller has this file
}

// remove kills the remaining processes and removes the groups.
func (c *cgroup) remove(ctx context.Context) error {
	var errs []error
	for _, dir := range c.listDirs() {
		errs = append(errs, removeCgroup(ctx, dir))
	}
	return errors.Join(errs...)
}

// removeCgroup removes one folder. A dead process keeps the folder busy for a moment.
func removeCgroup(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()

	for {
		err := unix.Rmdir(dir)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		killCgroup(dir)

		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot remove the cgroup %s: %w", dir, err)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// removeStale removes the groups of dead launchers.
func removeStale(parent string) {
	stale, err := filepath.Glob(filepath.Join(parent, cgroupPrefix()+"*"))
	if err != nil {
		return
	}
	for _, dir := range stale {
		fields := strings.Split(filepath.Base(dir), "-")
		if len(fields) != 5 {
			continue
		}
		pid, err := strconv.Atoi(fields[2])
		if err != nil || readStartTime(pid) == fields[3] {
			continue
		}
		_ = removeCgroup(context.Background(), dir) // the next launcher tries again
	}
}

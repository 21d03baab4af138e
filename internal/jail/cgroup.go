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

// cgroup is the control group of one jail: one folder for each controller in
// version 1, a single one in version 2.
type cgroup struct {
	version int
	dirs    map[string]string // by controller; in version 2 all the same
}

// controllers are what a jail wants, the first two without fail.
var controllers = []string{"memory", "pids", "freezer", "cpuacct"}

// required is how many of the controllers must be there.
const required = 2

// places are the folders below which a cgroup can be made.
type places struct {
	version int
	parents map[string]string
}

var errNoCgroup = errors.New("no cgroup can be made")

// findPlaces looks for folders in which this process may make cgroups: its own
// ones, so that limits which hold for the launcher hold for its jails.
func findPlaces() (places, error) {
	mounts, err := readMounts()
	if err != nil {
		return places{}, err
	}
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return places{}, err
	}
	points := map[string]bool{}
	for _, m := range mounts {
		if m.kind == "cgroup" || m.kind == "cgroup2" {
			points[m.point] = true
		}
	}
	p := places{version: 1, parents: map[string]string{}}
	own2 := ""
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		if fields[1] == "" {
			own2 = fields[2]
			continue
		}
		for _, controller := range controllers {
			for _, mountedAs := range []string{fields[1], controller} {
				point := "/sys/fs/cgroup/" + mountedAs
				dir := filepath.Join(point, fields[2])
				if strings.Contains(","+fields[1]+",", ","+controller+",") && points[point] && mayMake(dir) {
					p.parents[controller] = dir
				}
			}
		}
	}
	if p.complete() {
		return p, nil
	}
	return findUnified(points, own2)
}

// findUnified looks for a place in version 2. A group with processes cannot
// hand controllers down, so the place is the nearest group above that does.
func findUnified(points map[string]bool, own string) (places, error) {
	const point = "/sys/fs/cgroup"
	if !points[point] {
		return places{}, fmt.Errorf("%w: the memory and pids controllers are not at %s, or not writable for this user", errNoCgroup, point)
	}
	for dir := filepath.Join(point, own); ; dir = filepath.Dir(dir) {
		on, err := os.ReadFile(filepath.Join(dir, "cgroup.subtree_control"))
		list := strings.Fields(string(on))
		if err == nil && mayMake(dir) && containsAll(list, controllers[:required]) {
			p := places{version: 2, parents: map[string]string{}}
			for _, controller := range controllers {
				p.parents[controller] = dir
			}
			return p, nil
		}
		if dir == point {
			return places{}, fmt.Errorf("%w: no group at or above %s hands memory and pids down to this user: have it delegated, for example by systemd-run --user --scope -p Delegate=yes", errNoCgroup, own)
		}
	}
}

// complete reports whether all that is required was found.
func (p places) complete() bool {
	for _, controller := range controllers[:required] {
		if p.parents[controller] == "" {
			return false
		}
	}
	return true
}

func containsAll(list, wanted []string) bool {
	for _, w := range wanted {
		if !strings.Contains(" "+strings.Join(list, " ")+" ", " "+w+" ") {
			return false
		}
	}
	return true
}

// mayMake reports whether this process may make groups in a folder.
func mayMake(dir string) bool {
	return unix.Access(dir, unix.W_OK) == nil && unix.Access(filepath.Join(dir, "cgroup.procs"), unix.W_OK) == nil
}

var cgroupCount atomic.Int64

// cgroupName returns a new name that tells whose the group is:
// rlm-<process namespace>-<process>-<its start>-<count>.
func cgroupName() string {
	return fmt.Sprintf("%s%d-%s-%d", cgroupPrefix(), os.Getpid(), startOf(os.Getpid()), cgroupCount.Add(1))
}

// cgroupPrefix is what the groups of all launchers begin with that have the
// same process numbers.
func cgroupPrefix() string {
	link, _ := os.Readlink("/proc/self/ns/pid") // empty is as good a name
	return "rlm-" + strings.Trim(link, "pid:[]") + "-"
}

// startOf returns when a process started, empty if there is none.
func startOf(pid int) string {
	if fields := statFields(pid); len(fields) > 19 {
		return fields[19]
	}
	return ""
}

// newCgroup makes the groups and sets the limits.
func newCgroup(l Limits, class Class) (*cgroup, error) {
	p, err := findPlaces()
	if err != nil {
		return nil, err
	}
	c := &cgroup{version: p.version, dirs: map[string]string{}}
	name := cgroupName()
	for controller, parent := range p.parents {
		sweep(parent)
		if controller == "freezer" && p.version == 1 && class == Full {
			continue // the process namespace ends all at once, and each controller costs milliseconds
		}
		dir := filepath.Join(parent, name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return nil, errors.Join(fmt.Errorf("cannot make a cgroup: %w", err), c.remove(context.Background()))
		}
		c.dirs[controller] = dir
	}
	if err := c.limit(l); err != nil {
		return nil, errors.Join(err, c.remove(context.Background()))
	}
	return c, nil
}

// limit sets the limits and reads them back.
func (c *cgroup) limit(l Limits) error {
	memory, pids := strconv.FormatInt(l.Memory, 10), strconv.Itoa(l.Processes+ownTasks)
	limits := []struct {
		controller, file, value string
		optional                bool
	}{
		{"memory", "memory.limit_in_bytes", memory, false},
		{"memory", "memory.memsw.limit_in_bytes", memory, true},
		{"pids", "pids.max", pids, false},
	}
	if c.version == 2 {
		limits[0].file = "memory.max"
		limits[1].file, limits[1].value = "memory.swap.max", "0"
	}
	for _, limit := range limits {
		file := filepath.Join(c.dirs[limit.controller], limit.file)
		if err := os.WriteFile(file, []byte(limit.value), 0); err != nil {
			if limit.optional && errors.Is(err, os.ErrNotExist) {
				continue // a kernel that counts no swap
			}
			return fmt.Errorf("cannot set %s to %s: %w", limit.file, limit.value, err)
		}
		got, err := os.ReadFile(file)
		if err != nil || !sameLimit(string(got), limit.value) {
			return fmt.Errorf("%s is %s after setting it to %s", limit.file, bytes.TrimSpace(got), limit.value)
		}
	}
	return nil
}

// sameLimit compares limits, which the kernel rounds down to pages.
func sameLimit(got, want string) bool {
	g, err1 := strconv.ParseInt(strings.TrimSpace(got), 10, 64)
	w, err2 := strconv.ParseInt(want, 10, 64)
	return err1 == nil && err2 == nil && g <= w && w-g < int64(os.Getpagesize())
}

// unique returns each folder once.
func (c *cgroup) unique() []string {
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
	for _, dir := range c.unique() {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
			return fmt.Errorf("cannot put process %d into %s: %w", pid, dir, err)
		}
	}
	return nil
}

// number reads one number from a file of a controller, or from the line of it
// that begins with key.
func (c *cgroup) number(controller, file, key string) int64 {
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

// oom reports whether the kernel killed something of the group for its memory.
func (c *cgroup) oom() bool {
	if c.version == 2 {
		return c.number("memory", "memory.events", "oom_kill") > 0
	}
	return c.number("memory", "memory.oom_control", "oom_kill") > 0
}

// usage returns what the group has used.
func (c *cgroup) usage() Usage {
	if c.version == 2 {
		return Usage{
			PeakMemory: c.number("memory", "memory.peak", ""),
			CPUNanos:   c.number("cpuacct", "cpu.stat", "usage_usec") * 1000,
		}
	}
	return Usage{
		PeakMemory: c.number("memory", "memory.max_usage_in_bytes", ""),
		CPUNanos:   c.number("cpuacct", "cpuacct.usage", ""),
	}
}

// kill ends every process of the group.
func (c *cgroup) kill() {
	for _, dir := range c.unique() {
		killGroup(dir)
	}
}

// killGroup ends every process of one folder: at once where the kernel can,
// otherwise frozen, so that none forks away, or again and again.
func killGroup(dir string) {
	if os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0) == nil {
		return
	}
	freezer := filepath.Join(dir, "freezer.state")
	_ = os.WriteFile(freezer, []byte("FROZEN"), 0)             // only one controller has it
	text, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs")) // gone is fine
	for line := range strings.Lines(string(text)) {
		if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && pid > 1 {
			_ = unix.Kill(pid, unix.SIGKILL) // it may have ended
		}
	}
	_ = os.WriteFile(freezer, []byte("THAWED"), 0) // only one controller has it
}

// remove ends who is left and removes the groups.
func (c *cgroup) remove(ctx context.Context) error {
	var errs []error
	for _, dir := range c.unique() {
		errs = append(errs, removeGroup(ctx, dir))
	}
	return errors.Join(errs...)
}

// removeGroup removes one folder. A dead process keeps it busy for a moment.
func removeGroup(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	for {
		err := unix.Rmdir(dir)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		killGroup(dir)
		select {
		case <-ctx.Done():
			return fmt.Errorf("cannot remove the cgroup %s: %w", dir, err)
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// sweep removes the groups of launchers that have died.
func sweep(parent string) {
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
		if err != nil || startOf(pid) == fields[3] {
			continue
		}
		// What stays is tried again by the next.
		_ = removeGroup(context.Background(), dir) // see above
	}
}

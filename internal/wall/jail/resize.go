//go:build linux && (amd64 || arm64)

package jail

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// SetMemory changes the limit of Limits.Memory, in bytes. A jail that already uses more may be
// killed.
func (p *Process) SetMemory(ctx context.Context, bytes int64) error {
	switch {
	case bytes <= 0:
		return fmt.Errorf("cannot limit a jail to %d bytes of memory", bytes)
	case p.plan.Sample:
		return p.sendOrder(ctx, order{Memory: bytes})
	case p.cgroup == nil:
		return errors.New("cannot limit the memory of a jail that has no cgroup")
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cgroup.setMemory(bytes)
}

// setMemory changes the group's limit. In version 1, the limit with swap can never be below the
// limit without swap.
func (c *cgroup) setMemory(bytes int64) error {
	limits := c.memoryLimits(bytes)
	if c.version == 1 && bytes > c.readNumber("memory", "memory.limit_in_bytes", "") {
		limits[0], limits[1] = limits[1], limits[0]
	}
	for _, limit := range limits {
		if err := c.setLimit(limit); err != nil {
			return err
		}
	}
	return nil
}

// Memory returns the bytes that the jail uses now, or 0 if it has ended.
func (p *Process) Memory() int64 {
	switch {
	case p.isDone():
		return 0
	case p.cgroup != nil:
		return p.cgroup.readMemory()
	}
	return readTree(p.cmd.Process.Pid)
}

// readMemory returns the bytes that the group uses now.
func (c *cgroup) readMemory() int64 {
	if c.version == 2 {
		return c.readNumber("memory", "memory.current", "")
	}
	return c.readNumber("memory", "memory.usage_in_bytes", "")
}

// readTree returns the memory of a process and its descendants, counted as in readMemory.
func readTree(pid int) int64 {
	sum := readMemory(pid)
	tasks, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return sum // the process has ended
	}
	for _, task := range tasks {
		name := filepath.Join("/proc", strconv.Itoa(pid), "task", task.Name(), "children")
		text, err := os.ReadFile(name)
		if err != nil {
			continue // the task has ended
		}
		for child := range strings.FieldsSeq(string(text)) {
			if id, err := strconv.Atoi(child); err == nil {
				sum += readTree(id)
			}
		}
	}
	return sum
}

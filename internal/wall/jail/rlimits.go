//go:build linux && (amd64 || arm64)

package jail

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// setLimits sets the limits of the process, which its children inherit.
func (g *guest) setLimits() error {
	for _, r := range g.plan.rlimits() {
		if err := r.set(); err != nil {
			return err
		}
	}
	return nil
}

// rlimit is one limit of a process.
type rlimit struct {
	name       string
	resource   int
	soft, hard int64
}

// set sets a limit and reads it back.
func (r rlimit) set() error {
	want := unix.Rlimit{Cur: uint64(r.soft), Max: uint64(r.hard)}
	// The Go runtime changes limits that setrlimit sets, but not those that prlimit sets.
	if err := unix.Prlimit(0, r.resource, &want, nil); err != nil {
		return fmt.Errorf("cannot set limit %s to %d: %w", r.name, r.hard, err)
	}

	var got unix.Rlimit
	if err := unix.Prlimit(0, r.resource, nil, &got); err != nil || got != want {
		return fmt.Errorf("limit %s is %d after setting it to %d: %w", r.name, got.Max, r.hard, err)
	}
	return nil
}

// ownTasks leaves room for the threads of the init, which count towards the guest's limit.
const ownTasks = 16

// rlimits returns the limits of a plan.
func (p *plan) rlimits() []rlimit {
	l := p.Limits
	tasks := int64(l.Processes + ownTasks + p.Tasks)
	all := []rlimit{
		// The limit is one byte, because with 0, a core pattern that is a pipe still receives a
		// core.
		{"core", unix.RLIMIT_CORE, 1, 1},
		{"nofile", unix.RLIMIT_NOFILE, int64(l.OpenFiles), int64(l.OpenFiles)},
		{"fsize", unix.RLIMIT_FSIZE, l.FileSize, l.FileSize},
		// There is one second between SIGXCPU, which can be handled, and SIGKILL, which cannot.
		{"cpu", unix.RLIMIT_CPU, l.CPUSeconds, l.CPUSeconds + 1},
		{"memlock", unix.RLIMIT_MEMLOCK, 0, 0},
		{"msgqueue", unix.RLIMIT_MSGQUEUE, 0, 0},
		{"sigpending", unix.RLIMIT_SIGPENDING, 256, 256},
		{"nproc", unix.RLIMIT_NPROC, tasks, tasks},
		{"stack", unix.RLIMIT_STACK, 8 << 20, 8 << 20},
	}
	if !withRace {
		all = append(all, rlimit{"as", unix.RLIMIT_AS, l.AddressSpace, l.AddressSpace})
	}
	return all
}

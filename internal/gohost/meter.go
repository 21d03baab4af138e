package gohost

import (
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/jail"
	"github.com/rlmhq/rlm/tiers"
)

// Meter keeps the time of a turn. The time in which host calls are under way
// counts for nothing; the processor's time, where the jail counts it, always
// does, so that a snippet cannot compute for ever behind a slow call.
type Meter struct {
	limits tiers.Limits
	proc   Process
	begun  time.Time
	ended  time.Time

	cpuFrom  time.Duration // the jail's processor time at the first look, -1 before
	cpuAt    time.Duration // the turn's own time then
	cpu      time.Duration // since begun, as last seen
	peak     int64
	mu       sync.Mutex // guards what follows
	pending  int
	waiting  time.Time
	hostWait time.Duration
}

// Process is what a meter needs of a guest's process.
type Process interface{ Usage() jail.Usage }

// Begin starts the clock.
func (m *Meter) Begin(limits tiers.Limits, proc Process) {
	m.limits, m.proc, m.begun, m.cpuFrom = limits, proc, time.Now(), -1
}

// callBegins and callEnds bracket a host call.
func (m *Meter) callBegins() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pending == 0 {
		m.waiting = time.Now()
	}
	m.pending++
}

func (m *Meter) callEnds() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.pending--; m.pending == 0 {
		m.hostWait += time.Since(m.waiting)
	}
}

// Own is the time that the turn has taken without its host calls.
func (m *Meter) Own() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, wait := m.ended, m.hostWait
	if now.IsZero() {
		now = time.Now()
	}
	if m.pending > 0 {
		wait += now.Sub(m.waiting)
	}
	return max(0, now.Sub(m.begun)-wait)
}

// Over looks at the clocks and returns the limit that is exceeded, if any.
func (m *Meter) Over() tiers.Limit {
	own := m.Own()
	usage := m.proc.Usage()
	m.peak = max(m.peak, usage.PeakMemory)
	if used := time.Duration(usage.CPUNanos); used > 0 {
		if m.cpuFrom < 0 {
			m.cpuFrom, m.cpuAt = used, own
		}
		m.cpu = m.cpuAt + used - m.cpuFrom
	}
	switch {
	case own > m.limits.Wall:
		return tiers.LimitWall
	case m.cpu > m.limits.Active:
		return tiers.LimitActive
	case m.cpuFrom < 0 && own > m.limits.Active: // nobody counts it: all time is
		return tiers.LimitActive
	}
	return ""
}

// Stop stops the clock.
func (m *Meter) Stop() {
	if m.begun.IsZero() {
		m.begun = time.Now()
	}
	m.ended = time.Now()
}

// Usage divides the turn's time. A turn too short for a look at the processor's
// time has computed all along.
func (m *Meter) Usage() tiers.Usage {
	u := tiers.Usage{Wall: m.ended.Sub(m.begun), Active: m.Own(), PeakMemory: m.peak}
	u.HostWait = u.Wall - u.Active
	if m.cpuFrom >= 0 && m.cpu < u.Active {
		u.Idle = u.Active - m.cpu
		u.Active = m.cpu
	}
	return u
}

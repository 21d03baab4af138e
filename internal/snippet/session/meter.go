package session

import (
	"errors"
	"math"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// meter keeps the time of one snippet. Waiting for host calls and for turns is charged to no
// limit, sleeping to Wall alone. It belongs to the goroutine that serves the guest.
type meter struct {
	limits         tiers.Limits
	start          time.Time
	hostWait, idle time.Duration
	queued         time.Duration // spent waiting for turns
	own            time.Duration // wall time without host calls, once the snippet has ended
	processor      processorTime

	// fired is the limit that is stopping the snippet, empty while none is.
	fired tiers.Limit
	// refused is a limit that the guest has met as an exception and may live with:
	// memory, host calls.
	refused tiers.Limit
	grace   grace
}

func (m *meter) begin(limits tiers.Limits) {
	*m = meter{limits: limits, start: time.Now()}
}

// wall is the time that has been charged to Wall.
func (m *meter) wall() time.Duration { return time.Since(m.start) - m.queued - m.hostWait }

// active is the part of it that has been charged to Active.
func (m *meter) active(wall time.Duration) time.Duration {
	if used, known := m.processor.used(wall); known {
		return used
	}
	return wall - m.idle
}

// check fires the limit that is used up, if one is.
func (m *meter) check() tiers.Limit {
	if m.fired != "" {
		return m.fired
	}

	wall := m.wall()
	m.processor.look(wall)
	switch {
	case wall >= m.limits.Wall:
		m.fire(tiers.LimitWall)
	case m.active(wall) >= m.limits.Active:
		m.fire(tiers.LimitActive)
	}
	return m.fired
}

func (m *meter) fire(limit tiers.Limit) {
	if m.fired == "" {
		m.fired = limit
	}
}

// wallLeft is how long the snippet may still sleep.
func (m *meter) wallLeft() time.Duration { return m.limits.Wall - m.wall() }

// activeLeft is how long the snippet may still compute.
func (m *meter) activeLeft() time.Duration {
	wall := m.wall()
	return min(m.limits.Wall-wall, m.limits.Active-m.active(wall))
}

// anyTime is how long a call may take whose time is not the snippet's own.
const anyTime time.Duration = math.MaxInt64

var errTimeOver = errors.New("the call took more time than the snippet had left")

// timeOf is how long a call of a function may take.
func (a *Accounts) timeOf(function string) time.Duration {
	for _, f := range a.cfg.Functions {
		if f.Name == function && f.Timed {
			return max(0, a.meter.activeLeft()) + time.Millisecond
		}
	}
	return anyTime
}

func (m *meter) usage() tiers.Usage {
	wall := time.Since(m.start) - m.queued
	own := wall - m.hostWait
	m.own = own
	u := tiers.Usage{Wall: wall, HostWait: m.hostWait, Idle: m.idle, Active: own - m.idle}
	if used, known := m.processor.used(own); known {
		u.Active = used
		u.Idle = own - u.Active
	}
	return u
}

// charge adds a stretch of time in which so many host calls and sleeps were pending.
func (m *meter) charge(passed time.Duration, calls, sleeps int) {
	switch {
	case calls > 0:
		m.hostWait += passed
		m.hostWait -= m.processor.hidden(passed, 0)
	case sleeps > 0:
		m.idle += passed
	default:
		m.processor.hidden(0, passed)
	}
}

// Processor returns the processor time of a guest, 0 if unknown. The answer may be a little old.
type Processor interface{ Processor() time.Duration }

// processorTime compares a guest's processor time with the clock.
//
// A guest that reports its sleeps is charged by the clock, and by its processor time
// only while it waits for a host call: that finds a snippet which computes behind a
// pending call. A guest that does not report its sleeps is charged by its processor time
// alone, if that is known.
type processorTime struct {
	source Processor // nil for none
	sole   bool      // the guest does not report its sleeps

	known          time.Duration // the last answer, 0 for none
	waited, worked time.Duration // since then: with a host call pending, without

	from, offset time.Duration // sole: the first answer, and the snippet's own time then
	looked       time.Time
}

// hidden adds time in which a host call was pending, and time in which none was. It
// returns how much of the waiting since the last answer was really work.
func (p *processorTime) hidden(waited, worked time.Duration) time.Duration {
	p.waited += waited
	p.worked += worked
	if p.source == nil || p.sole || waited == 0 {
		return 0
	}

	now := p.source.Processor()
	if now == p.known {
		return 0
	}

	hidden := max(0, min(now-p.known-p.worked, p.waited))
	if p.known == 0 {
		hidden = 0 // what it did before is not known
	}
	p.known, p.waited, p.worked = now, 0, 0

	return hidden
}

// lookEvery is how often a sole source is asked: it may have to read files.
const lookEvery = 20 * time.Millisecond

// look asks a sole source, if it is time to. own is the snippet's own time so far.
func (p *processorTime) look(own time.Duration) {
	if !p.sole || time.Since(p.looked) < lookEvery {
		return
	}

	p.looked = time.Now()
	now := p.source.Processor()
	if p.known == 0 {
		p.from, p.offset = now, own
	}
	p.known = now
}

// used is the processor time of the snippet by a sole source, as it was last seen. The
// source may lie, so used is at least 0 and at most own, the snippet's own time so far.
func (p *processorTime) used(own time.Duration) (used time.Duration, known bool) {
	if !p.sole || p.known == 0 {
		return 0, false
	}

	since := max(0, min(p.known-p.from, own)) // bounded first: the sum must not overflow
	return max(0, min(p.offset+since, own)), true
}

package session

import (
	"errors"
	"math"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// meter measures the time of one snippet. Waiting for host calls and for slots is charged to no
// limit, and sleeping only to Wall. It belongs to the goroutine that serves the guest.
type meter struct {
	limits         tiers.Limits
	start          time.Time
	hostWait, idle time.Duration
	queued         time.Duration // spent waiting for slots
	own            time.Duration // wall time without host calls, set when the snippet has ended
	processor      processorTime

	// fired is the limit that is stopping the snippet, or empty.
	fired tiers.Limit
	// refused is a limit that the guest exceeded with an exception and may survive: memory or host
	// calls.
	refused tiers.Limit
	grace   grace
}

func (m *meter) begin(limits tiers.Limits) {
	*m = meter{limits: limits, start: time.Now()}
}

// wall returns the time charged to Wall.
func (m *meter) wall() time.Duration { return time.Since(m.start) - m.queued - m.hostWait }

// active returns the part of the given wall time that is charged to Active.
func (m *meter) active(wall time.Duration) time.Duration {
	if used, known := m.processor.used(wall); known {
		return used
	}
	return wall - m.idle
}

// check fires an exhausted limit, if there is one.
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

// wallLeft returns the rest of Wall, for which the snippet may still sleep.
func (m *meter) wallLeft() time.Duration { return m.limits.Wall - m.wall() }

// activeLeft returns the rest of the time for which the snippet may still compute.
func (m *meter) activeLeft() time.Duration {
	wall := m.wall()
	return min(m.limits.Wall-wall, m.limits.Active-m.active(wall))
}

// anyTime bounds a call whose time is not the snippet's own.
const anyTime time.Duration = math.MaxInt64

var errTimeOver = errors.New("the call took more time than the snippet had left")

// timeOf returns the maximum duration of a call of a function.
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

// charge adds a period in which the given numbers of host calls and sleeps were pending.
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

// Processor returns the processor time of a guest, or 0 if unknown. The answer may be slightly out
// of date.
type Processor interface{ Processor() time.Duration }

// processorTime compares a guest's processor time with the clock.
//
// A guest that reports its sleeps is charged by the clock, and by its processor time only while it
// waits for a host call: this detects a snippet that computes behind a pending call. A guest that
// does not report its sleeps is charged only by its processor time, if that is known.
type processorTime struct {
	source Processor // may be nil
	sole   bool      // the guest does not report its sleeps

	known          time.Duration // the last answer, or 0
	waited, worked time.Duration // time since then with and without a pending host call

	from, offset time.Duration // of a sole source: first answer, and the snippet's own time then
	looked       time.Time
}

// hidden adds time with and time without a pending host call. It returns the part of the waiting
// time since the last answer during which the guest actually worked.
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
		hidden = 0 // its earlier work is unknown
	}
	p.known, p.waited, p.worked = now, 0, 0

	return hidden
}

// lookEvery is the interval between two queries of a sole source, which may have to read files.
const lookEvery = 20 * time.Millisecond

// look queries a sole source if it is due. own is the snippet's own time so far.
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

// used returns the processor time of the snippet as last reported by a sole source. The source may
// lie, so the result is at least 0 and at most own, the snippet's own time so far.
func (p *processorTime) used(own time.Duration) (used time.Duration, known bool) {
	if !p.sole || p.known == 0 {
		return 0, false
	}

	since := max(0, min(p.known-p.from, own)) // bounded first: the sum must not overflow
	return max(0, min(p.offset+since, own)), true
}

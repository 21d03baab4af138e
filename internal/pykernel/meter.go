package pykernel

import (
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// meter keeps the time of one snippet. Waiting for host calls is charged to no
// limit, sleeping to Wall alone. It belongs to the goroutine that runs the
// guest.
type meter struct {
	limits         tiers.Limits
	start          time.Time
	hostWait, idle time.Duration
	// fired is the limit that is stopping the snippet, "" while none is.
	fired tiers.Limit
	// refused is a limit that the guest has met as an exception and may live
	// with: memory, host calls.
	refused tiers.Limit
	// over is when fired was set; the guest gets a grace from then on.
	over time.Time
}

func (m *meter) begin(limits tiers.Limits) {
	*m = meter{limits: limits, start: time.Now()}
}

// check fires the limit that is used up, if one is.
func (m *meter) check() tiers.Limit {
	if m.fired == "" {
		wall := time.Since(m.start) - m.hostWait
		switch {
		case wall >= m.limits.Wall:
			m.fire(tiers.LimitWall)
		case wall-m.idle >= m.limits.Active:
			m.fire(tiers.LimitActive)
		}
	}
	return m.fired
}

func (m *meter) fire(limit tiers.Limit) {
	if m.fired == "" {
		m.fired, m.over = limit, time.Now()
	}
}

// wallLeft is how long the snippet may still sleep.
func (m *meter) wallLeft() time.Duration {
	return m.limits.Wall - (time.Since(m.start) - m.hostWait)
}

// activeLeft is how long the snippet may still compute.
func (m *meter) activeLeft() time.Duration {
	wall := time.Since(m.start) - m.hostWait
	return min(m.limits.Wall-wall, m.limits.Active-(wall-m.idle))
}

func (m *meter) usage() tiers.Usage {
	wall := time.Since(m.start)
	return tiers.Usage{Wall: wall, HostWait: m.hostWait, Idle: m.idle, Active: wall - m.hostWait - m.idle}
}

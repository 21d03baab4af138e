package session

import (
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// interrupted is used in place of a limit when the caller gives up on a snippet: the host requests
// the snippet's end as if its time were over.
const interrupted tiers.Limit = "interrupt"

// Watch checks the limits of the current snippet, and whether its caller has given up. It reports
// whether the guest must now stop the snippet by force.
//
// It calls interrupt to request the snippet's end, first immediately and then repeatedly until the
// grace is over. A nil interrupt means that the guest cannot be interrupted. A guest calls Watch
// whenever it can act: at each slice of fuel, or at each tick of a clock. Between the variables of
// a state, Watch calls no interrupt.
func (a *Accounts) Watch(interrupt func()) (stop bool) {
	if a.IsCanceled() {
		a.meter.fire(interrupted)
	}

	limit := a.meter.check()
	switch {
	case limit == "":
		return false
	case interrupt == nil:
		return true
	case limit == tiers.LimitFuel && a.cfg.Deterministic:
		return true // a snippet's reaction to an interrupt depends on timing
	}
	if a.moving.isCalm {
		interrupt = func() {}
	}
	return a.meter.grace.isOver(interrupt)
}

// BurnFuel fires the fuel limit if the snippet has used up its fuel.
func (a *Accounts) BurnFuel(used uint64) {
	if used >= a.cfg.Limits.Fuel {
		a.meter.fire(tiers.LimitFuel)
	}
}

// WasInterrupted reports whether the caller gave up on the snippet before it ended.
func (a *Accounts) WasInterrupted() bool { return a.meter.fired == interrupted }

// DelayInterrupt delays the next interrupt, because an error that the guest is about to receive
// also makes it end.
func (a *Accounts) DelayInterrupt() { a.meter.grace.asked = time.Now() }

// The grace of an interrupted snippet.
const (
	// graceTime is the time for which the snippet may continue, and mostGrace the bound by the
	// clock.
	graceTime = 500 * time.Millisecond
	mostGrace = 5 * time.Second
	// askEvery is the interval between two interrupts.
	askEvery = 100 * time.Millisecond
	// mostBetween bounds the time counted between two checks, because a longer gap means that the
	// host was unable to check.
	mostBetween = 4 * time.Millisecond
)

// grace measures the time that a snippet has to obey. It excludes the time for interrupts and the
// time that the host itself waits for a processor.
type grace struct {
	begun, looked time.Time
	asked         time.Time     // when the last interrupt had been delivered
	disobeyed     time.Duration // time counted towards graceTime
	asking        time.Duration // time spent on interrupts
}

// isOver interrupts the snippet when that is due, and reports whether its grace is over.
func (g *grace) isOver(interrupt func()) bool {
	now := time.Now()
	if g.begun.IsZero() {
		g.begun, g.looked = now, now
	}

	g.disobeyed += min(now.Sub(g.looked), mostBetween)
	g.looked = now
	if g.disobeyed > graceTime || now.Sub(g.begun)-g.asking > mostGrace {
		return true
	}

	if now.Sub(g.asked) > askEvery {
		interrupt()
		g.asked = time.Now()
		g.asking += g.asked.Sub(now)
		g.looked = g.asked
	}
	return false
}

package session

import (
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// interrupted stands for a limit when the caller gives up on a snippet: the snippet is
// asked to end like one that has used up its time.
const interrupted tiers.Limit = "interrupt"

// Watch looks at the limits of the snippet that runs, and at whether its caller has
// given up. It reports whether the guest must stop the snippet by force now.
//
// It calls interrupt to ask the snippet to end: at once, again from time to time, and
// until the grace is over. A nil interrupt says that the guest cannot be asked. So a
// guest calls Watch whenever it can act: at each slice of fuel, at each tick of a clock.
// Between the variables of a state, there is no interrupt.
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
		return true // what a snippet does with an interrupt depends on time
	}
	if a.moving.isCalm {
		interrupt = func() {}
	}
	return a.meter.grace.isOver(interrupt)
}

// BurnFuel fires the limit of fuel if the snippet has used that much.
func (a *Accounts) BurnFuel(used uint64) {
	if used >= a.cfg.Limits.Fuel {
		a.meter.fire(tiers.LimitFuel)
	}
}

// WasInterrupted reports whether the caller gave up on the snippet before it ended.
func (a *Accounts) WasInterrupted() bool { return a.meter.fired == interrupted }

// DelayInterrupt makes the next interrupt wait: an error that the guest is about to
// see asks it to end, too.
func (a *Accounts) DelayInterrupt() { a.meter.grace.asked = time.Now() }

// The grace of a snippet that is asked to end.
const (
	// graceTime is how long it may go on, mostGrace how long by the clock.
	graceTime = 500 * time.Millisecond
	mostGrace = 5 * time.Second
	// askEvery is how often it is asked.
	askEvery = 100 * time.Millisecond
	// mostBetween is what counts of the time between two looks: more than that, and
	// the host was kept from looking.
	mostBetween = 4 * time.Millisecond
)

// grace is the time in which a snippet may obey. It does not count what interrupts
// take, nor what the host waits for a processor itself.
type grace struct {
	begun, looked time.Time
	asked         time.Time     // when the last interrupt had arrived
	disobeyed     time.Duration // so far
	asking        time.Duration // spent on interrupts
}

// isOver asks the snippet to end, when it is time to, and reports whether it has had
// its grace.
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

package httpclient

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rlmhq/rlm/repl/internal/callnotes"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// contact records whether and when a server answered.
type contact struct {
	answered atomic.Bool  // whether the server has ever answered
	success  atomic.Int64 // the last success, in nanoseconds since 1970
}

// patience decides for how long a call is retried.
//
// Time bounds all attempts. While the server is away, time is the only bound, because these
// attempts cost nothing. The tokens of a late, interrupted or unreadable reply may have to be paid
// for, so the number of such attempts is also bounded.
type patience struct {
	client *Client
	once   bool      // no retries
	begun  time.Time // the first failure
	costly int       // attempts that may have cost tokens
	// lowered is the new bound on requests in flight if the last attempt lowered it, else 0.
	lowered int
}

// next returns the pause before the next attempt, or false if the call must be given up. The
// failure then has the reason.
func (p *patience) next(
	ctx context.Context, failure *llm.Error, hint retryHint,
) (pause time.Duration, again bool) {
	now := time.Now()
	if p.begun.IsZero() {
		p.begun = now
	}
	if p.once || !isWorthRepeating(failure, hint) {
		return 0, false
	}
	if !p.isAway(failure) {
		if p.costly++; p.costly >= p.client.options.HTTP.Attempts {
			return 0, false
		}
	}

	limit := p.limit(failure)
	if limit.most <= 0 {
		return 0, false
	}
	waited := now.Sub(p.begun)
	pause = p.client.choosePause(failure, limit.most-waited)
	if reason := limit.findObstacle(ctx, failure.RetryAfter, pause, waited); reason != "" {
		failure.Err = addReason(failure.Err, reason)
		return 0, false
	}

	p.client.sendWait(ctx, failure, callnotes.Wait{
		Reason: describeBound(p.lowered), Pause: pause, Waited: waited, Limit: limit.most,
	})
	return pause, true
}

// isAway reports whether a failure shows that the server is away: it is unreachable, declines all
// work, or breaks the connection or fails before it replies. A server that fails with the status
// 500 and answers other calls in the meantime is not away: the request may be the cause.
func (p *patience) isAway(failure *llm.Error) bool {
	switch {
	case failure.Status == http.StatusInternalServerError:
		return p.client.contact.success.Load() < p.begun.UnixNano()
	case isOneOf(failure.Kind, kind.ErrCut, kind.ErrServer):
		return failure.Usage == llm.Usage{}
	}
	return isOneOf(failure.Kind, kind.ErrRateLimited, kind.ErrServer, kind.ErrUnreachable)
}

// timeLimit is the time for which a call is retried after its first failure, with advice in case it
// was too short.
type timeLimit struct {
	most   time.Duration
	advice string
}

// firstContact is the time limit for a server that never answered, because its address may be
// wrong.
const firstContact = 10 * time.Second

// limit returns the limit after a failure.
func (p *patience) limit(failure *llm.Error) timeLimit {
	outage := p.client.options.HTTP.Outage
	if failure.Status == 0 && outage > firstContact && !p.client.contact.answered.Load() {
		return timeLimit{firstContact, "check the address of the server, or start it first"}
	}
	return timeLimit{outage, "raise --outage to wait longer"}
}

// findObstacle returns the reason why a call cannot wait for its next attempt, or "" if it can.
// Asked is the pause that the server requested, or 0.
func (l timeLimit) findObstacle(
	ctx context.Context, asked, pause, waited time.Duration,
) string {
	deadline, bounded := ctx.Deadline()
	isLate := bounded && time.Until(deadline) < pause
	switch {
	case asked > 0 && asked <= l.most && asked > l.most-waited:
		return fmt.Sprintf("the server asks to wait %v more, but the run has waited %v and waits at most %v: %s",
			asked, waited.Round(time.Second/10), l.most, l.advice)
	case asked > l.most:
		return fmt.Sprintf("the server asks to wait %v, but the run waits at most %v: %s",
			asked, l.most, l.advice)
	case waited >= l.most:
		return fmt.Sprintf("given up after %v: %s", l.most, l.advice)
	case isLate && asked > 0:
		return fmt.Sprintf("the server asks to wait %v, which is beyond the time of the run", asked)
	case isLate:
		return "the time of the run ends before the next attempt"
	}
	return ""
}

// addReason adds, to a cause, the reason for giving up.
func addReason(cause error, reason string) error {
	if cause != nil {
		reason = cause.Error() + ": " + reason
	}
	return cleanError{text: reason, err: cause}
}

// leastPause is the shortest pause that a server can request. Otherwise it might request one
// millisecond throughout an outage.
const leastPause = 100 * time.Millisecond

// choosePause returns the pause before the next attempt: the pause that the server requested, or
// else twice the previous one, within the time left. Half of the pause is random, so that calls
// that failed simultaneously do not repeat simultaneously.
func (c *Client) choosePause(failure *llm.Error, left time.Duration) time.Duration {
	policy := c.options.HTTP
	if asked := failure.RetryAfter; asked > 0 {
		asked = max(asked, min(leastPause, policy.FirstWait))
		return asked + rand.N(min(asked/10, time.Second)+1)
	}

	mean := policy.FirstWait
	for range failure.Attempts - 1 {
		mean = min(2*mean, policy.MaxWait)
	}
	return min(mean/2+rand.N(mean+1), policy.MaxWait, max(left, 0))
}

// sendWait sends a note about a pause. Its reason is derived from the failure.
func (c *Client) sendWait(ctx context.Context, failure *llm.Error, w callnotes.Wait) {
	if c.options.HTTP.Wait != nil {
		c.options.HTTP.Wait(failure, w.Pause)
	}

	var b strings.Builder
	b.WriteString(failure.Kind.Error())
	if failure.Status != 0 {
		fmt.Fprintf(&b, " (HTTP status %d)", failure.Status)
	}
	if failure.Message != "" {
		b.WriteString(": " + failure.Message)
	}
	if failure.Err != nil {
		b.WriteString(": " + failure.Err.Error())
	}
	w.Reason = b.String() + w.Reason
	callnotes.SendWait(ctx, w)
}

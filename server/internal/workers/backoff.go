//go:build linux && (amd64 || arm64)

package workers

import (
	"fmt"
	"time"
)

const (
	// shortLife is the age below which the end of a worker delays the next one.
	shortLife = 10 * time.Second
	// firstBackoff delays a start after a failure. Each further failure doubles it, up to
	// lastBackoff.
	firstBackoff = 50 * time.Millisecond
	lastBackoff  = time.Second
	// maxBackoffs is the maximum number of tenants whose failures are recorded.
	maxBackoffs = 1000
)

// backoff delays the next worker after consecutive failures. A failure is a worker of one tenant
// that ended too soon, or a failed start. The zero value causes no delay.
type backoff struct {
	failures int
	notUntil time.Time
	reason   string // the cause of the last failure
}

// add counts a failure.
func (s *backoff) add(reason string) {
	delay := min(firstBackoff<<min(s.failures, 10), lastBackoff)
	s.failures++
	s.reason, s.notUntil = reason, time.Now().Add(delay)
}

// wait returns how long the next worker must wait.
func (s *backoff) wait() time.Duration {
	if s == nil {
		return 0
	}
	return max(0, time.Until(s.notUntil))
}

// noteEnd records how a tenant's worker ended. The caller holds mu.
func (p *pool) noteEnd(w *worker, reason string) {
	isOld := time.Since(w.begun) >= shortLife
	switch {
	case isOld && w.isTaken:
		delete(p.backoffs, w.tenant)
	case isOld:
	case !w.isTaken:
		p.starts.add(reason)
	default:
		if p.backoffs[w.tenant] == nil {
			p.forgetBackoffs()
			p.backoffs[w.tenant] = &backoff{}
		}
		p.backoffs[w.tenant].add(reason)
	}
}

// forgetBackoffs makes room for another tenant. The caller holds mu.
func (p *pool) forgetBackoffs() {
	for tenant, s := range p.backoffs {
		if len(p.backoffs) < maxBackoffs {
			return
		}
		if s.wait() == 0 || len(p.backoffs) >= 2*maxBackoffs {
			delete(p.backoffs, tenant)
		}
	}
}

// obstacle returns why and how long a tenant's next worker must wait. The reason is empty if
// nothing delays the worker. The caller holds mu.
func (p *pool) obstacle(tenant string) (why string, wait time.Duration) {
	if wait := p.starts.wait(); wait > 0 {
		return fmt.Sprintf("workers cannot start: %s", p.starts.reason), wait
	}
	s := p.backoffs[tenant]
	if wait := s.wait(); wait > 0 {
		return fmt.Sprintf("%d workers of this tenant have ended soon after their start, the last one: %s",
			s.failures, s.reason), wait
	}
	return "", 0
}

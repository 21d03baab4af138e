package gate

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/shares"
)

// bodiesAtOnce bounds the memory for all bodies together, as a number of bodies of maximum size.
const bodiesAtOnce = 16

// share is a request's part of a pool, which holds the memory for bodies or the places for active
// requests. It is safe for concurrent use.
type share struct {
	pool   *shares.Pool
	tenant string

	mu    sync.Mutex
	taken int64
}

// add takes n more from the pool, unless that is too much; a negative n returns some.
func (s *share) add(n int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n < 0 {
		s.pool.Give(s.tenant, -n)
	} else if !s.pool.Take(s.tenant, n) {
		return false
	}

	s.taken += n
	return true
}

// release returns the whole share.
func (s *share) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pool.Give(s.tenant, s.taken)
	s.taken = 0
}

// hold counts additional memory of a request, or refuses it, so that many clients that send large
// bodies slowly cannot fill the memory.
func (s *share) hold(n int64) error {
	if s.add(n) {
		return nil
	}

	all, mine := s.pool.Load(s.tenant)
	return problem.Later(http.StatusServiceUnavailable, "busy", time.Second,
		"the requests under way take %d bytes, %d of them of this tenant: try again", all, mine)
}

// shareKey is the context key of a request's share of the memory for bodies.
type shareKey struct{}

// Hold counts bytes that a request keeps in memory in addition to its body, such as messages of a
// WebSocket, or refuses them. A negative n returns some; the end of the request returns the rest.
func Hold(ctx context.Context, n int) error {
	s, ok := ctx.Value(shareKey{}).(*share)
	if !ok {
		return nil // the request has not passed a gate
	}
	return s.hold(int64(n))
}

package gate

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/serve/problem"
)

// bodiesAtOnce bounds the bodies in memory, in bodies of the largest size.
const bodiesAtOnce = 16

// pool is what all requests under way share: the bytes of their bodies, or their number. One
// tenant may have half of it.
type pool struct {
	most int64

	mu  sync.Mutex
	all int64
	of  map[string]int64 // by tenants
}

func newPool(most int64) *pool { return &pool{most: most, of: map[string]int64{}} }

// share is what one request holds of a pool. It is safe for concurrent use.
type share struct {
	pool   *pool
	tenant string
	taken  int64 // guarded by the pool
}

// add takes n more, unless it is too much; less than nothing gives some back. It returns what all
// requests have, and those of the tenant.
func (s *share) add(n int64) (all, mine int64, ok bool) {
	p := s.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	all, mine = p.all, p.of[s.tenant]
	if n > 0 && (all+n > p.most || mine+n > p.most/2) {
		return all, mine, false
	}

	p.all += n
	s.taken += n
	if p.of[s.tenant] += n; p.of[s.tenant] == 0 {
		delete(p.of, s.tenant)
	}
	return all, mine, true
}

// release gives all of it back.
func (s *share) release() {
	p := s.pool
	p.mu.Lock()
	n := s.taken
	p.mu.Unlock()

	s.add(-n)
}

// hold counts further bytes of a body, or refuses them: many clients who send large ones slowly
// must not fill the memory.
func (s *share) hold(n int64) error {
	all, mine, ok := s.add(n)
	if ok {
		return nil
	}

	return problem.Later(http.StatusServiceUnavailable, "busy", time.Second,
		"the requests under way have bodies of %d bytes, %d of them of this tenant: try again", all, mine)
}

// shareKey is where a context has the share of its request in the memory for bodies.
type shareKey struct{}

// Hold counts bytes that a request keeps in memory besides its body, such as messages of a
// WebSocket, or refuses them. Less than nothing gives some back, and so does the end of the
// request.
func Hold(ctx context.Context, n int) error {
	s, ok := ctx.Value(shareKey{}).(*share)
	if !ok {
		return nil // no request has passed a gate
	}
	return s.hold(int64(n))
}

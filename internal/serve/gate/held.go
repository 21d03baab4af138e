package gate

import (
	"net/http"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/serve/problem"
)

// bodiesAtOnce bounds the bodies in memory, in bodies of the largest size. One tenant may have
// half of them.
const bodiesAtOnce = 16

// bodies counts the bytes of the bodies of all requests under way: many clients who send large
// ones slowly must not fill the memory.
type bodies struct {
	most int64

	mu  sync.Mutex
	all int64
	of  map[string]int64 // by tenants
}

func newBodies(most int64) *bodies { return &bodies{most: most, of: map[string]int64{}} }

// share is what one request holds of them. One goroutine uses it.
type share struct {
	of     *bodies
	tenant string
	bytes  int64
}

// add counts further bytes, or refuses them.
func (s *share) add(n int64) error {
	b := s.of
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all+n > b.most || b.of[s.tenant]+n > b.most/2 {
		return problem.Later(http.StatusServiceUnavailable, "busy", time.Second,
			"the requests under way have bodies of %d bytes, %d of them of this tenant: try again",
			b.all, b.of[s.tenant])
	}

	b.all += n
	b.of[s.tenant] += n
	s.bytes += n
	return nil
}

// release gives all of it back.
func (s *share) release() {
	b := s.of
	b.mu.Lock()
	defer b.mu.Unlock()
	b.all -= s.bytes
	if b.of[s.tenant] -= s.bytes; b.of[s.tenant] == 0 {
		delete(b.of, s.tenant)
	}
	s.bytes = 0
}

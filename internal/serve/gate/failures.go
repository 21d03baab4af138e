package gate

import (
	"net/http"
	"sync"

	"golang.org/x/time/rate"
)

// failuresNoted bounds the lines per second that the failed requests of a key add to the audit log,
// and those of all clients without a key.
const failuresNoted = 10

// failures bounds the lines for failed requests. Each key has its own bound, and the clients without
// a key have one together: so strangers do not hide what a key does.
type failures struct {
	mu sync.Mutex
	of map[string]*failed // by IDs of keys, of which there are as many as somebody has made
}

type failed struct {
	lines  *rate.Limiter
	missed int64
}

// note reports whether the audit log gets a line for a request, and how many it did not get before.
func (f *failures) note(key string, status int) (missed int64, isNoted bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := f.of[key]
	if known == nil {
		if f.of == nil {
			f.of = map[string]*failed{}
		}
		known = &failed{lines: rate.NewLimiter(failuresNoted, 10*failuresNoted)}
		f.of[key] = known
	}

	if (key == "" || status >= http.StatusBadRequest) && !known.lines.Allow() {
		known.missed++
		return 0, false
	}
	missed, known.missed = known.missed, 0
	return missed, true
}

// isRefused reports whether a status says that the caller may not do this, or not now.
func isRefused(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return true
	}
	return false
}

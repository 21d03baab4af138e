package wasm

import (
	"crypto/rand"
	"io"
	mathrand "math/rand/v2"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// course is the part of a snippet's execution that its code does not determine: randomness and
// time. The zero value uses the system's. A job may specify others.
type course struct {
	random io.Reader     // nil for the system's randomness
	began  time.Time     // the next reading of the wall clock; zero for the real time
	ahead  time.Duration // the wall clock's lead over the real time
}

// newCourse returns the course that a job specifies.
func newCourse(job tiers.Job) course {
	c := course{began: job.Began}
	if len(job.Seed) > 0 {
		var seed [32]byte
		copy(seed[:], job.Seed)
		c.random = mathrand.NewChaCha8(seed)
	}
	return c
}

// Read returns random bytes.
func (c *course) Read(p []byte) (int, error) {
	if c.random == nil {
		return rand.Read(p)
	}
	return c.random.Read(p)
}

// wall returns the time of the wall clock. It advances from the first reading.
func (c *course) wall() time.Time {
	now := time.Now()
	if !c.began.IsZero() {
		c.ahead, c.began = c.began.Sub(now), time.Time{}
	}
	return now.Add(c.ahead)
}

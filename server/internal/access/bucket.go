package access

import "time"

// bucket limits events to a rate, and a burst to its size.
type bucket struct {
	perSecond, size float64
	left            float64 // events that were still allowed at the time last
	last            time.Time
}

func newBucket(perSecond, size float64) *bucket { return &bucket{perSecond: perSecond, size: size} }

// take admits an event and returns 0, or refuses it and returns how long to wait.
func (b *bucket) take(now time.Time) (wait time.Duration) {
	if since := now.Sub(b.last); since > 0 {
		b.left, b.last = min(b.size, b.left+since.Seconds()*b.perSecond), now
	}
	if b.left >= 1 {
		b.left--
		return 0
	}
	return max(time.Duration((1-b.left)/b.perSecond*float64(time.Second)), 1)
}

//go:build linux && (amd64 || arm64)

package workers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/slots"
	"github.com/rlmhq/rlm/internal/text/quantity"
)

// The memory of the workers has two bounds. Each worker has a limit, which is the memory that its
// sessions may use together, so that no session below its limit ends the others; it grows with the
// sessions. In addition, a snippet begins only if all workers together have room for the memory
// that it may still use; idle sessions, whose limits are irrelevant, leave to make room. A save of
// a session needs memory for a copy of its pages, which counts as well.

const (
	// baseMemory is the memory that a worker needs in addition to its sessions, in bytes.
	baseMemory = 128 << 20
	// A worker may hold garbage of up to 1/garbageShare of all workers' memory, and at most
	// maxGarbage bytes.
	maxGarbage   = 64 << 20
	garbageShare = 128
	// leastMemory is the minimum with which a session can work.
	leastMemory = 40 << 20
	// spareMemory is the memory that a snippet needs in addition to that of its interpreter.
	spareMemory = 16 << 20
	// memoryStep rounds the limits of workers, so that they rarely change.
	memoryStep = 256 << 20
	// measureEvery is how long a measurement of the workers' memory stays valid.
	measureEvery = 100 * time.Millisecond
)

// needOf returns the maximum memory that a session needs in its worker, in bytes: for its
// interpreter, a checkpoint of it, and the pages that a save copies.
func needOf(limit int64) int64 { return 2*limit + min(limit, maxPages) }

// garbageOf returns the maximum garbage of a worker, in bytes, if all workers together have most
// bytes of memory.
func garbageOf(most int64) uint64 {
	return uint64(min(most/garbageShare, maxGarbage)) //nolint:gosec // above 0
}

// mostLimit is the inverse of needOf.
func mostLimit(need int64) int64 {
	if limit := (need - maxPages) / 2; limit >= maxPages {
		return limit
	}
	return need / 3
}

// ledger accounts for the memory of all workers. pool.mu guards it.
type ledger struct {
	most     int64            // the maximum of all workers
	share    int64            // the maximum of one tenant's workers
	measured time.Time        // when used was measured
	used     map[string]int64 // by tenant
	total    int64            // the sum of used
	lent     map[string]int64 // to running snippets, by tenant
	lentAll  int64
}

func newLedger(most int64) ledger {
	return ledger{most: most, share: most - most/4, used: map[string]int64{}, lent: map[string]int64{}}
}

// room returns the memory that a snippet of a tenant may still use.
func (l *ledger) room(tenant string) int64 {
	return min(l.most-l.total-l.lentAll, l.share-l.used[tenant]-l.lent[tenant])
}

func (l *ledger) lend(tenant string, bytes int64) {
	l.lentAll += bytes
	if l.lent[tenant] += bytes; l.lent[tenant] == 0 {
		delete(l.lent, tenant)
	}
}

// growth returns the number of bytes by which a snippet of the session may make its worker grow.
// The caller holds using.
func (s *sandbox) growth() int64 {
	held := min(s.held, s.limits.Memory)
	return s.limits.Memory - held + max(0, held-s.checkpointed) + spareMemory
}

// lend waits until there is memory for a snippet of the session, and lends it need bytes. The
// caller holds using.
func (p *pool) lend(ctx context.Context, s *sandbox, need int64) error {
	for begun := time.Now(); ; {
		p.measure(measureEvery)
		p.mu.Lock()
		room, changed := p.memory.room(s.tenant), p.changed
		if need <= room {
			p.memory.lend(s.tenant, need)
			p.mu.Unlock()
			return nil
		}
		leave := p.findLargest(func(w *worker) bool {
			return !p.memory.isShareUsed(s.tenant, need) || w.isTaken && w.tenant == s.tenant
		})
		if leave != nil && leave.memory.Load() < s.held/2 {
			leave = nil // one large session does not justify moving many small ones
		}
		p.mu.Unlock()

		switch {
		case leave != nil && leave.evict(context.WithoutCancel(ctx)):
			p.measure(0)
			continue
		case time.Since(begun) > p.patience:
			return p.explainRoom(s, need)
		}
		if err := sleep(ctx, changed, 0); err != nil {
			return err
		}
	}
}

// giveBack reclaims bytes that were lent to a tenant, and counts more bytes as used by its sessions
// until the next measurement.
func (p *pool) giveBack(tenant string, bytes, more int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.memory.lend(tenant, -bytes)
	if more > 0 && p.memory.used[tenant] > 0 {
		p.memory.used[tenant] += more
		p.memory.total += more
	}
}

// relend changes the memory that is lent to a tenant by a number of bytes, without waiting.
func (p *pool) relend(tenant string, bytes int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.memory.lend(tenant, bytes)
}

// tightWait bounds how long a save, such as that of an eviction, waits for another save.
const tightWait = 5 * time.Second

// errTight reports that a save got no memory, and that waiting for other saves took too long.
var errTight = errors.New("another session is being saved, and there is no memory for two")

// lendForSave lends a save the memory for its copy of the pages, until giveBack is called. Saves
// for which there is no room proceed one at a time: see limitMemory. The caller holds using.
func (p *pool) lendForSave(ctx context.Context, s *sandbox) (giveBack func(), err error) {
	need := min(s.held, maxPages)
	p.measure(measureEvery)
	if p.lendIfRoom(s.tenant, need) {
		return func() { p.relend(s.tenant, -need) }, nil
	}

	select {
	case p.tight <- struct{}{}:
	case <-time.After(tightWait):
		return nil, errTight
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	p.relend(s.tenant, need)
	return func() {
		p.relend(s.tenant, -need)
		<-p.tight
	}, nil
}

// lendIfRoom lends memory to a tenant, and reports whether there was room.
func (p *pool) lendIfRoom(tenant string, bytes int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if bytes > p.memory.room(tenant) {
		return false
	}
	p.memory.lend(tenant, bytes)
	return true
}

// isShareUsed reports whether need bytes exceed the rest of a tenant's share.
func (l *ledger) isShareUsed(tenant string, need int64) bool {
	return need > l.share-l.used[tenant]-l.lent[tenant]
}

// explainRoom returns the error for a snippet without enough memory.
func (p *pool) explainRoom(s *sandbox, need int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := &p.memory
	size := quantity.IBytes[int64]

	if l.isShareUsed(s.tenant, need) {
		return fmt.Errorf("%w: the snippet may take %s, and sessions of this tenant hold %s of the %s that a tenant "+
			"may have: delete some, or some of their variables", slots.ErrBusy, size(need),
			size(l.used[s.tenant]+l.lent[s.tenant]), size(l.share))
	}
	return fmt.Errorf("%w: the snippet may take %s, and sessions hold %s of the %s that all workers may have",
		slots.ErrBusy, size(need), size(l.total+l.lentAll), size(l.most))
}

// measure reads the memory use of the workers, unless it was just measured.
func (p *pool) measure(every time.Duration) {
	p.mu.Lock()
	if time.Since(p.memory.measured) < every {
		p.mu.Unlock()
		return
	}
	p.memory.measured = time.Now()
	owners := map[*worker]string{}
	for w := range p.workers {
		owners[w] = w.tenant
	}
	p.mu.Unlock()

	used, total := map[string]int64{}, int64(0)
	for w, tenant := range owners {
		bytes := w.jail.Memory()
		w.memory.Store(bytes)
		used[tenant] += bytes
		total += bytes
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	p.memory.used, p.memory.total = used, total
}

// watchMemory supervises the memory of the workers until the pool is closed. If snippets have
// outgrown the memory that they were lent, resting sessions leave. If that is not enough, the
// worker with the most memory ends, because otherwise the kernel would choose a process.
func (p *pool) watchMemory() {
	ticker := time.NewTicker(2 * measureEvery)
	defer ticker.Stop()
	for {
		select {
		case <-p.life.Done():
			return
		case <-ticker.C:
		}
		p.measure(measureEvery)
		p.mu.Lock()
		isOver := p.memory.total > p.memory.most
		var leave *sandbox
		var largest *worker
		if isOver {
			leave = p.findLargest(func(*worker) bool { return true })
			for w := range p.workers {
				if largest == nil || w.memory.Load() > largest.memory.Load() {
					largest = w
				}
			}
		}
		p.mu.Unlock()

		switch {
		case !isOver:
		case leave != nil && leave.evict(p.life):
			p.measure(0)
		case largest != nil:
			largest.end(CauseMemory, fmt.Sprintf("all workers together use more than %s, and it used most",
				quantity.IBytes(p.memory.most)))
		}
	}
}

// limitMemory raises a worker's limit to the memory that its sessions may use, up to the limit of
// all workers. This may exceed the share of a tenant, because saving a session briefly takes more
// memory.
func (w *worker) limitMemory(ctx context.Context) error {
	w.resizing.Lock()
	defer w.resizing.Unlock()
	w.pool.mu.Lock()
	need := int64(baseMemory)
	for _, s := range w.boxes {
		need += needOf(s.limits.Memory)
	}
	need = min((need+memoryStep-1)/memoryStep*memoryStep, w.pool.memory.most)
	w.pool.mu.Unlock()
	if need <= w.limit.Load() {
		return nil
	}

	if err := w.jail.SetMemory(context.WithoutCancel(ctx), need); err != nil { // it is dead
		w.pool.options.Log.Debug("cannot give a worker more memory", "error", err)
		w.lose(nil)
		<-w.gone
		return errGone
	}
	w.limit.Store(need)
	return nil
}

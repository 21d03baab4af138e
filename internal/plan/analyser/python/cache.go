package python

import (
	"container/list"
	"crypto/sha256"
	"sync"

	"github.com/rlmhq/rlm/router"
)

// cache keeps the most recently used verdicts.
type cache struct {
	most int // bytes

	mu    sync.Mutex // guards the fields below
	items map[[sha256.Size]byte]*list.Element
	order *list.List // entries, the most recently used first
	held  int        // bytes
}

type entry struct {
	key     [sha256.Size]byte
	verdict router.Verdict
	cost    int // bytes
}

// costOf returns an upper bound of a verdict's memory, in bytes, if its JSON has size bytes. A need
// takes about 40 bytes of JSON, and twice that in memory, in addition to its strings.
func costOf(size int) int { return 1024 + 4*size }

func newCache(most int) *cache {
	return &cache{most: most, items: make(map[[sha256.Size]byte]*list.Element), order: list.New()}
}

func (c *cache) get(key [sha256.Size]byte) (router.Verdict, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	item := c.items[key]
	if item == nil {
		return router.Verdict{}, false
	}
	c.order.MoveToFront(item)
	return item.Value.(*entry).verdict, true
}

func (c *cache) put(key [sha256.Size]byte, v router.Verdict, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.items[key] != nil {
		return
	}

	c.items[key] = c.order.PushFront(&entry{key, v, costOf(size)})
	c.held += costOf(size)
	for c.held > c.most {
		oldest := c.order.Remove(c.order.Back()).(*entry)
		delete(c.items, oldest.key)
		c.held -= oldest.cost
	}
}

package python

import (
	"container/list"
	"crypto/sha256"
	"sync"

	"github.com/rlmhq/rlm/router"
)

// cache keeps the verdicts that were asked for last.
type cache struct {
	size int

	mu    sync.Mutex // guards what follows
	items map[[sha256.Size]byte]*list.Element
	order *list.List // of entries, the last used first
}

type entry struct {
	key     [sha256.Size]byte
	verdict router.Verdict
}

func newCache(size int) *cache {
	return &cache{size: size, items: make(map[[sha256.Size]byte]*list.Element), order: list.New()}
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

func (c *cache) put(key [sha256.Size]byte, v router.Verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.items[key] != nil {
		return
	}

	c.items[key] = c.order.PushFront(&entry{key, v})
	if c.order.Len() > c.size {
		oldest := c.order.Remove(c.order.Back()).(*entry)
		delete(c.items, oldest.key)
	}
}

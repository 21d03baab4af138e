package schema

import (
	"container/list"
	"encoding/json"
	"sync"
)

const (
	// maxCached bounds the contracts that Parse keeps.
	maxCached = 256
	// maxCacheBytes bounds the total size of the cached contracts' documents, in bytes. The
	// compiled contracts are several times larger.
	maxCacheBytes = 1 << 20
)

// recent holds the contracts that Parse keeps.
var recent = newCache(maxCached)

// cache keeps the most recently used contracts. It is safe for concurrent use. It does not keep
// errors.
type cache struct {
	mu     sync.Mutex
	limit  int // contracts
	bytes  int // size of their documents
	byText map[string]*list.Element
	used   *list.List // elements of cached, the most recent first
}

// cached is one contract and its source.
type cached struct {
	text     string
	contract *Contract
}

// newCache returns a cache of at most limit contracts.
func newCache(limit int) *cache {
	return &cache{limit: limit, byText: map[string]*list.Element{}, used: list.New()}
}

// parse returns the contract of a schema, from the cache if possible.
func (c *cache) parse(raw json.RawMessage) (*Contract, error) {
	if contract := c.find(raw); contract != nil {
		return contract, nil
	}
	contract, err := parse(raw)
	if err != nil {
		return nil, err
	}

	c.add(string(raw), contract)
	return contract, nil
}

// find returns the contract of a schema, or nil if it is not cached.
func (c *cache) find(raw json.RawMessage) *Contract {
	c.mu.Lock()
	defer c.mu.Unlock()

	element := c.byText[string(raw)]
	if element == nil {
		return nil
	}
	c.used.MoveToFront(element)
	return entryOf(element).contract
}

// add adds a contract, and removes the least recently used ones beyond the limits.
func (c *cache) add(text string, contract *Contract) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if len(text) > maxCacheBytes/4 || c.byText[text] != nil {
		return
	}
	c.byText[text] = c.used.PushFront(cached{text, contract})
	c.bytes += len(text)

	for len(c.byText) > c.limit || c.bytes > maxCacheBytes {
		last := c.used.Back()
		old := entryOf(last)
		c.used.Remove(last)
		delete(c.byText, old.text)
		c.bytes -= len(old.text)
	}
}

// entryOf returns the contents of an element of the list.
func entryOf(element *list.Element) cached {
	return element.Value.(cached) // the list holds nothing else
}

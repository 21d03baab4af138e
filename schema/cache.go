package schema

import (
	"container/list"
	"encoding/json"
	"sync"
)

// Cache keeps contracts that were parsed lately. It is safe for concurrent use.
// What cannot be parsed is not kept.
type Cache struct {
	mu     sync.Mutex
	most   int // contracts
	bytes  int // of their documents
	byText map[string]*list.Element
	used   *list.List // of cached, the latest first
}

type cached struct {
	text     string
	contract *Contract
}

const (
	// maxCacheBytes bounds the documents of a cache together; what is compiled
	// from them is larger by a factor.
	maxCacheBytes = 1 << 20
	defaultCache  = 256
)

var recent = NewCache(0)

// NewCache returns a cache of at most so many contracts; 0 means 256.
func NewCache(most int) *Cache {
	if most <= 0 {
		most = defaultCache
	}
	return &Cache{most: most, byText: map[string]*list.Element{}, used: list.New()}
}

// Parse is the function [Parse], by way of this cache.
func (c *Cache) Parse(raw json.RawMessage) (*Contract, error) {
	if contract := c.lookup(raw); contract != nil {
		return contract, nil
	}
	contract, err := parse(raw)
	if err != nil {
		return nil, err
	}
	c.keep(string(raw), contract)
	return contract, nil
}

// Len returns how many contracts the cache holds.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.byText)
}

func (c *Cache) lookup(raw json.RawMessage) *Contract {
	c.mu.Lock()
	defer c.mu.Unlock()
	element := c.byText[string(raw)]
	if element == nil {
		return nil
	}
	c.used.MoveToFront(element)
	return entry(element).contract
}

func entry(element *list.Element) cached {
	return element.Value.(cached) // the list holds nothing else
}

func (c *Cache) keep(text string, contract *Contract) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(text) > maxCacheBytes/4 || c.byText[text] != nil {
		return
	}
	c.byText[text] = c.used.PushFront(cached{text, contract})
	c.bytes += len(text)
	for len(c.byText) > c.most || c.bytes > maxCacheBytes {
		last := c.used.Back()
		old := entry(last)
		c.used.Remove(last)
		delete(c.byText, old.text)
		c.bytes -= len(old.text)
	}
}

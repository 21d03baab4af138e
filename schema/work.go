package schema

import (
	"errors"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// maxWork bounds how often schemas are applied to one value. One application takes some hundred
// nanoseconds. allWork bounds the work of one check, or of all values in a reply.
const (
	maxWork = 2_000_000
	allWork = 3 * maxWork
)

var errWork = errors.New("the schema applies its rules to this value too often: " +
	"make the value smaller, or the schema simpler (fewer recursive alternatives)")

// sumWork computes the totals: each schema's weight and that of all below it. A schema
// that leads back to itself has no such bound. The schemas in under are being computed.
func (c *Contract) sumWork(s *jsonschema.Schema, under map[*jsonschema.Schema]bool) int {
	f := c.facts[s]
	if f.total > 0 {
		return f.total
	}
	if under[s] {
		return maxWork
	}

	under[s] = true
	total := f.weight + f.more.sum()
	for _, subs := range [][]*jsonschema.Schema{f.here, f.below} {
		for _, sub := range subs {
			total = min(maxWork, total+c.sumWork(sub, under))
		}
	}
	delete(under, s)

	f.total = total
	return total
}

// boundWork returns an upper bound of how often schemas are applied if s is applied to
// n, at most maxWork.
func (c *Contract) boundWork(s *jsonschema.Schema, n *node) int {
	if bound := c.facts[s].total * n.size * (1 + n.height/workDepth); bound < maxWork/16 {
		return bound
	}
	m := workMeter{c, map[visit]int{}}
	return m.measure(s, n, 0)
}

// workMeter computes the work of a check before it is done. The library cannot be
// stopped, and recurring alternatives cost it time exponential in the depth of the value.
// The meter remembers what it has seen, so it takes time proportional to schemas times
// values.
type workMeter struct {
	c    *Contract
	seen map[visit]int
}

// visit is the application of a schema to a value.
type visit struct {
	s *jsonschema.Schema
	n *node
}

const (
	// minRemembered is the work below which computing a bound is cheaper than
	// remembering it.
	minRemembered = 64
	// maxVisits bounds what the meter remembers.
	maxVisits = maxWork / 4
)

// measure returns the work of applying s to n, at a depth of the value.
func (m *workMeter) measure(s *jsonschema.Schema, n *node, depth int) int {
	f := m.c.facts[s]
	if bound := f.total * n.size * (1 + (depth+n.height)/workDepth); bound < minRemembered {
		return bound
	}
	at := visit{s, n}
	if known, ok := m.seen[at]; ok {
		return known
	}
	if len(m.seen) > maxVisits {
		return maxWork
	}

	m.seen[at] = maxWork // for a loop that leads back here
	work := m.measureParts(s, f, n, depth)
	m.seen[at] = work
	return work
}

// measureParts adds up the work of a schema and of those that it applies.
func (m *workMeter) measureParts(s *jsonschema.Schema, f *facts, n *node, depth int) int {
	work := f.workOn(n) + depth/workDepth
	if work >= maxWork { // before the patterns run over the keys
		return maxWork
	}

	for _, sub := range f.here {
		work = min(maxWork, work+m.measure(sub, n, depth))
	}
	if s.PropertyNames != nil {
		for _, key := range n.keys {
			work = min(maxWork, work+m.measure(s.PropertyNames, newText(key), 0))
		}
	}
	for i, kid := range n.kids {
		for _, sub := range m.c.partSchemas(s, f, n, i) {
			work = min(maxWork, work+m.measure(sub, kid, depth+1))
		}
		if work >= maxWork {
			break
		}
	}
	return work
}

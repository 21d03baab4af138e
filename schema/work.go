package schema

import "errors"

// maxWork bounds how often schemas are applied to one value. One application takes a few hundred
// nanoseconds. allWork bounds the work of one check, or of all values in a reply.
const (
	maxWork = 2_000_000
	allWork = 3 * maxWork
)

var errWork = errors.New("the schema applies its rules to this value too often: " +
	"make the value smaller, or the schema simpler (fewer recursive alternatives)")

// sumWork computes the total of a schema: its weight plus the weights of all schemas below it. A
// schema that leads back to itself has no such bound. The totals of the schemas in under are being
// computed.
func (s *subschema) sumWork(under map[*subschema]bool) int {
	if s.total > 0 {
		return s.total
	}
	if under[s] {
		return maxWork
	}

	under[s] = true
	total := s.weight + s.more.sum()
	for _, subs := range [][]*subschema{s.here, s.below} {
		for _, sub := range subs {
			total = min(maxWork, total+sub.sumWork(under))
		}
	}
	delete(under, s)

	s.total = total
	return total
}

// boundWork returns an upper bound on how often schemas are applied if s is applied to n, at
// most maxWork.
func (s *subschema) boundWork(n *node) int {
	if bound := s.total * n.size * (1 + n.height/workDepth); bound < maxWork/16 {
		return bound
	}
	m := workMeter{map[visit]int{}}
	return m.measure(s, n, 0)
}

// workMeter computes the work of a check before the check begins. A check is never interrupted, and
// recurring alternatives take time exponential in the depth of the value. The meter caches its
// results, so its time is proportional to schemas times values.
type workMeter struct {
	seen map[visit]int
}

// visit is the application of a schema to a value.
type visit struct {
	s *subschema
	n *node
}

const (
	// minRemembered is the work below which computing a bound is cheaper than caching it.
	minRemembered = 64
	// maxVisits bounds the number of results that the meter caches.
	maxVisits = maxWork / 4
)

// measure returns the work of applying s to n, which is at the given depth of the value.
func (m *workMeter) measure(s *subschema, n *node, depth int) int {
	if bound := s.total * n.size * (1 + (depth+n.height)/workDepth); bound < minRemembered {
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
	work := m.measureParts(s, n, depth)
	m.seen[at] = work
	return work
}

// measureParts adds up the work of a schema and of the schemas that it applies.
func (m *workMeter) measureParts(s *subschema, n *node, depth int) int {
	work := s.workOn(n) + depth/workDepth
	if work >= maxWork { // before the patterns run over the keys
		return maxWork
	}

	for _, sub := range s.here {
		work = min(maxWork, work+m.measure(sub, n, depth))
	}
	if s.propertyNames != nil {
		for _, key := range n.keys {
			work = min(maxWork, work+m.measure(s.propertyNames, newText(key), 0))
		}
	}
	for i, kid := range n.kids {
		for _, sub := range s.partSchemas(n, i) {
			work = min(maxWork, work+m.measure(sub, kid, depth+1))
		}
		if work >= maxWork {
			break
		}
	}
	return work
}

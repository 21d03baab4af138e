package graph

import (
	"fmt"
	"hash/maphash"
	"reflect"

	"github.com/rlmhq/rlm/graph/internal/format"
)

// maxGiven is the maximum number of properties that are stored for comparison, because each takes
// memory of the host. Later properties are compared only with these.
const maxGiven = 2_000_000

// givenValues finds properties that files give to the same node with different values.
type givenValues struct {
	seed      maphash.Seed
	values    map[uint64]uint64 // hash of node and key -> hash of the value
	conflicts int
	examples  []string // the first conflicts
}

// compare compares the properties of a record.
func (g *givenValues) compare(n format.Node) {
	if g.values == nil {
		g.seed, g.values = maphash.MakeSeed(), map[uint64]uint64{}
	}
	for key, value := range n.Properties {
		place := maphash.Comparable(g.seed, [2]string{n.ID, key})
		sum := g.sum(value)

		old, known := g.values[place]
		if known || len(g.values) < maxGiven {
			g.values[place] = sum
		}
		if !known || old == sum {
			continue
		}
		const most = 3
		if g.conflicts++; len(g.examples) < most {
			g.examples = append(g.examples, fmt.Sprintf("%.40q of %.80q", key, n.ID))
		}
	}
}

func (g *givenValues) sum(value any) uint64 {
	if value == nil || reflect.TypeOf(value).Comparable() {
		return maphash.Comparable(g.seed, value)
	}
	return maphash.String(g.seed, fmt.Sprintf("%#v", value)) // fmt sorts the keys of maps
}

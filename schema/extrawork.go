package schema

import (
	"encoding/json"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Some work of the library, in applications of a schema.
const (
	numberWork   = 3  // to read a number, as it does again for each rule
	multipleWork = 12 // to divide it, too
	compareWork  = 5  // to compare two numbers
	callWork     = 4  // to call it for a value alone
	formatWork   = 2  // to check the format of 64 bytes
	// workDepth is the depth of a value at which the error of an application takes as much memory
	// again: it has the path.
	workDepth = 8
	// maxPairs is the length of an array up to which the library compares each pair of its items.
	maxPairs = 20
)

// extraWork is the work of a schema alone that depends on the kind of the value.
type extraWork struct {
	numbers int  // for a number, and for each 64 digits
	members int  // for the members of an enum
	nested  int  // for an array and an object
	unique  bool // the items of an array must differ
}

func newExtraWork(s *jsonschema.Schema) extraWork {
	var w extraWork
	if s.Types != nil {
		for _, name := range s.Types.ToStrings() {
			if name == "integer" {
				w.numbers += numberWork
			}
		}
	}
	if s.Minimum != nil || s.Maximum != nil || s.ExclusiveMinimum != nil || s.ExclusiveMaximum != nil {
		w.numbers += numberWork
	}
	if s.MultipleOf != nil {
		w.numbers += multipleWork
	}

	if s.Const != nil {
		w.addMember(*s.Const)
	}
	if s.Enum != nil {
		for _, value := range s.Enum.Values {
			w.addMember(value)
		}
		w.members = len(s.Enum.Values) / 3
	}
	w.unique = s.UniqueItems
	return w
}

// addMember adds the work of comparing a value with a const or a member of an enum.
func (w *extraWork) addMember(value any) {
	switch value.(type) {
	case []any, map[string]any:
		w.nested += workToCompare(value)
	case json.Number:
		w.numbers += workToCompare(value)
	}
}

// workToCompare returns the work of comparing a value of the schema with another one.
func workToCompare(value any) int {
	work := 1
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			work += workToCompare(item)
		}
	case map[string]any:
		for _, member := range v {
			work += workToCompare(member)
		}
	case json.Number:
		work = compareWork * sizeOfNumber(v.String())
	}
	return work
}

// sum returns an upper bound, for each part of the value's size.
func (w extraWork) sum() int {
	sum := w.numbers + w.members + w.nested
	if w.unique {
		sum += compareWork * maxPairs / 2
	}
	return sum
}

// workOn returns the work of applying a schema alone to a value.
func (f *facts) workOn(n *node) int {
	work := f.weight*n.own + f.more.members + len(n.kids)/4
	switch n.kind {
	case numberKind:
		return work + f.more.numbers*n.own
	case arrayKind, objectKind:
		work += f.more.nested
	default:
	}

	if f.more.unique && n.kind == arrayKind {
		each := numberWork // for the hash
		if len(n.kids) <= maxPairs {
			each = compareWork * len(n.kids) / 2
		}
		work += each * n.size
	}
	return work
}

// countNames returns how many names of members a schema looks for in each object.
func countNames(s *jsonschema.Schema) int {
	names := len(s.Required)
	for _, list := range s.DependentRequired {
		names += len(list)
	}
	for _, value := range s.Dependencies { // draft-07
		if list, isList := value.([]string); isList {
			names += len(list)
		}
	}
	return names
}

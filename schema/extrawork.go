package schema

// The work of some operations, measured in applications of a schema.
const (
	numberWork   = 3  // to read a number
	multipleWork = 12 // to also divide it
	compareWork  = 5  // to compare two numbers
	callWork     = 4  // to check a value separately
	formatWork   = 2  // to check the format of 64 bytes
	// workDepth is the depth of a value at which the error of an application takes twice the
	// memory, because the error contains the path.
	workDepth = 8
	// maxPairs is the length of an array up to which all pairs of its items are compared.
	maxPairs = 20
)

// extraWork is the part of a schema's own work that depends on the kind of the value.
type extraWork struct {
	numbers int  // for a number, and for each 64 digits
	members int  // for the members of an enum
	nested  int  // for an array and an object
	unique  bool // the items of an array must differ
}

func newExtraWork(s *subschema) extraWork {
	var w extraWork
	if s.types.has(wantsInteger) {
		w.numbers += numberWork
	}
	if s.minimum != nil || s.maximum != nil || s.exclusiveMinimum != nil || s.exclusiveMaximum != nil {
		w.numbers += numberWork
	}
	if s.multipleOf != nil {
		w.numbers += multipleWork
	}

	if s.constant != nil {
		w.addMember(s.constant)
	}
	for _, value := range s.enum {
		w.addMember(value)
	}
	w.members = len(s.enum) / 3
	w.unique = s.uniqueItems
	return w
}

// addMember adds the work of comparing a value with a const or a member of an enum.
func (w *extraWork) addMember(n *node) {
	switch n.kind {
	case arrayKind, objectKind:
		w.nested += n.workToCompare()
	case numberKind:
		w.numbers += n.workToCompare()
	default:
	}
}

// workToCompare returns the work of comparing a value of the schema with another one.
func (n *node) workToCompare() int {
	if n.kind == numberKind {
		return compareWork * n.own
	}
	work := 1
	for _, kid := range n.kids {
		work += kid.workToCompare()
	}
	return work
}

// sum returns an upper bound of the extra work per unit of the value's size.
func (w extraWork) sum() int {
	sum := w.numbers + w.members + w.nested
	if w.unique {
		sum += compareWork * maxPairs / 2
	}
	return sum
}

// workOn returns the work of applying a schema, without its subschemas, to a value.
func (s *subschema) workOn(n *node) int {
	work := s.weight*n.own + s.more.members + len(n.kids)/4
	switch n.kind {
	case numberKind:
		return work + s.more.numbers*n.own
	case arrayKind, objectKind:
		work += s.more.nested
	default:
	}

	if s.more.unique && n.kind == arrayKind {
		each := numberWork // for the hash
		if len(n.kids) <= maxPairs {
			each = compareWork * len(n.kids) / 2
		}
		work += each * n.size
	}
	return work
}

// countNames returns the number of member names that a schema looks up in each object.
func (s *subschema) countNames() int {
	names := len(s.required)
	for _, d := range s.dependents {
		names += len(d.needs)
	}
	return names
}

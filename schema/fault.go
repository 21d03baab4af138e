package schema

import "strconv"

// faultKind is the rule that a value violates.
type faultKind uint8

const (
	allCauses faultKind = iota // a group of faults
	noneFits                   // the faults of each alternative are the causes
	twoFit
	falseFault
	typeFault
	constFault
	enumFault
	formatFault
	notFault
	minLengthFault
	maxLengthFault
	patternFault
	minimumFault
	maximumFault
	exclusiveMinimumFault
	exclusiveMaximumFault
	multipleOfFault
	minItemsFault
	maxItemsFault
	uniqueItemsFault
	minContainsFault
	maxContainsFault
	minPropertiesFault
	maxPropertiesFault
	requiredFault
	dependentFault
	additionalFault
	nameFault
)

// fault describes how a value violates a schema. Its message is built only if it is shown, because
// there may be millions of faults.
type fault struct {
	kind   faultKind
	s      *subschema
	n      *node
	path   []string
	names  []string // names of the wrong members
	reason string   // the member that requires them
	pair   [2]int   // two items or alternatives, or a count
	causes []*fault
}

// faults collects the faults found in one application of a schema.
type faults struct {
	v   *validator
	s   *subschema
	n   *node
	all []*fault
}

// isDone reports whether further faults are irrelevant.
func (f *faults) isDone() bool { return f.v.isQuick && len(f.all) > 0 }

// add adds a fault, unless it is nil.
func (f *faults) add(one *fault) {
	if one != nil {
		f.all = append(f.all, one)
	}
}

// fail adds a new fault, for the caller to complete.
func (f *faults) fail(why faultKind) *fault {
	one := f.v.newFault(why, f.s, f.n)
	f.all = append(f.all, one)
	return one
}

// failIf adds a new fault if a condition holds.
func (f *faults) failIf(isWrong bool, why faultKind) {
	if isWrong {
		f.fail(why)
	}
}

// newFault returns a fault of the current value.
func (v *validator) newFault(why faultKind, s *subschema, n *node) *fault {
	if v.isQuick {
		return &fault{}
	}
	path := make([]string, len(v.path))
	for i, step := range v.path {
		if path[i] = step.name; step.isItem {
			path[i] = strconv.Itoa(step.index)
		}
	}
	return &fault{kind: why, s: s, n: n, path: path}
}

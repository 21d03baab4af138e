package worker

// pyKind is the kind of a value in the subset.
type pyKind int

const (
	pyUnknown pyKind = iota // the type of an empty list's elements, until an operation decides
	pyInt
	pyBool
	pyStr
	pyNone
	pyList
	pyRange // iterable once: range, enumerate, generator
	pyPair  // an item of enumerate
)

// pyType is the type of an expression or a variable. Assignments merge types. Two lists that may be
// the same object share a type node, by which the check finds the lists that a loop must not
// change.
type pyType struct {
	kind pyKind
	elem *pyType // element type of lists and iterables
	of   *pyType // for enumerate: the list over which it runs
	same *pyType // the node into which this one was merged
}

func (t *pyType) root() *pyType {
	for t.same != nil {
		t = t.same
	}
	return t
}

func (t *pyType) is(kinds ...pyKind) bool {
	for _, k := range kinds {
		if t.root().kind == k {
			return true
		}
	}
	return false
}

func simple(kind pyKind) *pyType { return &pyType{kind: kind} }

func listOf(elem *pyType) *pyType { return &pyType{kind: pyList, elem: elem} }

func rangeOf(elem *pyType) *pyType { return &pyType{kind: pyRange, elem: elem} }

// merge unifies two types, and reports whether that was possible.
func merge(a, b *pyType) bool {
	a, b = a.root(), b.root()
	switch {
	case a == b:
		return true
	case a.kind == pyUnknown && !b.holds(a):
		a.same = b
		return true
	case b.kind == pyUnknown && !a.holds(b):
		b.same = a
		return true
	case a.kind != b.kind || a.kind == pyRange || a.kind == pyPair:
		return false
	}

	b.same = a
	return a.elem == nil || merge(a.elem, b.elem)
}

// holds reports whether lists of t contain u at any depth. A list that contains itself was not
// proven to behave as in CPython.
func (t *pyType) holds(u *pyType) bool {
	for t = t.root(); t.elem != nil; {
		if t = t.elem.root(); t == u {
			return true
		}
	}
	return false
}

// alike merges the element types of two lists, but not the lists themselves.
func alike(a, b *pyType) bool {
	a, b = a.root(), b.root()
	if a.kind != b.kind {
		return false
	}
	return a.elem == nil || merge(a.elem, b.elem)
}

// copyTypes copies the types of variables, so that a failed check changes nothing.
func copyTypes(vars map[string]*pyType) map[string]*pyType {
	done := map[*pyType]*pyType{}
	var dup func(t *pyType) *pyType
	dup = func(t *pyType) *pyType {
		if t == nil {
			return nil
		}
		t = t.root()
		if c, ok := done[t]; ok {
			return c
		}

		c := &pyType{kind: t.kind}
		done[t] = c
		c.elem = dup(t.elem)
		return c
	}

	own := make(map[string]*pyType, len(vars))
	for name, t := range vars {
		own[name] = dup(t)
	}
	return own
}

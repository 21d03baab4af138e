package worker

// pyKind is what a value of the allowed Python can be.
type pyKind int

const (
	pyUnknown pyKind = iota // of an empty list's elements, until something says
	pyInt
	pyBool
	pyStr
	pyNone
	pyList
	pyRange // iterable once: range, enumerate, generator
	pyPair  // what enumerate gives
)

// pyType is the type of an expression or a variable. Types are merged when a
// value is assigned, and two lists that may be the same object have the same
// type node: that is how the check knows what a loop must not change.
type pyType struct {
	kind pyKind
	elem *pyType // of lists and iterables
	of   *pyType // of enumerate: the list it runs over
	same *pyType // the node that this one was merged into
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

// merge makes two types one, and reports whether they can be.
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

// holds reports whether lists of t hold, at whatever depth, u: a list that holds
// itself is none of the proven values.
func (t *pyType) holds(u *pyType) bool {
	for t = t.root(); t.elem != nil; {
		if t = t.elem.root(); t == u {
			return true
		}
	}
	return false
}

// alike merges what two lists hold without making them the same list.
func alike(a, b *pyType) bool {
	a, b = a.root(), b.root()
	if a.kind != b.kind {
		return false
	}
	return a.elem == nil || merge(a.elem, b.elem)
}

// copyTypes copies variables, so that a check can fail without a trace.
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

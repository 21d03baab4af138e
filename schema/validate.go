package schema

import "unicode/utf8"

// validator applies schemas to one value and its parts.
type validator struct {
	path []step // path to the current value
	// isQuick stops at the first fault without explaining it.
	isQuick bool
}

// step is the name of a member, or the index of an item.
type step struct {
	name   string
	index  int
	isItem bool
}

// coverage marks the parts of a value that a rule has examined. A nil coverage marks nothing; it is
// for a value whose unevaluated parts are irrelevant.
type coverage []bool

func (c coverage) add(i int) {
	if c != nil {
		c[i] = true
	}
}

// fork returns an empty coverage of the same value, for another schema.
func (c coverage) fork() coverage {
	if c == nil {
		return nil
	}
	return make(coverage, len(c))
}

func (c coverage) merge(other coverage) {
	for i, isCovered := range other {
		c[i] = c[i] || isCovered
	}
}

// apply returns the fault of a value, or nil if the value meets the schema.
func (v *validator) apply(s *subschema, n *node, seen coverage) *fault {
	if s.always != nil {
		if *s.always {
			return nil
		}
		return v.newFault(falseFault, s, n)
	}
	if f := v.checkWhole(s, n); f != nil {
		return f
	}

	if seen == nil && (s.unevaluatedItems != nil || s.unevaluatedProperties != nil) && len(n.kids) > 0 {
		seen = make(coverage, len(n.kids))
	}
	f := &faults{v: v, s: s, n: n}
	f.checkRefs(seen)
	if !f.isDone() {
		f.checkKind(seen)
	}
	if !f.isDone() {
		f.checkCombined(seen)
	}
	if !f.isDone() {
		f.checkUnevaluated(seen)
	}

	switch len(f.all) {
	case 0:
		return nil
	case 1:
		return f.all[0]
	}
	group := v.newFault(allCauses, s, n)
	group.causes = f.all
	return group
}

// applyPart applies a schema to a part of the current value.
func (v *validator) applyPart(s *subschema, n *node, i int) *fault {
	if n.kind == objectKind {
		v.path = append(v.path, step{name: n.keys[i]})
	} else {
		v.path = append(v.path, step{index: i, isItem: true})
	}
	f := v.apply(s, n.kids[i], nil)
	v.path = v.path[:len(v.path)-1]

	return f
}

// applyHere applies a schema to the same value. If the value fits, its examined parts are marked in
// seen.
func (f *faults) applyHere(s *subschema, seen coverage) *fault {
	own := seen.fork()
	one := f.v.apply(s, f.n, own)
	if one == nil {
		seen.merge(own)
	}
	return one
}

// fits applies a schema to the same value without explaining why it does not fit.
func (f *faults) fits(s *subschema, seen coverage) bool {
	before := f.v.isQuick
	f.v.isQuick = true
	one := f.applyHere(s, seen)
	f.v.isQuick = before

	return one == nil
}

// checkWhole applies the rules whose violation makes all others irrelevant.
func (v *validator) checkWhole(s *subschema, n *node) *fault {
	switch {
	case !s.types.admits(n):
		return v.newFault(typeFault, s, n)
	case s.constant != nil && !s.constant.equals(n):
		return v.newFault(constFault, s, n)
	case s.enum != nil && !isMember(n, s.enum):
		return v.newFault(enumFault, s, n)
	case s.format != "" && n.kind == textKind && !formats[s.format](n.text):
		return v.newFault(formatFault, s, n)
	}
	return nil
}

// isMember reports whether a value equals a member of an enumeration.
func isMember(n *node, members []*node) bool {
	for _, member := range members {
		if member.equals(n) {
			return true
		}
	}
	return false
}

// checkRefs applies the schemas to which the schema refers.
func (f *faults) checkRefs(seen coverage) {
	for _, sub := range f.s.refs {
		f.add(f.applyHere(sub, seen))
	}
}

// checkKind applies the rules for the kind of the value.
func (f *faults) checkKind(seen coverage) {
	switch f.n.kind {
	case objectKind:
		f.checkObject(seen)
	case arrayKind:
		f.checkArray(seen)
	case textKind:
		f.checkText()
	case numberKind:
		f.checkNumber()
	default:
	}
}

func (f *faults) checkText() {
	s := f.s
	if s.minLength != nil || s.maxLength != nil {
		length := utf8.RuneCountInString(f.n.text)
		f.failIf(s.minLength != nil && length < *s.minLength, minLengthFault)
		f.failIf(s.maxLength != nil && length > *s.maxLength, maxLengthFault)
	}
	f.failIf(s.pattern != nil && !s.pattern.MatchString(f.n.text), patternFault)
}

func (f *faults) checkNumber() {
	s := f.s
	if s.minimum == nil && s.maximum == nil && s.exclusiveMinimum == nil &&
		s.exclusiveMaximum == nil && s.multipleOf == nil {
		return
	}

	r := f.n.rational()
	f.failIf(s.minimum != nil && r.Cmp(s.minimum) < 0, minimumFault)
	f.failIf(s.maximum != nil && r.Cmp(s.maximum) > 0, maximumFault)
	f.failIf(s.exclusiveMinimum != nil && r.Cmp(s.exclusiveMinimum) <= 0, exclusiveMinimumFault)
	f.failIf(s.exclusiveMaximum != nil && r.Cmp(s.exclusiveMaximum) >= 0, exclusiveMaximumFault)
	f.failIf(s.multipleOf != nil && !r.Quo(r, s.multipleOf).IsInt(), multipleOfFault)
}

func (f *faults) checkArray(seen coverage) {
	s, items := f.s, f.n.kids
	f.failIf(s.minItems != nil && len(items) < *s.minItems, minItemsFault)
	f.failIf(s.maxItems != nil && len(items) > *s.maxItems, maxItemsFault)
	if s.uniqueItems {
		if pair, isRepeated := findRepeated(items); isRepeated {
			f.fail(uniqueItemsFault).pair = pair
		}
	}

	for i := range items {
		if f.isDone() {
			return
		}
		if sub := s.itemSchema(i); sub != nil {
			seen.add(i)
			f.add(f.v.applyPart(sub, f.n, i))
		}
	}
	if s.contains != nil {
		f.checkContains(seen)
	}
}

// checkContains counts the items that fit one schema.
func (f *faults) checkContains(seen coverage) {
	before := f.v.isQuick
	f.v.isQuick = true
	count := 0
	for i := range f.n.kids {
		if f.v.applyPart(f.s.contains, f.n, i) == nil {
			seen.add(i)
			count++
		}
	}
	f.v.isQuick = before

	least := 1
	if f.s.minContains != nil {
		least = *f.s.minContains
	}
	if count < least {
		f.fail(minContainsFault).pair = [2]int{least, count}
	}
	if most := f.s.maxContains; most != nil && count > *most {
		f.fail(maxContainsFault).pair = [2]int{*most, count}
	}
}

func (f *faults) checkObject(seen coverage) {
	s, n := f.s, f.n
	f.failIf(s.minProperties != nil && len(n.keys) < *s.minProperties, minPropertiesFault)
	f.failIf(s.maxProperties != nil && len(n.keys) > *s.maxProperties, maxPropertiesFault)
	if missing := findMissing(n, s.required); len(missing) > 0 {
		f.fail(requiredFault).names = missing
	}
	if f.isDone() {
		return
	}

	f.checkMembers(seen)
	if s.propertyNames != nil {
		f.checkNames()
	}
	for _, d := range s.dependents {
		if n.member(d.name) == nil {
			continue
		}
		if missing := findMissing(n, d.needs); len(missing) > 0 {
			one := f.fail(dependentFault)
			one.names, one.reason = missing, d.name
		}
		if d.sub != nil {
			f.add(f.applyHere(d.sub, seen))
		}
	}
}

// findMissing returns those of the names that an object lacks.
func findMissing(n *node, names []string) (missing []string) {
	for _, name := range names {
		if n.member(name) == nil {
			missing = append(missing, name)
		}
	}
	return missing
}

// checkMembers applies properties, patternProperties and additionalProperties.
func (f *faults) checkMembers(seen coverage) {
	s, n := f.s, f.n
	var further []string
	for i, name := range n.keys {
		if f.isDone() {
			return
		}
		own, isKnown := s.properties[name]
		if isKnown {
			f.add(f.v.applyPart(own, n, i))
		}
		for _, rule := range s.patternProperties {
			if rule.pattern.MatchString(name) {
				isKnown = true
				f.add(f.v.applyPart(rule.sub, n, i))
			}
		}

		rest := s.additionalProperties
		switch {
		case isKnown || rest == nil:
		case rest.always == nil:
			f.add(f.v.applyPart(rest, n, i))
		case !*rest.always:
			further = append(further, name)
		}
		if isKnown || rest != nil {
			seen.add(i)
		}
	}

	if len(further) > 0 {
		f.fail(additionalFault).names = further
	}
}

// checkNames applies propertyNames.
func (f *faults) checkNames() {
	for _, name := range f.n.keys {
		if f.isDone() {
			return
		}
		below := validator{isQuick: f.v.isQuick}
		if wrong := below.apply(f.s.propertyNames, newText(name), nil); wrong != nil {
			one := f.fail(nameFault)
			one.names, one.causes = []string{name}, []*fault{wrong}
		}
	}
}

// checkCombined applies the rules that combine other schemas.
func (f *faults) checkCombined(seen coverage) {
	s := f.s
	if s.not != nil && f.fits(s.not, seen.fork()) {
		f.fail(notFault)
	}
	for _, sub := range s.allOf {
		if f.isDone() {
			return
		}
		f.add(f.applyHere(sub, seen))
	}
	if len(s.anyOf) > 0 {
		f.checkAnyOf(seen)
	}
	if len(s.oneOf) > 0 && !f.isDone() {
		f.checkOneOf(seen)
	}

	if s.ifs == nil || f.isDone() {
		return
	}
	next := s.otherwise
	if f.fits(s.ifs, seen) {
		next = s.then
	}
	if next != nil {
		f.add(f.applyHere(next, seen))
	}
}

// checkAnyOf looks for an alternative that fits, and examines all alternatives if coverage is
// required.
func (f *faults) checkAnyOf(seen coverage) {
	var causes []*fault
	isFit := false
	for _, sub := range f.s.anyOf {
		if one := f.applyHere(sub, seen); one != nil {
			causes = append(causes, one)
			continue
		}
		if isFit = true; seen == nil {
			return
		}
	}
	if !isFit {
		f.fail(noneFits).causes = causes
	}
}

// checkOneOf looks for exactly one alternative that fits.
func (f *faults) checkOneOf(seen coverage) {
	var causes []*fault
	fit := -1
	for i, sub := range f.s.oneOf {
		if fit >= 0 {
			if f.fits(sub, seen) {
				f.fail(twoFit).pair = [2]int{fit, i}
				return
			}
			continue
		}
		if one := f.applyHere(sub, seen); one != nil {
			causes = append(causes, one)
		} else {
			fit = i
		}
	}
	if fit < 0 {
		f.fail(noneFits).causes = causes
	}
}

// checkUnevaluated applies the rules for parts that no other rule examined.
func (f *faults) checkUnevaluated(seen coverage) {
	rest := f.s.unevaluatedItems
	if f.n.kind == objectKind {
		rest = f.s.unevaluatedProperties
	}
	if rest == nil {
		return
	}
	for i := range seen {
		if !seen[i] {
			seen[i] = true
			f.add(f.v.applyPart(rest, f.n, i))
		}
	}
}

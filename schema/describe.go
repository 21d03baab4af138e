package schema

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

const (
	maxDescription = 6_000 // bytes that Describe returns
	maxNote        = 200   // bytes of one note in it
)

// Describe summarises the contract's requirements in a few lines, for a prompt:
//
//	an object {
//	  "title": str (at most 80 characters)
//	  "severity": "low" | "high"
//	  "lines" (optional): list of int — where it was found
//	}
//
// Definitions of objects follow under their names. A description longer than 6,000 bytes is cut and
// ends in "…".
func (c *Contract) Describe() string {
	d := describer{
		named: map[*subschema]string{},
		under: map[*subschema]bool{},
	}
	d.writeSchema(c.root, "")

	for i := 0; i < len(d.later) && !d.isFull(); i++ {
		d.write("\n%s: ", d.named[d.later[i]])
		d.writeBody(d.later[i], "")
	}
	return clip(d.out.String(), maxDescription)
}

// describer writes the description of a contract.
type describer struct {
	out   strings.Builder
	named map[*subschema]string // definitions described by name
	later []*subschema          // the same schemas, in the order of their descriptions
	under map[*subschema]bool   // schemas currently being described
}

// isFull reports whether the description is complete or too long.
func (d *describer) isFull() bool { return d.out.Len() > maxDescription }

// write appends to the description.
func (d *describer) write(format string, args ...any) {
	if !d.isFull() {
		fmt.Fprintf(&d.out, format, args...)
	}
}

// writeSchema describes a schema, by name if it is the definition of an object.
func (d *describer) writeSchema(s *subschema, indent string) {
	if d.isFull() {
		return
	}
	if name := definitionName(s); name != "" && len(s.properties) > 0 {
		d.write("%s", d.nameDefinition(s, name))
		return
	}

	d.writeBody(s, indent)
}

// nameDefinition returns the name under which a definition is described.
func (d *describer) nameDefinition(s *subschema, name string) string {
	if d.named[s] != "" {
		return d.named[s]
	}

	for _, taken := range d.named {
		if taken == name {
			name += "'"
		}
	}

	d.named[s] = name
	d.later = append(d.later, s)
	return name
}

// definitionName returns the name of a schema in the definitions, or "" if it is not one.
func definitionName(s *subschema) string {
	for _, folder := range []string{"/$defs/", "/definitions/"} {
		if name, found := strings.CutPrefix(s.at, folder); found && isIdentifier(name) {
			return name
		}
	}
	return ""
}

// writeBody describes the schema's own rules.
func (d *describer) writeBody(s *subschema, indent string) {
	if d.under[s] {
		d.write("the same again")
		return
	}

	d.under[s] = true
	defer delete(d.under, s)

	if s.always != nil {
		d.write("%s", map[bool]string{true: "anything", false: "nothing"}[*s.always])
		return
	}

	clauses := d.clauses(s, indent)
	if len(clauses) == 0 {
		d.write("anything")
	}

	for i, writeClause := range clauses {
		if i > 0 {
			d.write(" and ")
		}
		writeClause()
	}
}

// clauses returns functions, each of which writes one requirement of a schema.
func (d *describer) clauses(s *subschema, indent string) []func() {
	var all []func()
	if s.constant != nil {
		all = append(all, func() { d.write("%s", formatLiteral(s.constant)) })
	}
	if s.enum != nil {
		all = append(all, func() { d.writeChoices(s.enum) })
	}
	if len(all) == 0 && (s.types != 0 || len(s.properties) > 0) {
		all = append(all, func() { d.writeTypes(s, indent) })
	}

	for _, sub := range slices.Concat(s.refs, s.allOf) {
		all = append(all, func() { d.writeSchema(sub, indent) })
	}

	for _, subs := range [][]*subschema{s.anyOf, s.oneOf} {
		if len(subs) > 0 {
			all = append(all, func() { d.writeJoined(subs, " or ", indent) })
		}
	}
	return all
}

// writeJoined describes several schemas, joined by a word.
func (d *describer) writeJoined(subs []*subschema, word, indent string) {
	for i, sub := range subs {
		if i > 0 {
			d.write("%s", word)
		}
		d.writeSchema(sub, indent)
	}
}

// writeChoices writes the members of an enumeration.
func (d *describer) writeChoices(values []*node) {
	for i, value := range values {
		if d.isFull() {
			return
		}
		if i > 0 {
			d.write(" | ")
		}
		d.write("%s", formatLiteral(value))
	}
}

// formatLiteral formats a value as JSON, abbreviating arrays and objects.
func formatLiteral(n *node) string {
	if n.kind == arrayKind || n.kind == objectKind {
		return formatValue(n)
	}
	return clip(string(n.appendJSON(nil)), maxNote)
}

// writeTypes describes the schema's own type and the keywords next to it.
func (d *describer) writeTypes(s *subschema, indent string) {
	types := s.types
	if types == 0 {
		types = wantsObject
	}

	isFirst := true
	for _, one := range []struct {
		is    typeSet
		write func()
	}{
		{wantsBoolean, func() { d.write("bool") }},
		{wantsInteger, func() { d.write("int%s", formatNumberNote(s)) }},
		{wantsNumber, func() { d.write("number%s", formatNumberNote(s)) }},
		{wantsString, func() { d.write("%s", formatString(s)) }},
		{wantsArray, func() { d.writeArray(s, indent) }},
		{wantsObject, func() { d.writeObject(s, indent) }},
		{wantsNull, func() { d.write("null") }},
	} {
		if !types.has(one.is) {
			continue
		}
		if !isFirst {
			d.write(" or ")
		}
		isFirst = false
		one.write()
	}
}

// writeArray describes a schema of arrays.
func (d *describer) writeArray(s *subschema, indent string) {
	if len(s.prefixItems) > 0 {
		d.write("[")
		d.writeJoined(s.prefixItems, ", ", indent)
		if rest := s.items; rest == nil || rest.always == nil || *rest.always {
			d.write(", …")
		}
		d.write("]")

		return
	}

	d.write("%s", map[bool]string{true: "list without repetitions", false: "list"}[s.uniqueItems])
	if sub := s.itemSchema(0); sub != nil {
		d.write(" of ")
		d.writeSchema(sub, indent)
	}

	d.write("%s", formatCountNote(s.minItems, s.maxItems, "items"))
}

// writeObject describes a schema of objects.
func (d *describer) writeObject(s *subschema, indent string) {
	properties := s.node.member("properties")
	if properties == nil || len(properties.keys) == 0 {
		d.writeMap(s, indent)
		return
	}

	d.write("an object {\n")
	for _, name := range properties.keys {
		if d.isFull() {
			return
		}
		d.writeProperty(s, name, indent+"  ")
	}

	if rest := s.furtherMembers(); rest != nil {
		d.write("%s  and further members: ", indent)
		d.writeSchema(rest, indent+"  ")
		d.write("\n")
	}

	d.write("%s}", indent)
}

// writeMap describes a schema of objects without known members.
func (d *describer) writeMap(s *subschema, indent string) {
	d.write("an object")
	if s.propertyNames != nil {
		d.write(" with names that are ")
		d.writeSchema(s.propertyNames, indent)
	}

	if rest := s.furtherMembers(); rest != nil {
		d.write(" of name to ")
		d.writeSchema(rest, indent)
	}

	d.write("%s", formatCountNote(s.minProperties, s.maxProperties, "members"))
}

// writeProperty describes one member on a line.
func (d *describer) writeProperty(s *subschema, name, indent string) {
	optional := ""
	if !slices.Contains(s.required, name) {
		optional = " (optional)"
	}
	d.write("%s%s%s: ", indent, strconv.Quote(clip(name, maxNote)), optional)

	sub := s.properties[name]
	d.writeSchema(sub, indent)
	if text := sub.description(); text != "" {
		d.write(" — %s", formatNote(text))
	}
	d.write("\n")
}

// formatNote puts a description on one line.
func formatNote(text string) string {
	return clip(strings.Join(strings.Fields(text), " "), maxNote)
}

// formatString describes a schema of strings.
func formatString(s *subschema) string {
	text := "str" + formatCountNote(s.minLength, s.maxLength, "characters")
	if s.format != "" {
		text += " (a " + s.format + ")"
	}
	if s.pattern != nil {
		text += " (matching " + clip(s.pattern.text, maxNote) + ")"
	}
	return text
}

// formatCountNote returns a note, in parentheses, on the permitted count of something.
func formatCountNote(least, most *int, what string) string {
	switch {
	case least != nil && most != nil && *least == *most:
		return fmt.Sprintf(" (exactly %d %s)", *least, what)
	case least != nil && most != nil:
		return fmt.Sprintf(" (%d to %d %s)", *least, *most, what)
	case least != nil && *least > 0:
		return fmt.Sprintf(" (at least %d %s)", *least, what)
	case most != nil:
		return fmt.Sprintf(" (at most %d %s)", *most, what)
	}
	return ""
}

// formatNumberNote returns a note, in parentheses, on the bounds of a number.
func formatNumberNote(s *subschema) string {
	var parts []string
	for _, bound := range []struct {
		word  string
		value *big.Rat
	}{
		{"at least ", s.minimum},
		{"greater than ", s.exclusiveMinimum},
		{"at most ", s.maximum},
		{"less than ", s.exclusiveMaximum},
		{"a multiple of ", s.multipleOf},
	} {
		if bound.value != nil {
			parts = append(parts, bound.word+formatBound(bound.value))
		}
	}

	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// formatBound formats a bound as a decimal number.
func formatBound(r *big.Rat) string {
	if r.IsInt() {
		return clip(r.Num().String(), 40)
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

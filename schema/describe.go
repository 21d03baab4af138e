package schema

import (
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	maxDescription = 6_000 // bytes of what Describe returns
	maxNote        = 200   // of one description in it
)

// Describe says in a few lines of text what the contract wants, for a prompt:
//
//	an object {
//	  "title": str (at most 80 characters)
//	  "severity": "low" | "high"
//	  "lines" (optional): list of int — where it was found
//	}
//
// Definitions that are objects come after it under their names. The text ends
// in "…" if it would be longer than 6,000 bytes.
func (c *Contract) Describe() string {
	d := describer{c: c, named: map[*jsonschema.Schema]string{}, under: map[*jsonschema.Schema]bool{}}
	d.schema(c.root, "")
	for i := 0; i < len(d.later) && !d.full(); i++ {
		d.write("\n%s: ", d.named[d.later[i]])
		d.body(d.later[i], "")
	}
	return clip(d.out.String(), maxDescription)
}

type describer struct {
	c     *Contract
	out   strings.Builder
	named map[*jsonschema.Schema]string
	later []*jsonschema.Schema
	under map[*jsonschema.Schema]bool // what is being described
}

func (d *describer) full() bool { return d.out.Len() > maxDescription }

func (d *describer) write(format string, args ...any) {
	if !d.full() {
		fmt.Fprintf(&d.out, format, args...)
	}
}

// schema describes one schema, by its name if it is a definition of an object.
func (d *describer) schema(s *jsonschema.Schema, indent string) {
	if d.full() {
		return
	}
	name := definitionName(s)
	if name != "" && len(s.Properties) > 0 {
		if d.named[s] == "" {
			for _, taken := range d.named {
				if taken == name {
					name += "'"
				}
			}
			d.named[s] = name
			d.later = append(d.later, s)
		}
		d.write("%s", d.named[s])
		return
	}
	d.body(s, indent)
}

// definitionName returns the name of a schema under $defs, else "".
func definitionName(s *jsonschema.Schema) string {
	for _, folder := range []string{"#/$defs/", "#/definitions/"} {
		if _, name, found := strings.Cut(s.Location, folder); found && isIdentifier(name) {
			return name
		}
	}
	return ""
}

func (d *describer) body(s *jsonschema.Schema, indent string) {
	if d.under[s] {
		d.write("the same again")
		return
	}
	d.under[s] = true
	defer delete(d.under, s)
	if s.Bool != nil {
		d.write("%s", map[bool]string{true: "anything", false: "nothing"}[*s.Bool])
		return
	}
	said := false
	and := func() {
		if said {
			d.write(" and ")
		}
		said = true
	}
	if s.Const != nil {
		and()
		d.write("%s", literal(*s.Const))
	}
	if s.Enum != nil {
		and()
		d.choices(s.Enum.Values)
	}
	if !said && (d.c.facts[s].types != 0 || len(s.Properties) > 0) {
		and()
		d.types(s, indent)
	}
	for _, sub := range []*jsonschema.Schema{s.Ref, dynamic(s)} {
		if sub != nil {
			and()
			d.schema(sub, indent)
		}
	}
	for _, sub := range s.AllOf {
		and()
		d.schema(sub, indent)
	}
	for _, subs := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf} {
		if len(subs) > 0 {
			and()
			d.joined(subs, " or ", indent)
		}
	}
	if !said {
		d.write("anything")
	}
}

func (d *describer) joined(subs []*jsonschema.Schema, word, indent string) {
	for i, sub := range subs {
		if i > 0 {
			d.write("%s", word)
		}
		d.schema(sub, indent)
	}
}

func (d *describer) choices(values []any) {
	for i, value := range values {
		if d.full() {
			return
		}
		if i > 0 {
			d.write(" | ")
		}
		d.write("%s", literal(value))
	}
}

// literal writes a value as JSON, arrays and objects in short.
func literal(value any) string {
	if n := fromPlain(value); n != nil {
		return clip(string(n.appendJSON(nil)), maxNote)
	}
	return show(value)
}

// types describes what the schema's own type and the keywords beside it say.
func (d *describer) types(s *jsonschema.Schema, indent string) {
	types := d.c.facts[s].types
	if types == 0 {
		types = wantsObject
	}
	first := true
	for _, one := range []struct {
		is    typeSet
		write func()
	}{
		{wantsBoolean, func() { d.write("bool") }},
		{wantsInteger, func() { d.write("int%s", numberNote(s)) }},
		{wantsNumber, func() { d.write("number%s", numberNote(s)) }},
		{wantsString, func() { d.write("%s", stringText(s)) }},
		{wantsArray, func() { d.array(s, indent) }},
		{wantsObject, func() { d.object(s, indent) }},
		{wantsNull, func() { d.write("null") }},
	} {
		if types&one.is == 0 {
			continue
		}
		if !first {
			d.write(" or ")
		}
		first = false
		one.write()
	}
}

func (d *describer) array(s *jsonschema.Schema, indent string) {
	if len(s.PrefixItems) > 0 {
		d.write("[")
		d.joined(s.PrefixItems, ", ", indent)
		if rest := s.Items2020; rest == nil || rest.Bool == nil || *rest.Bool {
			d.write(", …")
		}
		d.write("]")
		return
	}
	d.write("%s", map[bool]string{true: "list without repetitions", false: "list"}[s.UniqueItems])
	if sub := itemSchema(s, 0); sub != nil {
		d.write(" of ")
		d.schema(sub, indent)
	}
	d.write("%s", countNote(s.MinItems, s.MaxItems, "items"))
}

func (d *describer) object(s *jsonschema.Schema, indent string) {
	rest, open := s.AdditionalProperties.(*jsonschema.Schema)
	properties := d.c.facts[s].node.member("properties")
	if properties == nil || len(properties.keys) == 0 {
		d.write("an object")
		if s.PropertyNames != nil {
			d.write(" with names that are ")
			d.schema(s.PropertyNames, indent)
		}
		if open {
			d.write(" of name to ")
			d.schema(rest, indent)
		}
		d.write("%s", countNote(s.MinProperties, s.MaxProperties, "members"))
		return
	}
	d.write("an object {\n")
	for _, name := range properties.keys {
		if d.full() {
			return
		}
		d.write("%s  %s%s: ", indent, strconv.Quote(clip(name, maxNote)), map[bool]string{false: " (optional)"}[slices.Contains(s.Required, name)])
		sub := s.Properties[name]
		d.schema(sub, indent+"  ")
		if sub.Description != "" {
			d.write(" — %s", note(sub.Description))
		}
		d.write("\n")
	}
	if open {
		d.write("%s  and further members: ", indent)
		d.schema(rest, indent+"  ")
		d.write("\n")
	}
	d.write("%s}", indent)
}

// note puts a description on one line.
func note(text string) string { return clip(strings.Join(strings.Fields(text), " "), maxNote) }

func stringText(s *jsonschema.Schema) string {
	text := "str" + countNote(s.MinLength, s.MaxLength, "characters")
	if s.Format != nil {
		text += " (a " + s.Format.Name + ")"
	}
	if s.Pattern != nil {
		text += " (matching " + clip(s.Pattern.String(), maxNote) + ")"
	}
	return text
}

// countNote says in brackets how many there may be.
func countNote(least, most *int, what string) string {
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

// numberNote says in brackets what bounds a number.
func numberNote(s *jsonschema.Schema) string {
	var parts []string
	for _, bound := range []struct {
		word  string
		value *big.Rat
	}{
		{"at least ", s.Minimum},
		{"greater than ", s.ExclusiveMinimum},
		{"at most ", s.Maximum},
		{"less than ", s.ExclusiveMaximum},
		{"a multiple of ", s.MultipleOf},
	} {
		if bound.value != nil {
			parts = append(parts, bound.word+decimal(bound.value))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// decimal writes a bound as people do, when it is short enough.
func decimal(r *big.Rat) string {
	if r.IsInt() {
		return clip(r.Num().String(), 40)
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

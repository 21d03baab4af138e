package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// FromType makes a contract from type text, as Python writes annotations:
//
//	bool  int  float  str  None  Any  date  datetime  time  UUID
//	list[T]  set[T]  tuple[T, U]  tuple[T, ...]  dict[str, T]
//	Optional[T]  Union[T, U]  T | U  Literal['a', 'b', 3]
//
// The names of JSON Schema (boolean, integer, number, string, array, object,
// null), capitals (List, Dict), the prefix "typing." and T[] are understood as
// well. Names of classes are not: they come as JSON Schema.
func FromType(text string) (*Contract, error) {
	raw, err := typeSchema(text)
	if err != nil {
		return nil, err
	}
	return Compile(raw)
}

const (
	maxTypeText  = 4_000 // bytes
	maxTypeDepth = 20
)

// typeSchema returns the JSON Schema of a type text.
func typeSchema(text string) (json.RawMessage, error) {
	if len(text) > maxTypeText || !utf8.ValidString(text) {
		return nil, fmt.Errorf("cannot read a type of %d bytes: it must be UTF-8 of at most %d", len(text), maxTypeText)
	}
	p := typeParser{text: text}
	p.next()
	made, err := p.union(0)
	if err == nil && p.token != "" {
		err = p.refuse("expected the end")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the type %q: %w", clip(text, 100), err)
	}
	return made.appendJSON(nil), nil
}

// typeParser reads type text by recursive descent. A token is a name, a number,
// a quoted text (with its first quote), "..." or one punctuation; "" is the end.
type typeParser struct {
	text  string
	at    int // behind the token
	token string
	bad   string // why the token could not be read
}

func (p *typeParser) refuse(expected string) error {
	if p.bad != "" {
		return errors.New(p.bad)
	}
	found := strconv.Quote(p.token)
	if p.token == "" {
		found = "the end"
	}
	return fmt.Errorf("%s at character %d, found %s", expected, utf8.RuneCountInString(p.text[:p.at]), found)
}

func (p *typeParser) next() {
	rest := strings.TrimLeftFunc(p.text[p.at:], unicode.IsSpace)
	p.at = len(p.text) - len(rest)
	size := 0
	switch {
	case rest == "":
	case strings.HasPrefix(rest, "..."):
		size = 3
	case rest[0] == '\'' || rest[0] == '"':
		p.quoted(rest)
		return
	default:
		for i, c := range rest {
			if !isLetterOrDigit(c) && c != '_' && c != '.' && (i > 0 || c != '-') {
				break
			}
			size = i + utf8.RuneLen(c)
		}
		if size == 0 {
			_, size = utf8.DecodeRuneInString(rest)
		}
	}
	p.token = rest[:size]
	p.at += size
}

// quoted reads a text in quotes with Python's simplest escapes.
func (p *typeParser) quoted(rest string) {
	quote, out := rest[0], []byte{rest[0]}
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == quote:
			p.token, p.at = string(out), p.at+i+1
			return
		case c == '\\' && i+1 < len(rest):
			i++
			switch rest[i] {
			case '\\', '\'', '"':
				out = append(out, rest[i])
			case 'n':
				out = append(out, '\n')
			case 't':
				out = append(out, '\t')
			default:
				p.bad = fmt.Sprintf("the escape \\%c is not known", rest[i])
			}
		default:
			out = append(out, c)
		}
	}
	p.bad, p.token, p.at = "a quoted text does not end", string(quote), len(p.text)
}

func (p *typeParser) take(token string) bool {
	if p.token != token {
		return false
	}
	p.next()
	return true
}

// union reads T | U.
func (p *typeParser) union(depth int) (*node, error) {
	if depth > maxTypeDepth {
		return nil, fmt.Errorf("it is nested deeper than %d", maxTypeDepth)
	}
	var all []*node
	for {
		one, err := p.postfix(depth)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
		if !p.take("|") {
			return anyOf(all), nil
		}
	}
}

// postfix reads T and T[].
func (p *typeParser) postfix(depth int) (*node, error) {
	made, err := p.single(depth)
	for levels := 0; err == nil && p.token == "[" && p.ahead(']'); levels++ {
		if levels+depth > maxTypeDepth {
			return nil, fmt.Errorf("it is nested deeper than %d", maxTypeDepth)
		}
		p.next()
		p.next()
		made = arrayOf(made)
	}
	return made, err
}

// ahead reports whether the character after the token is c.
func (p *typeParser) ahead(c byte) bool {
	rest := strings.TrimLeft(p.text[p.at:], " ")
	return rest != "" && rest[0] == c
}

func (p *typeParser) single(depth int) (*node, error) {
	if p.take("(") {
		made, err := p.union(depth + 1)
		if err == nil && !p.take(")") {
			err = p.refuse("expected )")
		}
		return made, err
	}
	if p.bad != "" || p.token == "" || p.token[0] == '\'' || p.token[0] == '"' {
		if p.bad == "" && p.token != "" {
			return nil, p.refuse("expected a type without quotes (a choice is written Literal['a', 'b'])")
		}
		return nil, p.refuse("expected a type")
	}
	if first, _ := utf8.DecodeRuneInString(p.token); !unicode.IsLetter(first) && first != '_' {
		return nil, p.refuse("expected a type")
	}
	name := p.token[strings.LastIndexByte(p.token, '.')+1:]
	p.next()
	if p.token != "[" || p.ahead(']') {
		return p.plain(name)
	}
	p.next()
	if name == "Literal" {
		return p.literal()
	}
	args, err := p.arguments(depth)
	if err != nil {
		return nil, err
	}
	return p.generic(name, args)
}

// arguments reads what stands in brackets; nil stands for "...".
func (p *typeParser) arguments(depth int) ([]*node, error) {
	var args []*node
	for {
		if p.take("...") {
			args = append(args, nil)
		} else {
			one, err := p.union(depth + 1)
			if err != nil {
				return nil, err
			}
			args = append(args, one)
		}
		if p.take("]") {
			return args, nil
		}
		if !p.take(",") {
			return nil, p.refuse("expected , or ]")
		}
	}
}

// literal reads the choices of a Literal.
func (p *typeParser) literal() (*node, error) {
	var choices []*node
	for {
		switch {
		case p.bad != "":
			return nil, p.refuse("")
		case p.token == "None":
			choices = append(choices, null)
		case p.token == "True" || p.token == "False":
			choices = append(choices, newBool(p.token == "True"))
		case p.token != "" && (p.token[0] == '\'' || p.token[0] == '"'):
			choices = append(choices, newText(p.token[1:]))
		case json.Valid([]byte(p.token)) && badNumber(p.token) == "":
			choices = append(choices, newNumber(p.token))
		default:
			return nil, p.refuse("expected a text in quotes, a number, True, False or None")
		}
		p.next()
		if p.take("]") {
			return newObject([]string{"enum"}, []*node{newArray(choices)}), nil
		}
		if !p.take(",") {
			return nil, p.refuse("expected , or ]")
		}
	}
}

// simple are the types without arguments, as JSON Schema.
var simple = map[string]string{
	"bool": `{"type":"boolean"}`, "boolean": `{"type":"boolean"}`,
	"int": `{"type":"integer"}`, "integer": `{"type":"integer"}`,
	"float": `{"type":"number"}`, "number": `{"type":"number"}`, "Decimal": `{"type":"number"}`,
	"str": `{"type":"string"}`, "string": `{"type":"string"}`, "text": `{"type":"string"}`,
	"None": `{"type":"null"}`, "null": `{"type":"null"}`, "NoneType": `{"type":"null"}`,
	"Any": `{}`, "any": `{}`,
	"list": `{"type":"array"}`, "List": `{"type":"array"}`, "array": `{"type":"array"}`, "tuple": `{"type":"array"}`,
	"Tuple": `{"type":"array"}`, "Sequence": `{"type":"array"}`,
	"set": `{"type":"array","uniqueItems":true}`, "Set": `{"type":"array","uniqueItems":true}`,
	"frozenset": `{"type":"array","uniqueItems":true}`,
	"dict":      `{"type":"object"}`, "Dict": `{"type":"object"}`, "object": `{"type":"object"}`, "Mapping": `{"type":"object"}`,
	"date": `{"type":"string","format":"date"}`, "datetime": `{"type":"string","format":"date-time"}`,
	"time": `{"type":"string","format":"time"}`, "UUID": `{"type":"string","format":"uuid"}`,
}

func (p *typeParser) plain(name string) (*node, error) {
	made, ok := simple[name]
	if !ok {
		return nil, fmt.Errorf("%q is no type that is known (bool, int, float, str, list[…], dict[str, …], Optional[…], Literal[…], …)", clip(name, 60))
	}
	return decode([]byte(made), schemaBounds)
}

func (p *typeParser) generic(name string, args []*node) (*node, error) {
	dots := 0
	for _, arg := range args {
		if arg == nil {
			dots++
		}
	}
	lower := strings.ToLower(name)
	if dots > 0 && (lower != "tuple" || len(args) != 2 || args[1] != nil || args[0] == nil) {
		return nil, errors.New("... stands only in tuple[T, ...]")
	}
	switch {
	case lower == "tuple" && dots == 0:
		return tupleOf(args), nil
	case (lower == "list" || lower == "array" || lower == "sequence" || lower == "iterable") && len(args) == 1, lower == "tuple":
		return arrayOf(args[0]), nil
	case (lower == "set" || lower == "frozenset") && len(args) == 1:
		return newObject([]string{"type", "items", "uniqueItems"}, []*node{newText("array"), args[0], isTrue}), nil
	case lower == "optional" && len(args) == 1:
		return anyOf([]*node{args[0], typed("null")}), nil
	case lower == "union":
		return anyOf(args), nil
	case (lower == "dict" || lower == "mapping") && len(args) == 2:
		return dictOf(args[0], args[1])
	}
	return nil, fmt.Errorf("%s takes no %d types in brackets", clip(name, 60), len(args))
}

func typed(name string) *node { return newObject([]string{"type"}, []*node{newText(name)}) }

func arrayOf(item *node) *node {
	return newObject([]string{"type", "items"}, []*node{newText("array"), item})
}

func tupleOf(items []*node) *node {
	count := newNumber(strconv.Itoa(len(items)))
	return newObject([]string{"type", "prefixItems", "items", "minItems", "maxItems"},
		[]*node{newText("array"), newArray(items), isFalse, count, count})
}

// dictOf returns the schema of a dict. JSON has only texts for keys.
func dictOf(key, value *node) (*node, error) {
	keys, kids := []string{"type", "additionalProperties"}, []*node{newText("object"), value}
	kind := key.member("type")
	switch {
	case key.member("enum") != nil, kind != nil && kind.text == "string" && len(key.keys) > 1:
		keys, kids = append(keys, "propertyNames"), append(kids, key)
	case kind != nil && kind.text == "integer":
		keys = append(keys, "propertyNames")
		kids = append(kids, newObject([]string{"pattern"}, []*node{newText("^-?[0-9]+$")}))
	case len(key.keys) > 0 && (kind == nil || kind.text != "string"):
		return nil, errors.New("the keys of a dict are str, int or a Literal")
	}
	return newObject(keys, kids), nil
}

// anyOf returns the schema of a union; one inside of another is opened.
func anyOf(all []*node) *node {
	var flat []*node
	for _, one := range all {
		if inner := one.member("anyOf"); inner != nil {
			flat = append(flat, inner.kids...)
		} else {
			flat = append(flat, one)
		}
	}
	if len(flat) == 1 {
		return flat[0]
	}
	return newObject([]string{"anyOf"}, []*node{newArray(flat)})
}

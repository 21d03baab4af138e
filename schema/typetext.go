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

// fromType returns a contract for type text: see [Parse].
func fromType(text string) (*Contract, error) {
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
		return nil, fmt.Errorf("cannot read a type of %d bytes: it must be UTF-8 of at most %d",
			len(text), maxTypeText)
	}

	p := newTypeParser(text)
	made, err := p.parseUnion(0)
	if err == nil && p.token != "" {
		err = p.reject("expected the end of the type")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the type %q: %w", clip(text, 100), err)
	}
	return made.appendJSON(nil), nil
}

// typeParser reads type text by recursive descent. A token is a name, a number, a quoted string
// (with its first quote), "..." or one punctuation mark; "" is the end.
type typeParser struct {
	text  string
	at    int // position after the token
	token string
	bad   string // why the token could not be read
}

// newTypeParser returns a parser at the first token.
func newTypeParser(text string) *typeParser {
	p := &typeParser{text: text}
	p.next()
	return p
}

// reject returns an error that states what was expected instead of the token.
func (p *typeParser) reject(expected string) error {
	if p.bad != "" {
		return errors.New(p.bad)
	}
	found := strconv.Quote(p.token)
	if p.token == "" {
		found = "the end"
	}
	return fmt.Errorf("%s at character %d, found %s",
		expected, utf8.RuneCountInString(p.text[:p.at]), found)
}

// next reads the next token.
func (p *typeParser) next() {
	rest := strings.TrimLeftFunc(p.text[p.at:], unicode.IsSpace)
	p.at = len(p.text) - len(rest)
	if isQuoted(rest) {
		p.readQuoted(rest)
		return
	}

	size := tokenSize(rest)
	p.token = rest[:size]
	p.at += size
}

// isQuoted reports whether a string begins with a quote.
func isQuoted(text string) bool {
	return text != "" && (text[0] == '\'' || text[0] == '"')
}

// tokenSize returns the size of the name, number or punctuation at the beginning of a string.
func tokenSize(text string) int {
	if strings.HasPrefix(text, "...") {
		return len("...")
	}

	size := 0
	for i, c := range text {
		if !isLetterOrDigit(c) && c != '_' && c != '.' && (i > 0 || c != '-') {
			break
		}
		size = i + utf8.RuneLen(c)
	}
	if size == 0 {
		_, size = utf8.DecodeRuneInString(text)
	}
	return size
}

// readQuoted reads a quoted string with Python's simplest escapes.
func (p *typeParser) readQuoted(rest string) {
	quote, out := rest[0], []byte{rest[0]}
	for i := 1; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == quote:
			p.token, p.at = string(out), p.at+i+1
			return
		case c == '\\' && i+1 < len(rest):
			i++
			if unescaped, ok := unescape(rest[i]); ok {
				out = append(out, unescaped)
			} else {
				p.bad = fmt.Sprintf("the escape \\%c is not known", rest[i])
			}
		default:
			out = append(out, c)
		}
	}
	p.bad, p.token, p.at = "a quoted text does not end", string(quote), len(p.text)
}

// unescape returns the character that a backslash followed by c stands for.
func unescape(c byte) (byte, bool) {
	switch c {
	case '\\', '\'', '"':
		return c, true
	case 'n':
		return '\n', true
	case 't':
		return '\t', true
	}
	return 0, false
}

// take advances past a token, if it is the current one.
func (p *typeParser) take(token string) bool {
	if p.token != token {
		return false
	}
	p.next()
	return true
}

// isNext reports whether the next token begins with c.
func (p *typeParser) isNext(c byte) bool {
	rest := strings.TrimLeft(p.text[p.at:], " ")
	return rest != "" && rest[0] == c
}

// parseUnion parses T | U.
func (p *typeParser) parseUnion(depth int) (*node, error) {
	if depth > maxTypeDepth {
		return nil, fmt.Errorf("it is nested deeper than %d", maxTypeDepth)
	}

	var all []*node
	for {
		one, err := p.parsePostfix(depth)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
		if !p.take("|") {
			return anyOf(all), nil
		}
	}
}

// parsePostfix parses T and T[].
func (p *typeParser) parsePostfix(depth int) (*node, error) {
	made, err := p.parseSingle(depth)
	for levels := 0; err == nil && p.token == "[" && p.isNext(']'); levels++ {
		if levels+depth > maxTypeDepth {
			return nil, fmt.Errorf("it is nested deeper than %d", maxTypeDepth)
		}
		p.next()
		p.next()
		made = arrayOf(made)
	}
	return made, err
}

// parseSingle parses a type without operators: a name, with or without arguments, or a
// type in parentheses.
func (p *typeParser) parseSingle(depth int) (*node, error) {
	if p.take("(") {
		made, err := p.parseUnion(depth + 1)
		if err == nil && !p.take(")") {
			err = p.reject("expected )")
		}
		return made, err
	}
	if err := p.checkName(); err != nil {
		return nil, err
	}

	name := p.token[strings.LastIndexByte(p.token, '.')+1:]
	p.next()
	if p.token != "[" || p.isNext(']') {
		return plainType(name)
	}
	p.next()
	if name == "Literal" {
		return p.parseLiteral()
	}
	args, err := p.parseArguments(depth)
	if err != nil {
		return nil, err
	}
	return genericType(name, args)
}

// checkName returns an error if the token is not a name.
func (p *typeParser) checkName() error {
	if p.bad == "" && isQuoted(p.token) {
		return p.reject("expected a type without quotes (a choice is written Literal['a', 'b'])")
	}
	first, _ := utf8.DecodeRuneInString(p.token)
	if p.bad != "" || !unicode.IsLetter(first) && first != '_' {
		return p.reject("expected a type")
	}
	return nil
}

// parseArguments parses the contents of brackets; nil stands for "...".
func (p *typeParser) parseArguments(depth int) ([]*node, error) {
	var args []*node
	for {
		if p.take("...") {
			args = append(args, nil)
		} else {
			one, err := p.parseUnion(depth + 1)
			if err != nil {
				return nil, err
			}
			args = append(args, one)
		}

		if p.take("]") {
			return args, nil
		}
		if !p.take(",") {
			return nil, p.reject("expected , or ]")
		}
	}
}

// parseLiteral parses the choices of a Literal.
func (p *typeParser) parseLiteral() (*node, error) {
	var choices []*node
	for {
		choice := p.readChoice()
		if choice == nil {
			return nil, p.reject("expected a text in quotes, a number, True, False or None")
		}
		choices = append(choices, choice)
		p.next()

		if p.take("]") {
			return newObject([]string{"enum"}, []*node{newArray(choices)}), nil
		}
		if !p.take(",") {
			return nil, p.reject("expected , or ]")
		}
	}
}

// readChoice returns the token as a choice of a Literal, or nil if it is not one.
func (p *typeParser) readChoice() *node {
	switch {
	case p.bad != "":
		return nil
	case p.token == "None":
		return null
	case p.token == "True" || p.token == "False":
		return newBool(p.token == "True")
	case isQuoted(p.token):
		return newText(p.token[1:])
	case json.Valid([]byte(p.token)) && checkNumber(p.token) == "":
		return newNumber(p.token)
	}
	return nil
}

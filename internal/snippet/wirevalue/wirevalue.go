// Package wirevalue writes Python values as JSON without loss. A value that JSON lacks becomes an
// object with one name that begins with "$", such as {"$bytes": "aGk="}. A dict key that begins
// with "$" is prefixed with another "$".
//
//	{"$int": "9007199254740993"}      integers beyond 2^53
//	{"$float": "nan"}                 nan, inf, -inf
//	{"$bytes": base64}
//	{"$tuple": [...]}, {"$set": [...]}, {"$frozenset": [...]}
//	{"$dict": [[key, value], ...]}    a dict with keys that are not all str
//	{"$datetime": ISO 8601}, {"$date": ...}, {"$time": ...}
//	{"$timedelta": [days, seconds, microseconds]}
//	{"$decimal": "1.10"}
//	{"$object": {"type": ..., "repr": ...}}    any other value, which only leaves a session
package wirevalue

import (
	"bytes"
	_ "embed" // the Python code
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"unicode/utf8"

	strict "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// Value is a value in the form of this package. A session moves it as the Python value that it
// represents.
type Value json.RawMessage

// Encoder is Python code that defines _session_encode, and Decoder defines _session_decode:
// functions of one argument that convert a value to its form and back. They use no name that a
// snippet may have rebound.
var (
	//go:embed encode.py
	Encoder string
	//go:embed decode.py
	Decoder string
)

// Bounds of a value.
const (
	maxDepth = 500   // nesting of arrays and objects
	maxText  = 4_300 // bytes; CPython's default limit on the digits of an integer
)

// Find checks a value, and reports whether it contains a tag, so that it is not plain JSON.
func Find(v Value) (hasTag bool, err error) {
	tree, err := parse(v)
	if err != nil {
		return false, err
	}
	return check(tree)
}

// Plain returns the value as JSON. A tag that JSON cannot represent is an error.
func Plain(v Value) (json.RawMessage, error) {
	tree, err := parse(v)
	if err != nil {
		return nil, err
	}

	if _, err := check(tree); err != nil {
		return nil, err
	}
	if tree, err = unescape(tree); err != nil {
		return nil, err
	}
	return marshal(tree)
}

// Escape returns JSON, such as arguments of a snippet, in the form of this package.
func Escape(plain json.RawMessage) (Value, error) {
	tree, err := decode(plain)
	if err != nil {
		return nil, err
	}

	raw, err := marshal(escape(tree))
	return Value(raw), err
}

// parse decodes a value strictly. Numbers remain strings.
func parse(v Value) (any, error) {
	if !utf8.Valid(v) {
		return nil, errors.New("the value is not UTF-8")
	}

	if !jsontext.Value(v).IsValid() { // refuses repeated names, too
		var ignored jsontext.Value
		if err := strict.Unmarshal(v, &ignored); err != nil {
			return nil, fmt.Errorf("the value is not JSON: %w", err)
		}
	}
	return decode(json.RawMessage(v))
}

func decode(raw json.RawMessage) (tree any, err error) {
	if depth(raw) > maxDepth {
		return nil, fmt.Errorf("the value has more than %d levels", maxDepth)
	}

	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return nil, fmt.Errorf("the value is not JSON: %w", err)
	}
	return tree, nil
}

// depth returns the nesting depth of arrays and objects, without decoding anything.
func depth(raw []byte) int {
	level, most, isText := 0, 0, false

	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case isText && c == '\\':
			i++
		case c == '"':
			isText = !isText
		case isText:
		case c == '[' || c == '{':
			level++
			most = max(most, level)
		case c == ']' || c == '}':
			level--
		}
	}
	return most
}

// check checks the tags of a value, and reports whether it contains any.
func check(tree any) (hasTag bool, err error) {
	switch v := tree.(type) {
	case json.Number:
		if isLarge(v) {
			return false, fmt.Errorf(`the integer %.30s is beyond 2^53: write {"$int": "..."}`, v)
		}
	case []any:
		return checkAll(v)
	case map[string]any:
		if name, inner, ok := tagOf(v); ok {
			return true, checkTag(name, inner)
		}

		for name, inner := range v {
			if isTag(name) {
				return false, fmt.Errorf("%.40q is one of several names: write $%.40s for a name of a dict", name, name)
			}
			has, err := check(inner)
			if err != nil {
				return false, err
			}
			hasTag = hasTag || has || strings.HasPrefix(name, "$")
		}
	}
	return hasTag, nil
}

func checkAll(list []any) (hasTag bool, err error) {
	for _, inner := range list {
		has, err := check(inner)
		if err != nil {
			return false, err
		}
		hasTag = hasTag || has
	}
	return hasTag, nil
}

// isTag reports whether the name of an object is a tag rather than an escaped name.
func isTag(name string) bool {
	return strings.HasPrefix(name, "$") && !strings.HasPrefix(name, "$$")
}

// tagOf returns the tag of an object and its value.
func tagOf(object map[string]any) (name string, inner any, ok bool) {
	if len(object) != 1 {
		return "", nil, false
	}
	for name, inner = range object {
		ok = isTag(name)
	}
	return name, inner, ok
}

// The forms of the tags whose value is a string. A string that matches may still be an invalid
// date, which Python then reports.
var texts = map[string]*lazyregexp.Regexp{
	"$int":      lazyregexp.New(`^-?(0|[1-9][0-9]*)$`),
	"$float":    lazyregexp.New(`^(nan|inf|-inf)$`),
	"$decimal":  lazyregexp.New(`^[-+0-9.eEa-zA-Z]{1,1000}$`),
	"$datetime": lazyregexp.New(`^[-+:.TZ0-9 ]{1,64}$`),
	"$date":     lazyregexp.New(`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`),
	"$time":     lazyregexp.New(`^[-+:.Z0-9]{1,64}$`),
}

// checkTag checks the value of a tag.
func checkTag(name string, inner any) error {
	if form, ok := texts[name]; ok {
		text, isText := inner.(string)
		if !isText || len(text) > maxText || !form.MatchString(text) {
			return fmt.Errorf("%s: the text has the wrong form", name)
		}
		return nil
	}

	list, isList := inner.([]any)
	switch name {
	case "$bytes":
		text, isText := inner.(string)
		if _, err := base64.StdEncoding.Strict().DecodeString(text); err != nil || !isText {
			return errors.New("$bytes: want base64")
		}
		return nil
	case "$tuple", "$set", "$frozenset":
		if !isList {
			return fmt.Errorf("%s: want an array", name)
		}
		_, err := checkAll(list)
		return err
	case "$timedelta":
		return checkDuration(list)
	case "$dict":
		return checkPairs(list, isList)
	case "$object":
		return errors.New("$object stands for a value that cannot be sent back")
	}
	return fmt.Errorf("%.40q is not a tag: write $%.40s for a name of a dict", name, name)
}

func checkDuration(list []any) error {
	for _, part := range list {
		n, isNumber := part.(json.Number)
		if _, err := n.Int64(); err != nil || !isNumber {
			list = nil
		}
	}

	if len(list) != 3 {
		return errors.New("$timedelta: want [days, seconds, microseconds]")
	}
	return nil
}

func checkPairs(list []any, isList bool) error {
	if !isList {
		return errors.New("$dict: want an array of pairs")
	}

	for _, entry := range list {
		pair, ok := entry.([]any)
		if !ok || len(pair) != 2 {
			return errors.New("$dict: want an array of pairs")
		}
		if _, err := checkAll(pair); err != nil {
			return err
		}
	}
	return nil
}

// unescape returns the plain form of a checked value.
func unescape(tree any) (any, error) {
	switch v := tree.(type) {
	case []any:
		for i := range v {
			var err error
			if v[i], err = unescape(v[i]); err != nil {
				return nil, err
			}
		}
	case map[string]any:
		if name, inner, ok := tagOf(v); ok {
			text, isText := inner.(string)
			if name == "$int" && isText {
				return json.Number(text), nil
			}
			return nil, fmt.Errorf("%s cannot be passed here: only JSON can", name)
		}

		plain := make(map[string]any, len(v))
		for name, inner := range v {
			value, err := unescape(inner)
			if err != nil {
				return nil, err
			}
			plain[strings.TrimPrefix(name, "$")] = value
		}
		return plain, nil
	}
	return tree, nil
}

// escape is the inverse of unescape.
func escape(tree any) any {
	switch v := tree.(type) {
	case json.Number:
		if isLarge(v) {
			return map[string]any{"$int": string(v)}
		}
	case []any:
		for i := range v {
			v[i] = escape(v[i])
		}
	case map[string]any:
		escaped := make(map[string]any, len(v))
		for name, inner := range v {
			if strings.HasPrefix(name, "$") {
				name = "$" + name
			}
			escaped[name] = escape(inner)
		}
		return escaped
	}
	return tree
}

// isLarge reports whether a number is an integer that a double cannot hold exactly.
func isLarge(n json.Number) bool {
	if len(n) < 16 || strings.ContainsAny(string(n), ".eE") {
		return false
	}
	if len(n) > 17 {
		return true
	}

	whole, ok := new(big.Int).SetString(string(n), 10)
	return ok && whole.CmpAbs(big.NewInt(1<<53)) > 0
}

func marshal(tree any) (json.RawMessage, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)

	if err := encoder.Encode(tree); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

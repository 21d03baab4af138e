package graph

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"
)

// These are the tags of values, as in graph/engine/src/codec.rs.
const (
	tagNull = iota
	tagFalse
	tagTrue
	tagInteger
	tagFloat
	tagString
	tagList
	tagMap
)

// maxDepth is the maximum nesting depth of lists and maps.
const maxDepth = 64

// valueCost is a value's cost to the host in addition to its text, for the limit on a result.
const valueCost = 32

// encoder writes a request.
type encoder struct {
	data []byte
	err  error
}

func (e *encoder) fail(format string, args ...any) {
	if e.err == nil {
		e.err = fmt.Errorf(format, args...)
	}
}

func (e *encoder) length(n int) { e.data = binary.AppendUvarint(e.data, uint64(n)) }

func (e *encoder) text(s string) {
	if !utf8.ValidString(s) {
		e.fail("the text %.40q is not UTF-8", s)
		return
	}
	e.length(len(s))
	e.data = append(e.data, s...)
}

func (e *encoder) texts(all []string) {
	e.length(len(all))
	for _, s := range all {
		e.text(s)
	}
}

// mapping writes a map without its tag.
func (e *encoder) mapping(m map[string]any, depth int) {
	e.length(len(m))
	for key, value := range m {
		e.text(key)
		e.value(value, depth)
	}
}

func (e *encoder) word(tag byte, bits uint64) {
	e.data = binary.LittleEndian.AppendUint64(append(e.data, tag), bits)
}

func (e *encoder) value(v any, depth int) {
	if depth > maxDepth {
		e.fail("a value is nested more than %d levels deep", maxDepth)
		return
	}

	switch v := v.(type) {
	case nil:
		e.data = append(e.data, tagNull)
	case bool:
		e.data = append(e.data, tagFalse)
		if v {
			e.data[len(e.data)-1] = tagTrue
		}
	case int:
		e.word(tagInteger, uint64(v))
	case int64:
		e.word(tagInteger, uint64(v))
	case float64:
		e.word(tagFloat, math.Float64bits(v))
	case string:
		e.data = append(e.data, tagString)
		e.text(v)
	case json.Number:
		e.number(v)
	case time.Time:
		e.value(v.Format(time.RFC3339Nano), depth)
	case map[string]any:
		e.data = append(e.data, tagMap)
		e.mapping(v, depth+1)
	case []any:
		e.data = append(e.data, tagList)
		e.length(len(v))
		for _, item := range v {
			e.value(item, depth+1)
		}
	default:
		e.reflected(reflect.ValueOf(v), depth)
	}
}

// number writes a JSON number. An int that is too large is an error, because it would change as a
// float.
func (e *encoder) number(n json.Number) {
	if whole, err := n.Int64(); err == nil {
		e.word(tagInteger, uint64(whole))
		return
	}
	float, err := n.Float64()
	switch {
	case !strings.ContainsAny(string(n), ".eE"):
		e.fail("the int %s has more than 64 bits: use a text", shorten(string(n), 40))
	case err != nil:
		e.fail("the float %s is out of range", shorten(string(n), 40))
	}
	e.word(tagFloat, math.Float64bits(float))
}

// reflected writes a value of another type: other numbers, slices and maps.
func (e *encoder) reflected(v reflect.Value, depth int) {
	switch {
	case v.CanInt():
		e.word(tagInteger, uint64(v.Int()))
	case v.CanUint() && v.Uint() <= math.MaxInt64:
		e.word(tagInteger, v.Uint())
	case v.CanFloat():
		e.word(tagFloat, math.Float64bits(v.Float()))
	case v.Kind() == reflect.String:
		e.value(v.String(), depth)
	case v.Kind() == reflect.Bool:
		e.value(v.Bool(), depth)
	case v.Kind() == reflect.Slice:
		e.data = append(e.data, tagList)
		e.length(v.Len())
		for i := range v.Len() {
			e.value(v.Index(i).Interface(), depth+1)
		}
	case v.Kind() == reflect.Map && v.Type().Key().Kind() == reflect.String:
		e.data = append(e.data, tagMap)
		e.length(v.Len())
		for key, value := range v.Seq2() {
			e.text(key.String())
			e.value(value.Interface(), depth+1)
		}
	default:
		e.fail("a graph cannot hold a value of type %v: use nil, bool, numbers, strings, "+
			"lists and maps", v.Type())
	}
}

var errMalformed = errors.New("the graph's engine sent a malformed answer")

// decoder reads an answer. The engine is not trusted: the decoder allocates at most a small
// multiple of the answer's length, and stops at its own limit on costs. It keeps its first error.
type decoder struct {
	data []byte
	left int // the remaining cost of values
	err  error
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = errMalformed
	}
	d.data = nil
}

func (d *decoder) byte() byte {
	if len(d.data) == 0 {
		d.fail()
		return 0
	}
	b := d.data[0]
	d.data = d.data[1:]
	return b
}

// length reads the number of items or bytes that follow. Each item takes at least one byte.
func (d *decoder) length() int {
	n, size := binary.Uvarint(d.data)
	if size <= 0 || n > uint64(len(d.data)-size) {
		d.fail()
		return 0
	}
	d.data = d.data[size:]
	return int(n)
}

func (d *decoder) number() int64 {
	if len(d.data) < 8 {
		d.fail()
		return 0
	}
	n := binary.LittleEndian.Uint64(d.data)
	d.data = d.data[8:]
	return int64(n)
}

func (d *decoder) text() string {
	n := d.length()
	s := string(d.data[:n])
	d.data = d.data[n:]
	if !utf8.ValidString(s) {
		d.fail()
	}
	return s
}

func (d *decoder) texts() []string {
	all := []string{}
	for n := d.length(); n > 0 && d.err == nil; n-- {
		all = append(all, d.text())
	}
	return all
}

func (d *decoder) value(depth int) any {
	if depth > maxDepth {
		d.fail()
		const message = "a value of the result has more than %d levels of lists and maps"
		d.err = &QueryError{Message: fmt.Sprintf(message, maxDepth)}
		return nil
	}
	if d.left -= valueCost; d.left < 0 {
		d.fail()
		return nil
	}

	switch d.byte() {
	case tagNull:
		return nil
	case tagFalse:
		return false
	case tagTrue:
		return true
	case tagInteger:
		return d.number()
	case tagFloat:
		return math.Float64frombits(uint64(d.number()))
	case tagString:
		return d.text()
	case tagList:
		n := d.length()
		list := []any{}
		for ; n > 0 && d.err == nil; n-- {
			list = append(list, d.value(depth+1))
		}
		return list
	case tagMap:
		return d.mapping(d.length(), depth+1)
	}

	d.fail()
	return nil
}

func (d *decoder) mapping(n, depth int) map[string]any {
	m := map[string]any{}
	for ; n > 0 && d.err == nil; n-- {
		key := d.text()
		m[key] = d.value(depth)
	}
	return m
}

package tablesql

import (
	"bytes"
	"strconv"

	"github.com/ncruces/go-sqlite3"

	"github.com/rlmhq/rlm/internal/data/tables"
)

// kinds are the kinds of values in a column.
type kinds struct{ hasInteger, hasReal, hasText bool }

// note records the kind of a value. An empty value is ignored.
func (k *kinds) note(value []byte) {
	switch kindOf(value) {
	case kindNull:
	case kindInteger:
		k.hasInteger = true
	case kindReal:
		k.hasReal = true
	case kindText:
		k.hasText = true
	}
}

// choose returns the type of the column.
func (k *kinds) choose() string {
	switch {
	case k.hasText || !k.hasInteger && !k.hasReal:
		return "TEXT"
	case k.hasReal:
		return "REAL"
	}
	return "INTEGER"
}

type valueKind int

const (
	kindNull valueKind = iota
	kindInteger
	kindReal
	kindText
)

// kindOf returns the kind of a CSV value. A number must be fully determined by its value: 007 and
// 1e5 are texts, and so is a number with more digits than its type can hold.
func kindOf(value []byte) valueKind {
	if len(value) == 0 {
		return kindNull
	}

	digits, rest := value, []byte(nil)
	if digits[0] == '-' {
		digits = digits[1:]
	}
	if i := bytes.IndexByte(digits, '.'); i >= 0 {
		digits, rest = digits[:i], digits[i+1:]
		if !areDigits(rest) {
			return kindText
		}
	}

	switch {
	case !areDigits(digits), len(digits) > 1 && digits[0] == '0':
		return kindText
	case rest == nil && len(digits) <= 18:
		return kindInteger
	case rest != nil && len(digits)+len(rest) <= 17:
		return kindReal
	}
	return kindText
}

func areDigits(b []byte) bool {
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(b) > 0
}

// give passes a CSV value to SQLite in the type of its column: a column of numbers keeps anything
// that is not a number unchanged.
func give(ctx sqlite3.Context, value []byte, kind string) {
	if kind == "TEXT" {
		ctx.ResultRawText(value)
		return
	}

	switch kindOf(value) {
	case kindNull:
		ctx.ResultNull()
	case kindInteger, kindReal:
		giveNumber(ctx, value)
	case kindText:
		ctx.ResultRawText(value)
	}
}

func giveNumber(ctx sqlite3.Context, value []byte) {
	text := string(value)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		ctx.ResultInt64(n)
	} else if f, err := strconv.ParseFloat(text, 64); err == nil {
		ctx.ResultFloat(f)
	} else {
		ctx.ResultRawText(value)
	}
}

// giveJSON passes a JSON value to SQLite. Lists and objects are passed as JSON.
func giveJSON(ctx sqlite3.Context, value []byte) {
	switch {
	case len(value) == 0 || value[0] == 'n':
		ctx.ResultNull()
	case value[0] == '"':
		if text, isText := tables.String(value); isText {
			value = text
		}
		ctx.ResultRawText(value)
	case value[0] == 't' || value[0] == 'f':
		ctx.ResultBool(value[0] == 't')
	case value[0] == '{' || value[0] == '[':
		ctx.ResultRawText(value)
	default:
		giveNumber(ctx, value)
	}
}

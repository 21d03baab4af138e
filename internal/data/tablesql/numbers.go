package tablesql

import (
	"bytes"
	"cmp"
	"math"
	"math/big"
	"strconv"

	"github.com/ncruces/go-sqlite3"

	"github.com/rlmhq/rlm/internal/data/tables"
)

type valueKind int

const (
	kindNull valueKind = iota
	kindInteger
	kindReal
	kindBig // an integer of more than 64 bits
	kindText
)

// longestNumber is the length, in bytes, from which digits are no longer read as a number.
const longestNumber = 64

// kindOf returns the kind of a CSV value. Spaces around a number are not part of it. The value 007
// is text, because it may be a code.
func kindOf(value []byte) valueKind {
	if len(value) > 0 && (value[0] == ' ' || value[len(value)-1] == ' ') {
		value = bytes.Trim(value, " ")
	}
	if len(value) == 0 {
		return kindNull
	}
	if len(value) > longestNumber {
		return kindText
	}

	at := 0
	if value[0] == '-' || value[0] == '+' {
		at++
	}
	whole := countDigits(value[at:])
	first := at
	at += whole

	if whole > 1 && value[first] == '0' {
		return kindText
	}
	if at == len(value) {
		return kindOfInteger(value, whole)
	}

	fraction := 0
	if value[at] == '.' {
		fraction = countDigits(value[at+1:])
		at += 1 + fraction
	}
	if whole+fraction == 0 {
		return kindText
	}
	if at == len(value) {
		return kindReal
	}
	return kindOfExponent(value, at)
}

func countDigits(b []byte) int {
	for i, c := range b {
		if c < '0' || c > '9' {
			return i
		}
	}
	return len(b)
}

func kindOfInteger(value []byte, digits int) valueKind {
	switch {
	case digits == 0:
		return kindText
	case digits < 19:
		return kindInteger
	case digits == 19:
		if _, err := strconv.ParseInt(string(value), 10, 64); err == nil {
			return kindInteger
		}
	}
	return kindBig
}

// kindOfExponent returns the kind of a value whose digits end at a byte.
func kindOfExponent(value []byte, at int) valueKind {
	if value[at]|0x20 != 'e' {
		return kindText
	}
	at++
	if at < len(value) && (value[at] == '-' || value[at] == '+') {
		at++
	}

	if digits := countDigits(value[at:]); digits == 0 || at+digits < len(value) {
		return kindText
	}
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil || f == 0 && bytes.ContainsAny(value[:bytes.IndexAny(value, "eE")], "123456789") {
		return kindText // too large or too small for a float
	}
	return kindReal
}

// exactInteger is the integer above which floats cannot represent every integer.
const exactInteger = 1 << 53

func areDigits(b []byte) bool { return len(b) > 0 && countDigits(b) == len(b) }

// isLong reports whether a number has more digits than a float can distinguish.
func isLong(value []byte) bool {
	if len(value) <= 17 {
		return false
	}
	digits := 0
	for _, c := range bytes.TrimRight(value, "0 ") {
		switch {
		case c|0x20 == 'e':
			return digits > 17
		case c == '0' && digits == 0:
		case '0' <= c && c <= '9':
			digits++
		}
	}
	return digits > 17
}

// These are the types of columns. SQLite has no integers of more than 64 bits. Columns with such
// integers keep them as text, which compareNumbers compares; SQLite treats a type with the name of
// typeBig like TEXT.
const (
	typeText    = "TEXT"
	typeInteger = "INTEGER"
	typeReal    = "REAL"
	typeBig     = "HUGE TEXT"
)

// collation is the name of compareNumbers in SQL.
const collation = "rlm_numbers"

// compareNumbers orders strings: numbers by their value, before all other strings.
func compareNumbers(a, b []byte) int {
	first, second := kindOf(a), kindOf(b)
	isFirst := first != kindText && first != kindNull
	isSecond := second != kindText && second != kindNull

	if isFirst != isSecond {
		if isFirst {
			return -1
		}
		return 1
	}
	if !isFirst {
		return bytes.Compare(a, b)
	}

	if areDigits(a) && areDigits(b) {
		return cmp.Or(cmp.Compare(len(a), len(b)), bytes.Compare(a, b))
	}
	x, isX := new(big.Rat).SetString(string(bytes.Trim(a, " ")))
	y, isY := new(big.Rat).SetString(string(bytes.Trim(b, " ")))
	if !isX || !isY {
		return bytes.Compare(a, b)
	}
	return x.Cmp(y)
}

// give passes a CSV value to SQLite in the type of its column. It reports whether the value does
// not match that type and was passed unchanged.
func give(ctx sqlite3.Context, value []byte, kind string) (isLate bool) {
	if kind == typeText {
		ctx.ResultRawText(value)
		return false
	}

	switch found := kindOf(value); found {
	case kindNull:
		ctx.ResultNull()
	case kindInteger:
		if n := parseInteger(bytes.Trim(value, " ")); kind == typeReal && -exactInteger < n && n < exactInteger {
			ctx.ResultFloat(float64(n)) // 10 among fractions is one of them: 10 / 4 is 2.5
		} else {
			ctx.ResultInt64(n)
		}
	case kindReal:
		giveNumber(ctx, value, found)
	case kindBig:
		if kind == typeReal {
			giveNumber(ctx, value, kindReal)
			return false
		}
		ctx.ResultRawText(bytes.TrimLeft(bytes.Trim(value, " "), "+"))
		return kind != typeBig || value[0] == '-'
	case kindText:
		ctx.ResultRawText(value)
		return true
	}
	return false
}

// giveNumber passes a number that is not too large.
func giveNumber(ctx sqlite3.Context, value []byte, kind valueKind) {
	if value[0] == ' ' || value[len(value)-1] == ' ' {
		value = bytes.Trim(value, " ")
	}
	if kind == kindInteger {
		ctx.ResultInt64(parseInteger(value))
		return
	}
	if f, err := strconv.ParseFloat(string(value), 64); err == nil {
		ctx.ResultFloat(f)
	} else {
		ctx.ResultRawText(value)
	}
}

// parseInteger returns an integer of at most 64 bits.
func parseInteger(value []byte) int64 {
	digits, isNegative := value, value[0] == '-'
	if isNegative || value[0] == '+' {
		digits = value[1:]
	}
	var n uint64
	for _, c := range digits {
		n = 10*n + uint64(c-'0')
	}
	if isNegative {
		n = -n
	}
	return int64(n) //nolint:gosec // the value fits, see kindOfInteger
}

// giveJSON passes a JSON value to SQLite. Lists and objects are passed as JSON. It reports whether
// it passed the value as a float, because it is an integer of more than 64 bits in a column not
// declared for such integers.
func giveJSON(ctx sqlite3.Context, value []byte, isBig bool) (isLate bool) {
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
		return giveJSONNumber(ctx, value, isBig)
	}
	return false
}

func giveJSONNumber(ctx sqlite3.Context, value []byte, isBig bool) (isLate bool) {
	switch kind := kindOf(value); {
	case kind == kindInteger || kind == kindReal:
		giveNumber(ctx, value, kind)
	case kind == kindBig && isBig:
		ctx.ResultRawText(value)
		return value[0] == '-'
	case kind == kindBig:
		giveNumber(ctx, value, kindReal)
		return true
	default: // more digits than a number has, or an exponent that is too large
		if f, err := strconv.ParseFloat(string(value), 64); err == nil && !math.IsInf(f, 0) {
			ctx.ResultFloat(f)
		} else {
			ctx.ResultRawText(value)
		}
	}
	return false
}

// normalise converts a number, written as the options of the table specify, to one with a decimal
// point and without groups of thousands. It returns nil for a missing value, and anything that is
// not a number unchanged.
func normalise(value []byte, o *tables.Values) []byte {
	for _, null := range o.Nulls {
		if string(value) == null {
			return nil
		}
	}
	if o.Decimal == 0 && o.Thousands == 0 || len(value) > longestNumber {
		return value
	}

	decimal := cmp.Or(o.Decimal, '.')
	trimmed := bytes.Trim(value, " ")
	whole, fraction := trimmed, []byte(nil)
	if i := bytes.IndexByte(trimmed, decimal); i >= 0 {
		whole, fraction = trimmed[:i], append([]byte{'.'}, trimmed[i+1:]...)
	}

	if o.Thousands != 0 && bytes.IndexByte(whole, o.Thousands) >= 0 {
		groups := bytes.Split(bytes.TrimLeft(whole, "+-"), []byte{o.Thousands})
		for i, group := range groups {
			if !areDigits(group) || i > 0 && len(group) != 3 || i == 0 && len(group) > 3 {
				return value
			}
		}
		whole = bytes.ReplaceAll(whole, []byte{o.Thousands}, nil)
	} else if decimal != '.' && bytes.IndexByte(whole, '.') >= 0 {
		return value // not a number in this notation, but perhaps in another
	}

	if made := append(bytes.Clone(whole), fraction...); kindOf(made) != kindText {
		return made
	}
	return value
}

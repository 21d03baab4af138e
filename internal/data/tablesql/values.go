package tablesql

import (
	"bytes"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// kinds counts the kinds of values in a column of the first rows.
type kinds struct {
	integers, reals int
	bigs, negatives int // integers of more than 64 bits, and the negative ones among them
	phones          int // integers such as +4930123456
	codes           int // integers such as 007
	markers         int // strings such as NA
	locals          int // numbers as people write them, such as 1,234.50
	others          int // all other strings
	empties         int // empty texts

	truths, digits, nested int // of JSON: true and false, strings such as "12", lists and objects

	width    int    // the length of the codes and integers
	isUneven bool   // they differ in length
	isLong   bool   // there are numbers of more than 17 digits
	text     string // the first marker, local or other
	code     string // the first code
}

// note counts a value.
func (k *kinds) note(value []byte) {
	switch kindOf(value) {
	case kindNull:
		k.empties++
	case kindInteger:
		k.integers++
		k.noteWidth(value)
		if value[0] == '+' && len(value) > 7 {
			k.phones++
		}
	case kindReal:
		k.reals++
		k.isLong = k.isLong || isLong(value)
	case kindBig:
		k.bigs++
		if value[0] == '-' {
			k.negatives++
		}
	case kindText:
		k.noteText(value)
	}
}

func (k *kinds) noteWidth(value []byte) {
	k.isUneven = k.isUneven || k.width > 0 && k.width != len(value)
	k.width = len(value)
}

// longestShown bounds the strings that notes show, in bytes.
const longestShown = 40

func (k *kinds) noteText(value []byte) {
	trimmed := bytes.TrimSpace(value)
	switch {
	case areDigits(bytes.TrimPrefix(trimmed, []byte{'+'})):
		k.codes++
		k.noteWidth(trimmed)
		if k.code == "" {
			k.code = string(trimmed[:min(len(trimmed), longestShown)])
		}
		return
	case isMarker(trimmed):
		k.markers++
	case len(trimmed) <= longestShown && localNumber.Match(trimmed):
		k.locals++
	default:
		k.others++
	}
	if k.text == "" {
		k.text = strings.ToValidUTF8(string(value[:min(len(value), longestShown)]), "")
	}
}

// noteJSON counts a JSON value.
func (k *kinds) noteJSON(value []byte) {
	switch {
	case len(value) == 0 || value[0] == 'n':
	case value[0] == 't' || value[0] == 'f':
		k.truths++
	case value[0] == '{' || value[0] == '[':
		k.nested++
	case value[0] != '"':
		k.note(value)
	case len(value) >= 2:
		k.noteStored(value[1 : len(value)-1])
	}
}

// noteStored counts a string from JSON or from a database.
func (k *kinds) noteStored(text []byte) {
	if isNumeral(string(text[:min(len(text), longestNumber)])) {
		k.digits++
	}
	if len(text) > 0 && !areDigits(text) {
		k.noteJSONText(text)
	}
}

// noteJSONText counts a string that SQLite does not compare with numbers, even if it represents
// one.
func (k *kinds) noteJSONText(text []byte) {
	switch {
	case isMarker(text):
		k.markers++
	case len(text) <= longestShown && localNumber.Match(text):
		k.locals++
	default:
		k.others++
	}
	if k.text == "" {
		k.text = strings.ToValidUTF8(string(text[:min(len(text), longestShown)]), "")
	}
}

// localNumber matches a number as people write it: with a decimal comma, separated thousands, a
// currency, a percent sign or an exponent.
var localNumber = lazyregexp.New(
	`^[-+(]?[$€£¥]?\s?[-+]?(\d{1,3}([.,'\s]\d{3})+|\d+)([.,]\d+)?([eE][-+]?\d+)?\s?([$€£¥%)]|EUR|USD|GBP|CHF)?$`)

// markers lists the strings with which programs represent a missing value, in lower case.
var markers = strings.Fields("na n/a #n/a nan null none nil - -- --- ? . .. * x missing unknown undefined tbd")

// isMarker reports whether a string stands for a missing value.
func isMarker(text []byte) bool {
	const longest = 10
	return len(text) <= longest && slices.Contains(markers, strings.ToLower(string(text)))
}

// choose returns the type of a CSV column. A column of numbers may contain strings for missing
// values.
func (k *kinds) choose() string {
	numbers := k.integers + k.reals + k.bigs
	switch {
	case numbers == 0, k.others+k.locals+k.codes > 0, k.phones == numbers, k.negatives > 0 && k.reals == 0:
		return typeText
	case k.reals > 0:
		return typeReal
	case k.bigs > 0:
		return typeBig
	}
	return typeInteger
}

// hasBigs reports whether a column of JSON Lines has integers of more than 64 bits, and no other
// numbers with which these cannot be compared.
func (k *kinds) hasBigs() bool { return k.bigs > 0 && k.reals == 0 && k.negatives == 0 }

// findMixed returns the first text if people would read most values as numbers, and otherwise an
// empty string.
func (k *kinds) findMixed() string {
	numbers := k.integers + k.reals + k.bigs + k.locals
	if numbers > 0 && numbers >= k.others {
		return k.text
	}
	return ""
}

// findClass returns the class of all values of a column of JSON Lines.
func (k *kinds) findClass() class {
	numbers := k.integers + k.reals + k.truths
	texts := k.others + k.markers + k.locals + k.digits
	switch {
	case k.bigs+k.nested > 0:
		return classUnknown
	case texts == 0 && numbers > 0:
		return classNumber
	case texts > 0 && numbers == 0:
		return classText
	}
	return classUnknown
}

// These expressions match the beginnings of types of Parquet and Arrow. Large integers of type
// uint64 are strings.
var (
	numberTypesOfFiles = lazyregexp.New(`^(u?int(8|16|32)|int64|float|bool|decimal)`)
	textTypesOfFiles   = lazyregexp.New(`^(string|timestamp|date)`)
)

// classOf returns the class of the values of a Parquet or Arrow column, by its type.
func classOf(kind string) class {
	switch {
	case numberTypesOfFiles.MatchString(kind):
		return classNumber
	case textTypesOfFiles.MatchString(kind):
		return classText
	}
	return classUnknown
}

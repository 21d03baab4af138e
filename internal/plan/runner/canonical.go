package runner

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rlmhq/rlm/tiers"
)

// fingerprint identifies a call by its function and arguments.
type fingerprint [sha256.Size]byte

// fingerprintOf returns the same fingerprint for equivalent calls, no matter how the JSON of their
// arguments is written, because each tier has its own encoder. A fingerprint is a hash because
// prompts are large, and a snippet may make thousands of calls.
func fingerprintOf(call *tiers.Call) fingerprint {
	h := sha256.New()
	hashPart(h, []byte(call.Function))
	hashCount(h, len(call.Args))
	for _, arg := range call.Args {
		hashPart(h, canonical(arg))
	}

	for _, name := range slices.Sorted(maps.Keys(call.Named)) {
		hashPart(h, []byte(name))
		hashPart(h, canonical(call.Named[name]))
	}

	var f fingerprint
	h.Sum(f[:0])
	return f
}

// hashPart writes bytes to a hash in a way that marks their end.
func hashPart(h hash.Hash, b []byte) {
	hashCount(h, len(b))
	h.Write(b) // never fails
}

func hashCount(h hash.Hash, n int) {
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(n)))
}

// mostParsed is the size in bytes up to which values are compared by content. Longer values that
// are not strings are compared byte by byte, because a parsed list of numbers takes twenty times
// the memory of its JSON.
const mostParsed = 256 << 10

// canonical returns the canonical form of a JSON value: no space, sorted keys, one escape for each
// character, one form for each number. It is hardly longer than v. A value that is not JSON is
// returned unchanged.
func canonical(v tiers.Value) []byte {
	if plainString(v) || len(v) > mostParsed && !isString(v) {
		return v
	}
	decoder := json.NewDecoder(bytes.NewReader(v))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return v
	}
	if _, err := decoder.Token(); err != io.EOF {
		return v
	}

	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false) // a plain string stays unchanged
	if err := encoder.Encode(plainNumbers(value)); err != nil {
		return v
	}

	return bytes.TrimSpace(out.Bytes())
}

// plainString reports whether v is a string without escapes, which is already canonical. Most
// prompts are such strings, and decoding them would take longer than everything else.
func plainString(v tiers.Value) bool {
	last := len(v) - 1
	if last < 1 || v[0] != '"' || v[last] != '"' {
		return false
	}

	for _, c := range v[1:last] {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// isString reports whether v is a string, provided that it is JSON. Parsing a string needs about as
// much memory as its length.
func isString(v tiers.Value) bool {
	v = bytes.TrimLeft(v, " \t\r\n")
	return len(v) > 0 && v[0] == '"'
}

// plainNumbers converts every number to its canonical form, in place.
func plainNumbers(value any) any {
	switch v := value.(type) {
	case json.Number:
		return plainNumber(v)
	case []any:
		for i := range v {
			v[i] = plainNumbers(v[i])
		}
	case map[string]any:
		for name := range v {
			v[name] = plainNumbers(v[name])
		}
	}
	return value
}

// plainNumber returns the number as an integer without trailing zeros and a power of ten: 1.50,
// 15e-1 and 0.15E1 become 15e-1, 1.0 becomes 1. It never expands the number, because a few digits
// can denote a number of any length.
func plainNumber(n json.Number) json.Number {
	digits, negative := strings.CutPrefix(string(n), "-")
	exponent := int64(0)
	if at := strings.IndexAny(digits, "eE"); at >= 0 {
		e, err := strconv.ParseInt(digits[at+1:], 10, 32)
		if err != nil {
			return n // no tier writes such an exponent in two ways
		}
		digits, exponent = digits[:at], e
	}

	whole, fraction, _ := strings.Cut(digits, ".")
	exponent -= int64(len(fraction))
	digits = strings.TrimLeft(whole+fraction, "0")
	short := strings.TrimRight(digits, "0")
	exponent += int64(len(digits) - len(short))
	switch {
	case short == "":
		short = "0"
	case exponent != 0:
		short += "e" + strconv.FormatInt(exponent, 10)
	}

	if negative {
		short = "-" + short
	}
	return json.Number(short)
}

package router

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/rlmhq/rlm/tiers"
)

// fingerprint stands for a call's function and arguments.
type fingerprint [sha256.Size]byte

// fingerprintOf is the same for calls that say the same, however the JSON of
// their arguments is written: tiers have encoders of their own. It is a hash
// because prompts are large, and a snippet may make thousands of calls.
func fingerprintOf(call *tiers.Call) fingerprint {
	h := sha256.New()
	part(h, []byte(call.Function))
	count(h, len(call.Args))
	for _, arg := range call.Args {
		part(h, canonical(arg))
	}
	for _, name := range slices.Sorted(maps.Keys(call.Named)) {
		part(h, []byte(name))
		part(h, canonical(call.Named[name]))
	}
	var f fingerprint
	h.Sum(f[:0])
	return f
}

// part writes bytes so that their end is known.
func part(h hash.Hash, b []byte) {
	count(h, len(b))
	h.Write(b) // a hash takes everything
}

func count(h hash.Hash, n int) {
	h.Write(binary.LittleEndian.AppendUint64(nil, uint64(n)))
}

// canonical writes a JSON value in one way: no space, sorted keys, one escape
// for each character, one form for each number. What is no JSON stays as it is.
func canonical(v tiers.Value) []byte {
	if plainString(v) {
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
	encoder.SetEscapeHTML(false) // a plain string stays as it is
	if err := encoder.Encode(plainNumbers(value)); err != nil {
		return v
	}
	return bytes.TrimSpace(out.Bytes())
}

// plainString reports whether v is a string without escapes, which is canonical.
// Most prompts are, and decoding them would take longer than all the rest.
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

// plainNumbers gives every number its shortest form, in place: 1.0 and 1e0
// become 1.
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

func plainNumber(n json.Number) json.Number {
	if !strings.ContainsAny(string(n), ".eE") {
		return n // an integer, of any size
	}
	f, err := n.Float64()
	if err != nil || math.IsInf(f, 0) {
		return n
	}
	return json.Number(strconv.FormatFloat(f, 'f', -1, 64))
}

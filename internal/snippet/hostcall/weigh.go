package hostcall

import "bytes"

// What a decoded JSON value takes at most on the host beside its text, in bytes.
const (
	valueCost  = 48  // an interface, and the header of the value behind it
	objectCost = 300 // a map has room for eight entries from the first one on
)

// Weigh returns how much memory the host may need for JSON from a guest once it is decoded,
// in bytes.
func Weigh(data []byte) int {
	values, objects := count(data, len(data))
	return len(data) + valueCost*values + objectCost*objects
}

// CountValues returns at least the number of values that a JSON text has down to a depth,
// without decoding it: 1 is the outermost array or object and its elements. A program calls
// it before it decodes what a guest wrote, because 90 MB of "[]," become 4 GB.
func CountValues(data []byte, depth int) int {
	values, _ := count(data, depth)
	return values
}

// count returns at least the number of values, and of objects with names, down to a depth.
func count(data []byte, depth int) (values, objects int) {
	values = 1
	nested := 0
	for i := 0; i < len(data); i++ {
		switch c := data[i]; c {
		case '"':
			i += lengthOfString(data[i:]) - 1
		case '[', '{':
			nested++
			if nested <= depth {
				values++
			}
			if nested <= depth && c == '{' && !bytes.HasPrefix(data[i+1:], []byte("}")) {
				objects++
			}
		case ']', '}':
			nested--
		case ',':
			if nested <= depth {
				values++
			}
		}
	}
	return values, objects
}

// lengthOfString returns the length of the JSON string with which data begins, its quotes
// included. An open string reaches to the end.
func lengthOfString(data []byte) int {
	for i := 1; ; i++ {
		quote := bytes.IndexByte(data[i:], '"')
		if quote < 0 {
			return len(data)
		}

		i += quote
		escapes := 0
		for data[i-1-escapes] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return i + 1
		}
	}
}

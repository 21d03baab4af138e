package hostcall

import "bytes"

// valueCost is what a decoded JSON value takes at most on the host beside its text, in
// bytes: an interface, and the header of the value behind it.
const valueCost = 48

// Weigh returns how much memory the host may need for JSON from a guest once it is decoded,
// in bytes.
func Weigh(data []byte) int { return len(data) + valueCost*CountValues(data, len(data)) }

// CountValues returns at least the number of values that a JSON text has down to a depth,
// without decoding it: 1 is the outermost array or object and its elements. A program calls
// it before it decodes what a guest wrote, because 90 MB of "[]," become 4 GB.
func CountValues(data []byte, depth int) int {
	count, nested := 1, 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i += lengthOfString(data[i:]) - 1
		case '[', '{':
			nested++
			if nested <= depth {
				count++
			}
		case ']', '}':
			nested--
		case ',':
			if nested <= depth {
				count++
			}
		}
	}
	return count
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

package hostcall

import "bytes"

// The maximum memory that a decoded JSON value occupies on the host in addition to its text, in
// bytes.
const (
	valueCost  = 48  // an interface, and the header of the value behind it
	objectCost = 300 // in addition, a map, for an object that is not empty
)

// Weigh returns the memory that the host may need for decoded JSON from a guest, in bytes.
func Weigh(data []byte) int {
	values, objects := count(data, len(data))
	return len(data) + valueCost*values + objectCost*objects
}

// CountValues returns an upper bound of the number of values in a JSON text down to a depth,
// without decoding it: depth 1 covers the outermost array or object and its elements. Call it
// before decoding a guest's JSON, because 90 MB of "[]," become 4 GB.
func CountValues(data []byte, depth int) int {
	values, _ := count(data, depth)
	return values
}

// count returns upper bounds of the numbers of values and of objects with names, down to a depth.
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

// lengthOfString returns the length of the JSON string at the start of data, including its quotes.
// An unterminated string extends to the end.
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

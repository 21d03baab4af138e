package bigtext

// countRegexp returns how many matches FindRegexp finds in the first n characters, in batches like
// those of a guest.
func countRegexp(text *Text, re *Regexp, n int64) (count int64, err error) {
	for next := int64(0); next >= 0; {
		spans, after, err := text.FindRegexp(bg, re, 0, n, next, 4096)
		if err != nil {
			return count, err
		}
		count += int64(len(spans))
		next = after
	}
	return count, nil
}

// partOf returns the range of part i, without its separator.
func partOf(text *Text, s Splitter, a, b, i int64) (start, end int64, err error) {
	return text.PartsRange(bg, s, a, b, i, i+1)
}

// offsetOf returns the byte position of a character.
func offsetOf(text *Text, char int64) (at int64, err error) {
	err = text.withIndex(bg, func(x *index) error {
		at = x.byteOf(text.random, char)
		return nil
	})
	return at, err
}

// charsBefore returns how many characters start before a byte.
func charsBefore(text *Text, at int64) (n int64, err error) {
	err = text.withIndex(bg, func(x *index) error {
		n = x.charOf(text.random, at)
		return nil
	})
	return n, err
}

package bigtext

// Raw returns the bytes [a,b) by byte offset; they may begin and end within a
// character. As with Slice they are the mapping's own. The error wraps
// [ErrRange] for a bad range.
func (t *Text) Raw(a, b int64) (data []byte, err error) {
	if a < 0 || a > b || b > t.Bytes() {
		return nil, rangeError("read bytes", a, b, t.Bytes())
	}
	err = t.run(func() error { data = t.data[a:b:b]; return nil })
	return data, err
}

package frame

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// A Buffer cuts frames from bytes that its caller reads. Unlike a Reader, it can skip a damaged
// part of the stream. It does not support concurrent use.
type Buffer struct {
	// Max bounds a payload, in bytes.
	Max int

	data []byte
}

// Add appends a copy of bytes of the stream.
func (b *Buffer) Add(part []byte) {
	if need := len(b.data) + len(part); need > cap(b.data) {
		grown := make([]byte, len(b.data), b.room(need))
		copy(grown, b.data)
		b.data = grown
	}
	b.data = append(b.data, part...)
}

// room returns the capacity to allocate for at least need bytes: enough for the first frame, once a
// good part of it has arrived. A header alone may lie about its frame.
func (b *Buffer) room(need int) int {
	if len(b.data) >= headerSize {
		whole := headerSize + int64(binary.LittleEndian.Uint32(b.data))
		if whole <= int64(b.Max)+headerSize && whole <= 4*int64(need) {
			return max(need, int(whole))
		}
	}
	return 2 * need
}

// Len returns the number of buffered bytes.
func (b *Buffer) Len() int { return len(b.data) }

// Next cuts one frame. ok is false if the buffer does not contain a whole frame yet. The payload is
// valid until the next Add. The error wraps ErrTooLarge.
func (b *Buffer) Next() (kind byte, payload []byte, ok bool, err error) {
	if len(b.data) < headerSize {
		return 0, nil, false, nil
	}

	size := int64(binary.LittleEndian.Uint32(b.data))
	if size > int64(b.Max) {
		return 0, nil, false, fmt.Errorf(
			"cannot read a frame of %d bytes: the maximum is %d: %w",
			size, b.Max, ErrTooLarge,
		)
	}
	end := headerSize + size
	if int64(len(b.data)) < end {
		return 0, nil, false, nil
	}

	kind, payload = b.data[4], b.data[headerSize:end]
	b.data = b.data[end:]

	return kind, payload, true, nil
}

// SkipPast drops everything up to the end of mark and reports whether it found mark. It searches
// only the last n bytes: the caller has searched the rest.
func (b *Buffer) SkipPast(mark []byte, n int) bool {
	from := max(0, len(b.data)-n-len(mark))
	at := bytes.Index(b.data[from:], mark)
	if at < 0 {
		return false
	}

	b.data = b.data[from+at+len(mark):]
	return true
}

// AppendHeader appends the header of a frame with a payload of size bytes.
func AppendHeader(to []byte, kind byte, size int) []byte {
	return append( //nolint:gosec // bounded by the caller
		binary.LittleEndian.AppendUint32(to, uint32(size)), kind,
	)
}

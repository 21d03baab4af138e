package objectstest

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"testing"
)

// Bytes returns a stream of a number of bytes. Every second block of 64 KiB is compressible.
// Streams with different seeds differ.
func Bytes(seed byte, size int64) io.Reader {
	return io.LimitReader(&stream{state: uint64(seed) + 1}, size)
}

// stream makes numbers by xorshift. In every second block, it makes each of them 16 times.
type stream struct {
	state  uint64
	at     int64
	number [8]byte
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	for i := range p {
		repeat := int64(1)
		if s.at>>16&1 == 1 {
			repeat = 16
		}
		if s.at%(8*repeat) == 0 {
			s.state ^= s.state << 13
			s.state ^= s.state >> 7
			s.state ^= s.state << 17
			for j := range s.number {
				s.number[j] = byte(s.state >> (8 * j))
			}
		}
		p[i] = s.number[s.at&7]
		s.at++
	}
	return len(p), nil
}

// Digest returns the digest of a stream.
func Digest(t *testing.T, from io.Reader) string {
	t.Helper()
	sum := sha256.New()
	if _, err := io.Copy(sum, from); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

package sessions

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/rlmhq/rlm/internal/keep/snapshot"
)

// A conversation outside a store is a file, as in earlier versions of this program:
//
//	magic, the length of the header (4 bytes, big-endian), the header as JSON, the SHA-256 of
//	the header, a snapshot of the variables, which has its own checksum. It is compressed with
//	Zstandard since version 2.
const (
	magic     = "rlm-session\n"
	maxHeader = 256 << 20 // bytes
	// maxFile is the maximum size of a whole file, in bytes.
	maxFile = maxHeader + MaxState + 1<<20
)

// readFile reads a conversation and its snapshot.
func readFile(r io.Reader) (c Conversation, state []byte, err error) {
	r = &boundedReader{r, maxFile}
	if c, err = readHeader(r); err != nil {
		return c, nil, err
	}
	if c.Version != oldVersion {
		expand, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderConcurrency(1))
		if err != nil {
			return c, nil, err
		}
		defer expand.Close()
		r = expand
	}

	state, err = io.ReadAll(&boundedReader{r, MaxState})
	if err != nil {
		err = fmt.Errorf("cannot read its variables: %w", err)
	}
	return c, state, err
}

// maxWindow bounds the memory used to decompress a snapshot, in bytes.
const maxWindow = 64 << 20

// readHeader reads the part before the snapshot. It allocates no more bytes than it has read.
func readHeader(r io.Reader) (c Conversation, err error) {
	var head [len(magic) + 4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil || string(head[:len(magic)]) != magic {
		return c, errors.New("its file contains no session")
	}
	length := int64(binary.BigEndian.Uint32(head[len(magic):]))
	if length > maxHeader {
		return c, fmt.Errorf("its header has %d bytes, more than %d", length, maxHeader)
	}
	text, err := io.ReadAll(io.LimitReader(r, length))
	if err != nil {
		return c, err
	}

	var sum [sha256.Size]byte
	if _, err := io.ReadFull(r, sum[:]); err != nil || sum != sha256.Sum256(text) {
		return c, errors.New("its file is damaged")
	}

	if c, err = decodeConversation(text, oldVersion, fileVersion); err == nil {
		err = c.check()
	}
	return c, err
}

// portable returns a snapshot without the memory of its interpreter. A damaged snapshot is an
// error, since no session can be restored from it.
func portable(state []byte) ([]byte, error) {
	state, err := snapshot.Portable(state)
	if err != nil {
		return nil, fmt.Errorf("cannot read its variables: %w", err)
	}
	return state, nil
}

// writeFile writes a conversation and its snapshot.
func writeFile(w io.Writer, c Conversation, state []byte) error {
	c.Version, c.Bytes = fileVersion, 0
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if len(text) > maxHeader {
		return fmt.Errorf("its contexts and histories have %d bytes, more than %d", len(text), maxHeader)
	}

	sum := sha256.Sum256(text)
	out := binary.BigEndian.AppendUint32([]byte(magic), uint32(len(text))) //nolint:gosec // bounded above
	if _, err := w.Write(append(append(out, text...), sum[:]...)); err != nil {
		return err
	}

	compress, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return err
	}
	_, err = compress.Write(state)
	return errors.Join(err, compress.Close())
}

// boundedReader reads up to a maximum number of bytes.
type boundedReader struct {
	r    io.Reader
	left int
}

// Read implements io.Reader.
func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, errors.New("it is too large")
	}
	return n, err
}

// boundedWriter writes up to a maximum number of bytes.
type boundedWriter struct {
	w    io.Writer
	left int
}

// Room implements [snapshot.Bounded].
func (b *boundedWriter) Room() int64 { return int64(b.left) }

// Write implements io.Writer.
func (b *boundedWriter) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, fmt.Errorf("its variables have more than %d MiB: delete large ones, or keep them in files",
			MaxState>>20)
	}
	return b.w.Write(p)
}

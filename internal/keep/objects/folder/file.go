package folder

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/rlmhq/rlm/internal/keep/objects"
)

// A file begins with a frame that zstd skips. It has the sizes, which Stat and List would otherwise
// have to count, and reveals most damage before anything is decoded. All numbers are little-endian:
//
//	uint32  the magic number of a frame that zstd skips
//	uint32  the bytes of the frame that follow: 24
//	uint32  the version of the format
//	uint64  the bytes of the object
//	uint64  the bytes of the file that follow
//	uint32  the CRC-32C of the 20 bytes before it, and of the digest
const (
	headerSize    = 32
	skipMagic     = 0x184D2A5E
	formatVersion = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// makeHeader returns the beginning of the file of an object.
func makeHeader(o objects.Object, packed int64) []byte {
	h := make([]byte, 0, headerSize)
	h = binary.LittleEndian.AppendUint32(h, skipMagic)
	h = binary.LittleEndian.AppendUint32(h, headerSize-8)
	h = binary.LittleEndian.AppendUint32(h, formatVersion)
	h = binary.LittleEndian.AppendUint64(h, uint64(o.Size))
	h = binary.LittleEndian.AppendUint64(h, uint64(packed))
	return binary.LittleEndian.AppendUint32(h, checksum(h[8:], o.Digest))
}

// checksum returns the checksum of the fields of a header, for an object.
func checksum(fields []byte, digest string) uint32 {
	return crc32.Update(crc32.Checksum(fields, castagnoli), castagnoli, []byte(digest))
}

// parseHeader returns the size of an object, and the bytes of its file that must follow the header.
func parseHeader(h []byte, digest string) (size, packed int64, err error) {
	next := func() uint64 {
		n := binary.LittleEndian.Uint64(h)
		h = h[8:]
		return n
	}
	if len(h) != headerSize || next() != skipMagic|(headerSize-8)<<32 {
		return 0, 0, fmt.Errorf("%w: its file has no header", objects.ErrDamaged)
	}

	fields := h
	version := binary.LittleEndian.Uint32(h)
	h = h[4:]
	size, packed = int64(next()), int64(next())
	if binary.LittleEndian.Uint32(h) != checksum(fields[:20], digest) {
		return 0, 0, fmt.Errorf("%w: the checksum of its header differs", objects.ErrDamaged)
	}

	if version != formatVersion {
		return 0, 0, fmt.Errorf("its file has the format %d: "+
			"use the version of rlm that wrote it, or a later one", version)
	}
	if size < 0 || packed < 0 {
		return 0, 0, fmt.Errorf("%w: its header has impossible sizes", objects.ErrDamaged)
	}
	return size, packed, nil
}

// readHeader describes the object of a file, and leaves the file behind its header.
func readHeader(file *os.File, digest string) (objects.Object, error) {
	info, err := file.Stat()
	if err != nil {
		return objects.Object{}, err
	}
	header := make([]byte, headerSize)
	n, err := io.ReadFull(file, header)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return objects.Object{}, err
	}
	size, packed, err := parseHeader(header[:n], digest)
	if err != nil {
		return objects.Object{}, err
	}

	if got := info.Size() - headerSize; got != packed {
		return objects.Object{}, fmt.Errorf("%w: its file has %d of %d compressed bytes",
			objects.ErrDamaged, got, packed)
	}
	return objects.Object{Digest: digest, Size: size, Stored: info.ModTime()}, nil
}

// encoders are compressors without a file. Each has some megabytes of tables and history.
var encoders sync.Pool

// takeEncoder returns a compressor that writes to a file.
func takeEncoder(to io.Writer) (*zstd.Encoder, error) {
	if encoder, ok := encoders.Get().(*zstd.Encoder); ok {
		encoder.Reset(to)
		return encoder, nil
	}
	return zstd.NewWriter(to,
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
}

// returnEncoder keeps a compressor for the next file.
func returnEncoder(encoder *zstd.Encoder) {
	encoder.Reset(nil)
	encoders.Put(encoder)
}

// pack writes the file of an object, and describes the object.
func pack(ctx context.Context, to *os.File, from io.Reader) (o objects.Object, err error) {
	if _, err := to.Write(make([]byte, headerSize)); err != nil {
		return o, err
	}
	encoder, err := takeEncoder(to)
	if err != nil {
		return o, err
	}
	defer returnEncoder(encoder)

	if o, err = objects.Copy(ctx, encoder, from); err != nil {
		return o, err
	}
	if err := encoder.Close(); err != nil {
		return o, err
	}

	end, err := to.Seek(0, io.SeekCurrent)
	if err != nil {
		return o, err
	}
	_, err = to.WriteAt(makeHeader(o, end-headerSize), 0)
	return o, err
}

// maxWindow bounds the memory of a decoder. The compressor refers back to at most 4 MiB.
const maxWindow = 8 << 20

// object reads the bytes of an object from its file.
type object struct {
	ctx     context.Context //nolint:containedctx // the context of its reads, as in a request
	file    *os.File
	source  *source
	decoder *zstd.Decoder
	bytes   io.Reader
	explain func(error) error
	closed  bool
}

// unpack returns the bytes of an object. It owns the file unless it returns an error.
func unpack(ctx context.Context, file *os.File, digest string) (*object, error) {
	o, err := readHeader(file, digest)
	if err != nil {
		return nil, err
	}
	from := &source{from: file}
	decoder, err := newDecoder(from)
	if err != nil {
		return nil, err
	}
	return &object{
		ctx: ctx, file: file, source: from, decoder: decoder, bytes: objects.Verify(decoder, o),
	}, nil
}

// newDecoder returns a decoder without goroutines and with bounded memory.
func newDecoder(from io.Reader) (*zstd.Decoder, error) {
	return zstd.NewReader(from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow))
}

// Read implements io.Reader. What the decoder refuses is damage, unless the disk failed.
func (o *object) Read(p []byte) (int, error) {
	switch {
	case o.closed:
		return 0, o.explain(os.ErrClosed)
	case o.ctx.Err() != nil:
		return 0, o.explain(context.Cause(o.ctx))
	}

	n, err := o.bytes.Read(p)
	switch {
	case err == nil, err == io.EOF: //nolint:errorlint // only io.EOF itself is an end
		return n, err
	case o.source.err != nil:
		err = o.source.err
	case !errors.Is(err, objects.ErrDamaged):
		err = fmt.Errorf("%w: %w", objects.ErrDamaged, err)
	}
	return n, o.explain(err)
}

// Close implements io.Closer.
func (o *object) Close() error {
	o.closed = true
	o.decoder.Close()
	return o.file.Close()
}

// source remembers how reading a file failed.
type source struct {
	from io.Reader
	err  error
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

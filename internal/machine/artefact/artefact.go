// Package artefact compresses files for committing and embedding, and describes them, so that a
// program can verify the unpacked content.
package artefact

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// Artefact describes one compressed file.
type Artefact struct {
	File             string `json:"file"`
	Size             int    `json:"size"`
	SHA256           string `json:"sha256"`
	CompressedSize   int    `json:"compressed_size"`
	CompressedSHA256 string `json:"compressed_sha256"`
}

// Compress compresses data as tightly as the library can, in one thread: dividing the work among
// threads could affect the result.
func Compress(file string, data []byte) (Artefact, []byte, error) {
	enc, err := zstd.NewWriter(nil,
		zstd.WithEncoderLevel(zstd.SpeedBestCompression),
		zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(1<<25))
	if err != nil {
		return Artefact{}, nil, err
	}
	defer enc.Close()

	compressed := enc.EncodeAll(data, nil)
	return Artefact{
		File:             file,
		Size:             len(data),
		SHA256:           hash(data),
		CompressedSize:   len(compressed),
		CompressedSHA256: hash(compressed),
	}, compressed, nil
}

func hash(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Check compares the bytes of an artefact's file, and their unpacked content, with the manifest.
func (a Artefact) Check(compressed []byte) error {
	data, err := a.Decompress(compressed)
	if err == nil && (hash(data) != a.SHA256 || hash(compressed) != a.CompressedSHA256) {
		err = fmt.Errorf("%s is not what the manifest says", a.File)
	}
	return err
}

// slack is the room after the content that lets the library copy in blocks of 16 bytes. Without it,
// unpacking takes 50% longer.
const slack = 16

// Decompress decompresses the bytes of an artefact's file. It returns an error if the result does
// not have the size given in the manifest, and allocates little more than that size.
func (a Artefact) Decompress(compressed []byte) ([]byte, error) {
	return a.decompress(compressed, make([]byte, 0, a.Size+slack))
}

// DecompressInto is like Decompress, into zeroed memory with room for the content. The bytes after
// the content remain zero.
func (a Artefact) DecompressInto(memory, compressed []byte) error {
	if len(memory) < a.Size {
		return fmt.Errorf("%s has %d bytes, more than %d", a.File, a.Size, len(memory))
	}
	room := min(a.Size+slack, len(memory))
	data, err := a.decompress(compressed, memory[:0:room])
	clear(memory[a.Size:room])
	if err == nil && a.Size > 0 && &data[0] != &memory[0] {
		copy(memory, data) // the library allocated its own memory
	}
	return err
}

func (a Artefact) decompress(compressed, into []byte) ([]byte, error) {
	dec, err := zstd.NewReader(
		nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(max(a.Size, zstd.MinWindowSize))),
	)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.File, err)
	}
	defer dec.Close()
	data, err := dec.DecodeAll(compressed, into)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.File, err)
	}
	if len(data) != a.Size {
		return nil, fmt.Errorf("%s holds %d bytes, not %d", a.File, len(data), a.Size)
	}

	return data, nil
}

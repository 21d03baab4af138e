package codecache

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// A cache file consists of a nonce, the tag of the head, the length of the head, the head, zeros up
// to a page, and the data in chunks, whose tags are in the head. The zeros align the data so that
// it can be mapped. A tag is a GMAC under the cache's key: AES-GCM without a plaintext. The last
// bytes of the nonce count the tags of a file.
const (
	nonceSize  = 8
	tagSize    = 16
	prefixSize = nonceSize + tagSize + 4
	chunkSize  = 256 << 10
	pageSize   = 4096
	maxHead    = 1 << 20
)

// keyFile contains the key of a cache directory; only its user can read it.
const (
	keyFile = "key"
	keySize = 32
)

// seal creates and checks the tags of one cache directory. A file that another user added, that a
// crash truncated, or that the disk damaged has no valid tags. The user's own programs can read the
// key, so they can create tags.
type seal struct{ aead cipher.AEAD }

// Head describes a cache file.
type Head struct {
	// Key identifies the content of the file, and the program version that it is for.
	Key string
	// Name is the name of wazero's file. Hollow is the length in bytes of the hollow module before
	// the code. Both are set only for code.
	Name   string `json:",omitempty"`
	Hollow int64  `json:",omitempty"`
	// About is the writer's description of the data.
	About json.RawMessage `json:",omitempty"`
	// Length is the size of the data, in bytes. Tags are the tags of its chunks. Store sets both.
	Length int64
	Tags   []byte
}

// File is an open cache file with a verified head.
type File struct {
	Head  Head
	seal  *seal
	nonce []byte
	file  *os.File // nil once taken
	at    int64    // offset of the data
}

// Take returns the file and the offset of its data, a multiple of 4,096. The caller closes the
// file. Nothing in it may be used before Verify.
func (c *File) Take() (file *os.File, offset int64) {
	file, c.file = c.file, nil
	return file, c.at
}

func (c *File) close() error {
	if c.file == nil {
		return nil
	}
	return c.file.Close()
}

// readSeal reads the cache's key. It returns nil if the key is missing or was only partly written:
// nothing in the cache is then usable.
func readSeal(dir string) (*seal, error) {
	path := filepath.Join(dir, keyFile)
	f, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // a missing key is not an error
	}
	if err != nil {
		return nil, untrusted(dir, path, fmt.Sprintf("cannot be read (%v)", err))
	}
	defer f.Close()

	if reason := distrustKey(f); reason != "" {
		return nil, untrusted(dir, path, reason)
	}
	key, err := io.ReadAll(io.LimitReader(f, keySize+1))
	if err != nil {
		return nil, untrusted(dir, path, fmt.Sprintf("cannot be read (%v)", err))
	}
	if len(key) != keySize {
		return nil, nil //nolint:nilnil // an incomplete key counts as missing
	}

	return newSeal(key)
}

// makeSeal creates a new key for the cache, replacing an incomplete one.
func makeSeal(dir string) (*seal, error) {
	path := filepath.Join(dir, keyFile)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot use the cache directory: %w", err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|noFollow, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot use the cache directory: %w", err)
	}

	key := make([]byte, keySize)
	_, _ = rand.Read(key) // it never fails
	_, err = f.Write(key)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("cannot use the cache directory: %w", err)
	}

	return newSeal(key)
}

func newSeal(key []byte) (*seal, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	return &seal{aead}, err
}

// tag appends the tag of a part of a file. Part 0 is the head.
func (s *seal) tag(to, nonce []byte, part int, data []byte) []byte {
	return s.aead.Seal(to, binary.BigEndian.AppendUint32(nonce[:nonceSize:nonceSize], uint32(part)),
		nil, data)
}

var errChanged = errors.New("it is not what rlm has written")

// open opens a cache file and verifies its head.
func (s *seal) open(path, key string) (*File, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	c := &File{seal: s, file: f}
	if err := c.readHead(key); err != nil {
		return nil, errors.Join(err, f.Close())
	}

	return c, nil
}

func (c *File) readHead(key string) error {
	prefix := make([]byte, prefixSize)
	if _, err := io.ReadFull(c.file, prefix); err != nil {
		return err
	}
	size := binary.LittleEndian.Uint32(prefix[nonceSize+tagSize:])
	if size > maxHead {
		return errChanged
	}
	head := make([]byte, size)
	if _, err := io.ReadFull(c.file, head); err != nil {
		return err
	}

	c.nonce = prefix[:nonceSize]
	if !c.verify(prefix[nonceSize:nonceSize+tagSize], 0, head) {
		return errChanged
	}
	if err := json.Unmarshal(head, &c.Head); err != nil {
		return err
	}
	if chunks := (c.Head.Length + chunkSize - 1) / chunkSize; int64(len(c.Head.Tags)) != chunks*tagSize {
		return errChanged
	}
	if key != "" && c.Head.Key != key {
		return errors.New("it was made for another version of the program")
	}

	c.at = int64(prefixSize+len(head)) + int64(padding(len(head)))
	zeros := make([]byte, padding(len(head)))
	if _, err := io.ReadFull(c.file, zeros); err != nil || !isZero(zeros) {
		return errors.Join(errChanged, err)
	}

	info, err := c.file.Stat()
	if err == nil && info.Size() != c.at+c.Head.Length {
		err = errChanged
	}
	return err
}

// padding returns the number of zeros after a head of n bytes.
func padding(n int) int { return -(prefixSize + n) & (pageSize - 1) }

func isZero(data []byte) bool { return len(bytes.Trim(data, "\x00")) == 0 }

func (c *File) verify(tag []byte, part int, data []byte) bool {
	return subtle.ConstantTimeCompare(tag, c.seal.tag(nil, c.nonce, part, data)) == 1
}

// verifyChunk verifies a chunk of the data, numbered from 0.
func (c *File) verifyChunk(i int, chunk []byte) bool {
	return c.verify(c.Head.Tags[i*tagSize:(i+1)*tagSize], i+1, chunk)
}

// Verify verifies the data of a mapped file, using all processors.
func (c *File) Verify(data []byte) error {
	if int64(len(data)) != c.Head.Length {
		return errChanged
	}
	count := (len(data) + chunkSize - 1) / chunkSize
	var next atomic.Int64
	var isChanged atomic.Bool

	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), count) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < count; i = int(next.Add(1)) - 1 {
				if !c.verifyChunk(i, data[i*chunkSize:min((i+1)*chunkSize, len(data))]) {
					isChanged.Store(true)
				}
			}
		})
	}
	group.Wait()

	if isChanged.Load() {
		return errChanged
	}
	return nil
}

// readAll returns the verified data.
func (c *File) readAll() ([]byte, error) {
	data := bytes.NewBuffer(make([]byte, 0, c.Head.Length))
	_, err := c.WriteTo(data)
	return data.Bytes(), err
}

// WriteTo writes the data. It verifies each chunk in memory before writing it.
func (c *File) WriteTo(w io.Writer) (written int64, err error) {
	buffer := make([]byte, chunkSize)
	for i := 0; written < c.Head.Length; i++ {
		chunk := buffer[:min(chunkSize, c.Head.Length-written)]
		if _, err := io.ReadFull(c.file, chunk); err != nil {
			return written, err
		}
		if !c.verifyChunk(i, chunk) {
			return written, errChanged
		}

		if _, err := w.Write(chunk); err != nil {
			return written, err
		}
		written += int64(len(chunk))
	}

	return written, nil
}

// write creates a cache file atomically: readers find the whole file or none.
func (s *seal) write(path string, head Head, data []byte) error {
	nonce := make([]byte, nonceSize)
	_, _ = rand.Read(nonce) // it never fails
	head.Length = int64(len(data))
	for chunk := range slices.Chunk(data, chunkSize) {
		head.Tags = s.tag(head.Tags, nonce, len(head.Tags)/tagSize+1, chunk)
	}
	encoded, err := json.Marshal(head)
	if err != nil {
		return err
	}
	prefix := s.tag(nonce, nonce, 0, encoded)
	prefix = binary.LittleEndian.AppendUint32(prefix, uint32(len(encoded)))

	f, err := os.CreateTemp(filepath.Dir(path), newPrefix)
	if err != nil {
		return err
	}
	for _, part := range [][]byte{prefix, encoded, make([]byte, padding(len(encoded))), data} {
		if err == nil {
			_, err = f.Write(part)
		}
	}

	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}

	return nil
}

// openRegular opens a file for reading, without following a link.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil, err
	}

	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is not a file")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

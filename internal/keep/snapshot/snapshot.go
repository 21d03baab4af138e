// Package snapshot reads and writes the variables of a session, for another session in this or a
// later process.
package snapshot

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"

	"github.com/cespare/xxhash/v2"

	"github.com/rlmhq/rlm/internal/machine/prefault"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/tiers"
)

// The format is
//
//	magic, the length of the header (4 bytes, big-endian), the header as JSON,
//	the data of each namespace and its exact state, the checksum of everything before it.
//
// The checksum detects accidental damage. It is the 64-bit XXH64, or the SHA-256 in version 1. It
// is not a signature: a snapshot is as untrusted as the snippets that ran, and only a sandbox
// decodes the data.
const (
	magic      = "rlm-snapshot\n"
	Version    = 3 // the newest
	oldVersion = 1 // with a SHA-256
	noExact    = 2 // the last version without exact states

	maxHeader   = 4 << 20 // bytes; mostly reports of values left behind
	maxSnippets = 8 << 20 // bytes of snippets that the session ran before
)

// maxExact bounds the exact state of a namespace, in bytes.
const maxExact = 160 << 20

// maxData bounds the data of one namespace in each format, in bytes.
var maxData = map[string]int64{
	session.FormatPickle: 1 << 30,
	session.FormatReplay: 64 << 20,
}

// Header is the header of a snapshot.
type Header struct {
	Version    int         `json:"version"`
	Contexts   []Context   `json:"contexts"`
	Namespaces []Namespace `json:"namespaces"`
}

// Context identifies a context. A snapshot refers to contexts but does not contain them.
type Context struct {
	Kind  string `json:"kind"`  // "text", "dir" or "value"
	Bytes int64  `json:"bytes"` // number of files if Kind is "dir"
}

// Namespace describes the variables of one language.
type Namespace struct {
	Language tiers.Language `json:"language"`
	Format   string         `json:"format"`
	From     string         `json:"from"`
	Snippet  int            `json:"snippet"`
	Left     []tiers.Left   `json:"left,omitempty"`
	Bytes    int64          `json:"bytes"`
	Exact    int64          `json:"exact,omitempty"` // bytes; 0 for none
}

// Data is the content of a namespace in a snapshot: see [tiers.State].
type Data struct{ Portable, Exact []byte }

// Languages are the languages with namespaces, in the order within a snapshot.
var Languages = []tiers.Language{tiers.Python, tiers.Go}

// Bounded is a writer with limited capacity.
type Bounded interface {
	// Room returns how many more bytes fit.
	Room() int64
}

// Write writes a snapshot with the data of each namespace. It sets the header's version and sizes.
// It omits the exact states if they do not fit into a [Bounded] writer.
func Write(w io.Writer, header *Header, data []Data) error {
	parts, err := join(header, data)
	if bounded, is := w.(Bounded); is && err == nil && size(parts) > bounded.Room() {
		data = slices.Clone(data)
		for i := range data {
			data[i].Exact = nil
		}
		parts, err = join(header, data)
	}
	if err != nil {
		return err
	}

	// The checksum is computed in parallel with the writing, which may compress, or wait for a
	// disk.
	sum := make(chan []byte, 1)
	go func() {
		digest := xxhash.New()
		for _, part := range parts {
			_, _ = digest.Write(part) // it never fails
		}
		sum <- digest.Sum(nil)
	}()
	for _, part := range parts {
		if err == nil {
			_, err = w.Write(part)
		}
	}

	digest := <-sum
	if err == nil {
		_, err = w.Write(digest)
	}
	return err
}

// join returns the parts of a snapshot before its checksum.
func join(header *Header, data []Data) ([][]byte, error) {
	header.Version = noExact // readable by earlier programs
	for i, d := range data {
		n := &header.Namespaces[i]
		n.Bytes, n.Exact = int64(len(d.Portable)), int64(len(d.Exact))
		if n.Exact > 0 {
			header.Version = Version
		}
	}

	text, err := json.Marshal(header)
	if err != nil {
		return nil, err
	}
	if len(text) > maxHeader {
		return nil, fmt.Errorf("its header has %d bytes, more than %d", len(text), maxHeader)
	}

	length := binary.BigEndian.AppendUint32(nil, uint32(len(text))) //nolint:gosec // bounded above
	parts := [][]byte{[]byte(magic), length, text}
	for _, d := range data {
		parts = append(parts, d.Portable, d.Exact)
	}
	return parts, nil
}

// Portable returns a complete snapshot without its exact states, for another machine or another
// user: exact states also contain short contexts, and values that snippets have deleted.
func Portable(whole []byte) ([]byte, error) {
	header, data, err := Read(bytes.NewReader(whole))
	if err != nil {
		return nil, err
	}

	for i := range data {
		data[i].Exact = nil
	}
	var w bytes.Buffer
	err = Write(&w, header, data)
	return w.Bytes(), err
}

// size returns the total size of all parts and their checksum, in bytes.
func size(parts [][]byte) int64 {
	n := xxhash.New().Size()
	for _, part := range parts {
		n += len(part)
	}
	return int64(n)
}

// Read reads a snapshot to its end, and returns its header and the data of each namespace. Its
// allocations are bounded by the data it has read.
func Read(r io.Reader) (*Header, []Data, error) {
	header, begin, err := readHeader(r)
	if err != nil {
		return nil, nil, err
	}

	sum := header.newSum()
	_, _ = sum.Write(begin) // it never fails
	data := make([]Data, len(header.Namespaces))
	for i, n := range header.Namespaces {
		if data[i].Portable, err = readExactly(io.TeeReader(r, sum), n.Bytes); err != nil {
			return nil, nil, err
		}
		if data[i].Exact, err = readExactly(io.TeeReader(r, sum), n.Exact); err != nil {
			return nil, nil, err
		}
	}

	return header, data, checkEnd(r, sum)
}

// ReadHeader reads the header of a snapshot. It does not check the rest.
func ReadHeader(r io.Reader) (*Header, error) {
	header, _, err := readHeader(r)
	return header, err
}

// readHeader returns the header of a snapshot and its bytes.
func readHeader(r io.Reader) (*Header, []byte, error) {
	begin, err := readExactly(r, int64(len(magic)+4))
	if err != nil || string(begin[:len(magic)]) != magic {
		return nil, nil, errors.New("it is not a snapshot")
	}
	text, err := readText(r, binary.BigEndian.Uint32(begin[len(magic):]))
	if err != nil {
		return nil, nil, err
	}
	header, err := decode(text)
	return header, append(begin, text...), err
}

// newSum returns the checksum function for snapshots of the header's version.
func (h *Header) newSum() hash.Hash {
	if h.Version == oldVersion {
		return sha256.New()
	}
	return xxhash.New()
}

// readText reads the JSON of a header.
func readText(r io.Reader, size uint32) ([]byte, error) {
	if size > maxHeader {
		return nil, fmt.Errorf("its header has %d bytes, more than %d", size, maxHeader)
	}
	return readExactly(r, int64(size))
}

func decode(text []byte) (*Header, error) {
	// Check the version first, because other versions have other fields.
	var version struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return nil, fmt.Errorf("its header is damaged: %w", err)
	}
	if version.Version < oldVersion || version.Version > Version {
		return nil, fmt.Errorf("it has version %d, but this program reads up to version %d",
			version.Version, Version)
	}

	header := &Header{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()

	if err := decoder.Decode(header); err != nil {
		return nil, fmt.Errorf("its header is damaged: %w", err)
	}
	if err := header.check(); err != nil {
		return nil, err
	}
	return header, nil
}

// check refuses a header that no session would write.
func (h *Header) check() error {
	if len(h.Namespaces) > len(Languages) {
		return fmt.Errorf("it has %d namespaces, more than %d",
			len(h.Namespaces), len(Languages))
	}
	seen := map[tiers.Language]bool{}
	for _, n := range h.Namespaces {
		switch {
		case n.Language != tiers.Python && n.Language != tiers.Go:
			return fmt.Errorf("it has variables of the language %q", n.Language)
		case seen[n.Language]:
			return fmt.Errorf("it has the variables of %s twice", n.Language)
		case maxData[n.Format] == 0:
			return fmt.Errorf("its variables have the unknown format %q", n.Format)
		case n.Bytes < 0 || n.Bytes > maxData[n.Format],
			n.Snippet < 0 || n.Snippet > maxSnippets:
			return fmt.Errorf("its variables have %d bytes after %d snippets", n.Bytes, n.Snippet)
		case n.Exact < 0 || n.Exact > maxExact,
			n.Exact > 0 && (h.Version <= noExact || n.Format != session.FormatPickle):
			return fmt.Errorf("its variables have an exact state of %d bytes", n.Exact)
		}
		seen[n.Language] = true
	}
	return nil
}

// believed is the maximum number of bytes that a reader of a snapshot allocates before the data
// arrives.
const believed = 16 << 20

// readExactly reads n bytes. Beyond the first believed bytes, the buffer grows only with the data
// that arrives, because n is untrusted.
func readExactly(r io.Reader, n int64) ([]byte, error) {
	data := make([]byte, 0, min(n, believed))
	end := prefault.Begin(data[:cap(data)])
	defer end()
	for int64(len(data)) < n {
		if len(data) == cap(data) {
			data = append(make([]byte, 0, min(n, 2*int64(cap(data)))), data...)
		}
		// A part is small enough to remain in the processor's cache until it is used.
		part := data[len(data):min(len(data)+onePart, cap(data))]
		read, err := io.ReadFull(r, part)
		data = data[:len(data)+read]
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, fmt.Errorf("it ends early: %w", io.ErrUnexpectedEOF)
		case err != nil:
			return nil, err
		}
	}
	return data, nil
}

// onePart is the size of one read of a snapshot, in bytes.
const onePart = 256 << 10

// checkEnd checks the checksum that follows the data, and refuses anything after it.
func checkEnd(r io.Reader, sum hash.Hash) error {
	want, err := readExactly(r, int64(sum.Size()))
	if err != nil {
		return err
	}
	if !bytes.Equal(want, sum.Sum(nil)) {
		return errors.New("it is damaged: its checksum does not match")
	}
	if rest, err := io.CopyN(io.Discard, r, 1); rest > 0 || !errors.Is(err, io.EOF) {
		return errors.New("it has trailing data")
	}
	return nil
}

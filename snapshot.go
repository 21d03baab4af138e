package rlm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/rlmhq/rlm/internal/session"
	"github.com/rlmhq/rlm/tiers"
)

// A snapshot is
//
//	snapshotMagic, the length of the header (4 bytes, big-endian), the header as JSON,
//	the data of each namespace, the SHA-256 of everything before it.
//
// The checksum finds accidental damage. It is not a signature: a snapshot is as untrusted as
// the code that ran, and only a sandbox decodes the data.
const (
	snapshotMagic   = "rlm-snapshot\n"
	snapshotVersion = 1

	maxSnapshotHeader = 4 << 20 // bytes; most of a header is reports of values left behind
	maxSnippets       = 8 << 20 // that a session has run before its snapshot
)

// maxSnapshotData bounds the data of one namespace in each format, in bytes.
var maxSnapshotData = map[string]int64{
	session.FormatPickle: 1 << 30,
	session.FormatReplay: 64 << 20,
}

// snapshotHeader is the header of a snapshot.
type snapshotHeader struct {
	Version    int                 `json:"version"`
	Contexts   []snapshotContext   `json:"contexts"`
	Namespaces []snapshotNamespace `json:"namespaces"`
}

// snapshotContext identifies a context. A snapshot refers to contexts and does not hold them.
type snapshotContext struct {
	Kind  string `json:"kind"`  // "text", "dir" or "value"
	Bytes int64  `json:"bytes"` // for a dir, the number of files
}

// snapshotNamespace is the variables of one language.
type snapshotNamespace struct {
	Language tiers.Language `json:"language"`
	Format   string         `json:"format"`
	From     string         `json:"from"`
	Snippet  int            `json:"snippet"`
	Left     []tiers.Left   `json:"left,omitempty"`
	Bytes    int64          `json:"bytes"`
}

// snapshotLanguages are the languages with namespaces, in the order of a snapshot.
var snapshotLanguages = []tiers.Language{tiers.Python, tiers.Go}

// Snapshot writes the session's variables, for [Session.Restore] in another session of this
// or a later process. It omits contexts and functions: open the other session with the same
// ones. A placeholder replaces a value that cannot be written; it raises an exception that
// says so when a snippet uses it.
func (s *Session) Snapshot(ctx context.Context, w io.Writer) error {
	header, data, err := s.export(ctx)
	if err != nil {
		return err
	}

	// After export: a slow writer does not keep the session.
	if err := writeSnapshot(w, header, data); err != nil {
		return fmt.Errorf("cannot write the snapshot: %w", err)
	}
	return nil
}

// export returns the header of a snapshot, and the data of each namespace.
func (s *Session) export(ctx context.Context) (*snapshotHeader, [][]byte, error) {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer leave()

	header := &snapshotHeader{
		Version:    snapshotVersion,
		Contexts:   describeContexts(s.allInputs()),
		Namespaces: []snapshotNamespace{},
	}
	var data [][]byte
	for _, language := range snapshotLanguages {
		if s.runner.Home(language) == "" {
			continue
		}
		state, err := s.runner.Export(ctx, language)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot take a snapshot: %w", err)
		}
		header.Namespaces = append(header.Namespaces, snapshotNamespace{
			Language: language, Format: state.Format, From: state.From, Snippet: state.Snippet,
			Left: state.Left, Bytes: int64(len(state.Data)),
		})
		data = append(data, state.Data)
	}
	return header, data, nil
}

// Restore loads the variables of a snapshot into a session that has not run a snippet yet.
// The Report lists the values that could not be restored. A snapshot that is damaged, of
// another version, or of a session with other contexts is an error, and leaves the session
// unchanged.
//
// A snapshot may come from an untrusted source: it can do only what the session's snippets
// can do.
func (s *Session) Restore(ctx context.Context, r io.Reader) (tiers.Report, error) {
	// The session is free during the read, which may take long.
	_, leave, err := s.enter(ctx)
	if err != nil {
		return tiers.Report{}, err
	}
	leave()
	header, data, err := readSnapshot(readerUntil{ctx, r})
	if err != nil {
		return tiers.Report{}, fmt.Errorf("cannot restore the snapshot: %w", err)
	}

	ctx, leave, err = s.enter(ctx)
	if err != nil {
		return tiers.Report{}, err
	}
	defer leave()

	for _, language := range snapshotLanguages {
		if s.runner.Home(language) != "" {
			return tiers.Report{}, errors.New("cannot restore into a session that has run a " +
				"snippet: open another one")
		}
	}
	if err := header.checkContexts(describeContexts(s.allInputs())); err != nil {
		return tiers.Report{}, fmt.Errorf("cannot restore the snapshot: %w", err)
	}

	states := make([]tiers.State, len(header.Namespaces))
	for i, n := range header.Namespaces {
		states[i] = tiers.State{
			Language: n.Language, Format: n.Format, From: n.From, Snippet: n.Snippet,
			Left: n.Left, Data: data[i],
		}
	}
	report, err := s.runner.Import(ctx, states...)
	if err != nil {
		return tiers.Report{}, fmt.Errorf("cannot restore the snapshot: %w", err)
	}
	return report, nil
}

func describeContexts(inputs []tiers.Input) []snapshotContext {
	all := make([]snapshotContext, 0, len(inputs))
	for _, in := range inputs {
		switch {
		case in.Text != nil:
			all = append(all, snapshotContext{"text", in.Text.Size()})
		case in.Dir != nil:
			all = append(all, snapshotContext{"dir", int64(len(in.Dir.Names()))})
		default:
			all = append(all, snapshotContext{"value", int64(len(in.Value))})
		}
	}
	return all
}

// checkContexts compares the contexts with the contexts of a session.
func (h *snapshotHeader) checkContexts(have []snapshotContext) error {
	if len(h.Contexts) != len(have) {
		return fmt.Errorf("it was taken with %d contexts, but the session has %d",
			len(h.Contexts), len(have))
	}
	for i, want := range h.Contexts {
		if want != have[i] {
			return fmt.Errorf("context_%d was a %s of size %d, but the session has a %s of size %d",
				i, want.Kind, want.Bytes, have[i].Kind, have[i].Bytes)
		}
	}
	return nil
}

func writeSnapshot(w io.Writer, header *snapshotHeader, data [][]byte) error {
	text, err := json.Marshal(header)
	if err != nil {
		return err
	}
	if len(text) > maxSnapshotHeader {
		return fmt.Errorf("its header has %d bytes, more than %d", len(text), maxSnapshotHeader)
	}

	var length [4]byte
	binary.BigEndian.PutUint32(length[:], uint32(len(text))) //nolint:gosec // bounded above
	parts := append([][]byte{[]byte(snapshotMagic), length[:], text}, data...)

	// The sum is computed during the writing: that may compress, or wait for a disk.
	sum := make(chan []byte, 1)
	go func() {
		digest := sha256.New()
		for _, part := range parts {
			digest.Write(part)
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

// readSnapshot reads a snapshot to its end. It allocates no more than it has read.
func readSnapshot(r io.Reader) (*snapshotHeader, [][]byte, error) {
	sum := sha256.New()
	both := io.TeeReader(r, sum)

	magic, err := readExactly(both, int64(len(snapshotMagic)))
	if err != nil || string(magic) != snapshotMagic {
		return nil, nil, errors.New("it is not a snapshot")
	}
	header, err := readHeader(both)
	if err != nil {
		return nil, nil, err
	}

	data := make([][]byte, len(header.Namespaces))
	for i, n := range header.Namespaces {
		if data[i], err = readExactly(both, n.Bytes); err != nil {
			return nil, nil, err
		}
	}
	return header, data, checkEnd(r, sum)
}

func readHeader(r io.Reader) (*snapshotHeader, error) {
	length, err := readExactly(r, 4)
	if err != nil {
		return nil, err
	}
	size := int64(binary.BigEndian.Uint32(length))
	if size > maxSnapshotHeader {
		return nil, fmt.Errorf("its header has %d bytes, more than %d", size, maxSnapshotHeader)
	}
	text, err := readExactly(r, size)
	if err != nil {
		return nil, err
	}

	// Check the version first, because other versions have other fields.
	var version struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return nil, fmt.Errorf("its header is damaged: %w", err)
	}
	if version.Version != snapshotVersion {
		return nil, fmt.Errorf("it has version %d, but this program reads version %d",
			version.Version, snapshotVersion)
	}

	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	header := &snapshotHeader{}
	if err := decoder.Decode(header); err != nil {
		return nil, fmt.Errorf("its header is damaged: %w", err)
	}
	if err := header.check(); err != nil {
		return nil, err
	}
	return header, nil
}

// check refuses a header that no session writes.
func (h *snapshotHeader) check() error {
	if len(h.Namespaces) > len(snapshotLanguages) {
		return fmt.Errorf("it has %d namespaces, more than %d",
			len(h.Namespaces), len(snapshotLanguages))
	}
	seen := map[tiers.Language]bool{}
	for _, n := range h.Namespaces {
		switch {
		case n.Language != tiers.Python && n.Language != tiers.Go:
			return fmt.Errorf("it has variables of the language %q", n.Language)
		case seen[n.Language]:
			return fmt.Errorf("it has the variables of %s twice", n.Language)
		case maxSnapshotData[n.Format] == 0:
			return fmt.Errorf("its variables have the unknown format %q", n.Format)
		case n.Bytes < 0 || n.Bytes > maxSnapshotData[n.Format],
			n.Snippet < 0 || n.Snippet > maxSnippets:
			return fmt.Errorf("its variables have %d bytes after %d snippets", n.Bytes, n.Snippet)
		}
		seen[n.Language] = true
	}
	return nil
}

// readerUntil reads until its context ends.
type readerUntil struct {
	ctx context.Context //nolint:containedctx // of one call
	r   io.Reader
}

// Read implements io.Reader.
func (r readerUntil) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(p)
}

// believed is how many bytes a reader of a snapshot allocates before they have arrived.
const believed = 16 << 20

// readExactly reads n bytes. Beyond what is believed, the buffer grows only with the data that
// arrives, because n is untrusted.
func readExactly(r io.Reader, n int64) ([]byte, error) {
	var buffer bytes.Buffer
	buffer.Grow(int(min(n, believed)) + bytes.MinRead) // ReadFrom wants the room for a last look
	read, err := io.Copy(&buffer, io.LimitReader(r, n))
	if err != nil {
		return nil, err
	}
	if read < n {
		return nil, fmt.Errorf("it ends early: %w", io.ErrUnexpectedEOF)
	}
	return buffer.Bytes(), nil
}

// checkEnd compares the checksum that follows, and refuses further data.
func checkEnd(r io.Reader, sum hash.Hash) error {
	want, err := readExactly(r, sha256.Size)
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

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

	"github.com/rlmhq/rlm/tiers"
)

// A snapshot is
//
//	snapshotMagic, the length of the head (4 bytes, big-endian), the head as JSON,
//	the data of each namespace, the SHA-256 of all before.
//
// The sum finds accidents. It is no signature: a snapshot is as hostile as the code that
// ran, and only a sandbox decodes the data.
const (
	snapshotMagic   = "rlm-snapshot\n"
	snapshotVersion = 1

	maxSnapshotHead = 4 << 20 // bytes; reports of what was left behind are the most of it
	maxSnapshotData = 8 << 30 // bytes, of one namespace
)

// snapshotHead is the head of a snapshot.
type snapshotHead struct {
	Version    int                 `json:"version"`
	Contexts   []snapshotContext   `json:"contexts"`
	Namespaces []snapshotNamespace `json:"namespaces"`
}

// snapshotContext tells contexts apart. A namespace refers to them and does not have them.
type snapshotContext struct {
	Kind  string `json:"kind"`  // "text", "dir" or "value"
	Bytes int64  `json:"bytes"` // of a dir the number of files
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

// snapshotLanguages are those that have namespaces, in the order of a snapshot.
var snapshotLanguages = []tiers.Language{tiers.Python, tiers.Go}

// Snapshot writes the session's variables, for [Session.Restore] in another session, of
// this or a later process. It has neither contexts nor functions: the other session must
// be opened with the same ones. A value that cannot be written leaves a stand-in, which
// says so when a snippet uses it.
func (s *Session) Snapshot(ctx context.Context, w io.Writer) error {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()

	head := snapshotHead{
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
			return fmt.Errorf("cannot take a snapshot: %w", err)
		}
		head.Namespaces = append(head.Namespaces, snapshotNamespace{
			Language: language, Format: state.Format, From: state.From, Snippet: state.Snippet,
			Left: state.Left, Bytes: int64(len(state.Data)),
		})
		data = append(data, state.Data)
	}

	if err := writeSnapshot(w, &head, data); err != nil {
		return fmt.Errorf("cannot write the snapshot: %w", err)
	}
	return nil
}

// Restore brings the variables of a snapshot into a session that has run nothing yet. The
// Report says what could not come along. A snapshot that is damaged, of another version,
// or taken over other contexts is an error, and the session is as before.
//
// A snapshot may come from an untrusted source: it gets no further than code of the
// session gets.
func (s *Session) Restore(ctx context.Context, r io.Reader) (tiers.Report, error) {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return tiers.Report{}, err
	}
	defer leave()

	for _, language := range snapshotLanguages {
		if s.runner.Home(language) != "" {
			return tiers.Report{}, errors.New(
				"cannot restore a session that has run a snippet: open another one",
			)
		}
	}
	head, data, err := readSnapshot(r)
	if err == nil {
		err = head.checkContexts(describeContexts(s.allInputs()))
	}
	if err != nil {
		return tiers.Report{}, fmt.Errorf("cannot restore the snapshot: %w", err)
	}

	var whole tiers.Report
	for i, n := range head.Namespaces {
		report, err := s.runner.Import(ctx, tiers.State{
			Language: n.Language, Format: n.Format, From: n.From, Snippet: n.Snippet,
			Left: n.Left, Data: data[i],
		})
		if err != nil {
			return whole, fmt.Errorf("cannot restore the snapshot: %w", err)
		}
		whole.Moved += report.Moved
		whole.Left = append(whole.Left, report.Left...)
	}
	return whole, nil
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

// checkContexts compares the contexts with those of a session.
func (h *snapshotHead) checkContexts(have []snapshotContext) error {
	if len(h.Contexts) != len(have) {
		return fmt.Errorf("it was taken with %d contexts, and the session has %d", len(h.Contexts),
			len(have))
	}
	for i, want := range h.Contexts {
		if want != have[i] {
			return fmt.Errorf("context_%d was a %s of size %d, and here is a %s of size %d",
				i, want.Kind, want.Bytes, have[i].Kind, have[i].Bytes)
		}
	}
	return nil
}

func writeSnapshot(w io.Writer, head *snapshotHead, data [][]byte) error {
	text, err := json.Marshal(head)
	if err != nil {
		return err
	}
	if len(text) > maxSnapshotHead {
		return fmt.Errorf("its head has %d bytes, the limit is %d", len(text), maxSnapshotHead)
	}

	sum := sha256.New()
	both := io.MultiWriter(w, sum)
	var length [4]byte
	binary.BigEndian.PutUint32(length[:], uint32(len(text))) //nolint:gosec // bounded above
	for _, part := range append([][]byte{[]byte(snapshotMagic), length[:], text}, data...) {
		if _, err := both.Write(part); err != nil {
			return err
		}
	}
	_, err = w.Write(sum.Sum(nil))
	return err
}

// readSnapshot reads a snapshot to its end. It reads no more than the snapshot says, and
// allocates no more than it has read.
func readSnapshot(r io.Reader) (*snapshotHead, [][]byte, error) {
	sum := sha256.New()
	both := io.TeeReader(r, sum)

	magic, err := readExactly(both, int64(len(snapshotMagic)))
	if err != nil || string(magic) != snapshotMagic {
		return nil, nil, errors.New("it does not begin like a snapshot")
	}
	head, err := readHead(both)
	if err != nil {
		return nil, nil, err
	}

	data := make([][]byte, len(head.Namespaces))
	for i, n := range head.Namespaces {
		if data[i], err = readExactly(both, n.Bytes); err != nil {
			return nil, nil, err
		}
	}
	return head, data, checkEnd(r, sum)
}

func readHead(r io.Reader) (*snapshotHead, error) {
	length, err := readExactly(r, 4)
	if err != nil {
		return nil, err
	}
	size := int64(binary.BigEndian.Uint32(length))
	if size > maxSnapshotHead {
		return nil, fmt.Errorf("its head has %d bytes, the limit is %d", size, maxSnapshotHead)
	}
	text, err := readExactly(r, size)
	if err != nil {
		return nil, err
	}

	// The version first: another one has other fields.
	var version struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return nil, fmt.Errorf("its head is damaged: %w", err)
	}
	if version.Version != snapshotVersion {
		return nil, fmt.Errorf("it is of version %d, this program reads %d", version.Version,
			snapshotVersion)
	}

	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	head := &snapshotHead{}
	if err := decoder.Decode(head); err != nil {
		return nil, fmt.Errorf("its head is damaged: %w", err)
	}
	if err := head.check(); err != nil {
		return nil, err
	}
	return head, nil
}

// check refuses heads that no session has written.
func (h *snapshotHead) check() error {
	if len(h.Namespaces) > len(snapshotLanguages) {
		return fmt.Errorf("it has %d namespaces", len(h.Namespaces))
	}
	seen := map[tiers.Language]bool{}
	for _, n := range h.Namespaces {
		switch {
		case n.Language != tiers.Python && n.Language != tiers.Go:
			return fmt.Errorf("it has variables of the language %q", n.Language)
		case seen[n.Language]:
			return fmt.Errorf("it has the variables of %s twice", n.Language)
		case n.Format != tiers.FormatPickle && n.Format != tiers.FormatReplay:
			return fmt.Errorf("its variables have the unknown format %q", n.Format)
		case n.Bytes < 0 || n.Bytes > maxSnapshotData || n.Snippet < 0:
			return fmt.Errorf("its variables have %d bytes after %d snippets", n.Bytes, n.Snippet)
		}
		seen[n.Language] = true
	}
	return nil
}

// readExactly reads n bytes. The buffer grows with what arrives, whatever n says.
func readExactly(r io.Reader, n int64) ([]byte, error) {
	var buffer bytes.Buffer
	read, err := io.Copy(&buffer, io.LimitReader(r, n))
	if err != nil {
		return nil, err
	}
	if read < n {
		return nil, fmt.Errorf("it ends early: %w", io.ErrUnexpectedEOF)
	}
	return buffer.Bytes(), nil
}

// checkEnd compares the sum that follows, and wants nothing after it.
func checkEnd(r io.Reader, sum hash.Hash) error {
	want, err := readExactly(r, sha256.Size)
	if err != nil {
		return err
	}
	if !bytes.Equal(want, sum.Sum(nil)) {
		return errors.New("it is damaged: its checksum is another")
	}
	if rest, err := io.CopyN(io.Discard, r, 1); rest > 0 || !errors.Is(err, io.EOF) {
		return errors.New("something follows it")
	}
	return nil
}

// Package sessions keeps conversations in files of the user, one for each name.
package sessions

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/klauspost/compress/zstd"

	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/internal/texts"
	"github.com/rlmhq/rlm/repl/llm"
)

// A file is
//
//	magic, the length of the header (4 bytes, big-endian), the header as JSON, the SHA-256 of
//	the header, a snapshot of the variables, which has a checksum of its own. It is compressed
//	with Zstandard since version 2.
const (
	magic      = "rlm-session\n"
	version    = 2
	oldVersion = 1
	maxHeader  = 256 << 20 // bytes
)

// Limits of what a file holds besides the variables.
const (
	MaxText      = 64 << 20  // bytes of a context that has no file
	MaxState     = 256 << 20 // bytes of a snapshot before compression
	maxContexts  = 1_000
	maxQuestions = 10_000
	maxHistory   = 16 << 20 // bytes of whole histories; of older ones, question and answer stay
	maxMessage   = 50_000   // characters
)

// Context is a context of a conversation: the path of a file or a directory, or several, or a
// copy.
type Context struct {
	Path     string          `json:"path,omitempty"`  // absolute
	Paths    []string        `json:"paths,omitempty"` // the same, if there are several
	Name     string          `json:"name,omitempty"`  // of a copy
	Variable string          `json:"variable,omitempty"`
	Text     []byte          `json:"text,omitzero"`
	JSON     json.RawMessage `json:"json,omitzero"`
	Reading  Reading         `json:"reading,omitzero"`
}

// Equals reports whether two contexts are the same.
func (c *Context) Equals(other *Context) bool {
	return c.Path == other.Path && slices.Equal(c.Paths, other.Paths) && c.Variable == other.Variable &&
		bytes.Equal(c.Text, other.Text) && bytes.Equal(c.JSON, other.JSON)
}

// Reading says how the files of a context are read: see [inputs.Options].
type Reading struct {
	Include     []string `json:"include,omitempty"`
	Exclude     []string `json:"exclude,omitempty"`
	ReadIgnored bool     `json:"read_ignored,omitempty"`
	Encoding    string   `json:"encoding,omitempty"`
	NoConvert   bool     `json:"no_convert,omitempty"`
	MaxUnpacked int64    `json:"max_unpacked,omitempty"`
	MaxRatio    int64    `json:"max_ratio,omitempty"`
}

// Options returns the options, with a folder for compiled code and notes on the progress.
func (r *Reading) Options(cacheDir string, note func(string, ...any)) inputs.Options {
	return inputs.Options{
		Include: r.Include, Exclude: r.Exclude, ReadIgnored: r.ReadIgnored, Encoding: r.Encoding,
		KeepDocuments: r.NoConvert, CacheDir: cacheDir, MaxUnpacked: r.MaxUnpacked, MaxRatio: r.MaxRatio,
		Progress: func(what string) { note("%s", what) },
	}
}

// Conversation is what a file holds, besides the variables.
type Conversation struct {
	Version   int             `json:"version"`
	Contexts  []Context       `json:"contexts"`
	Histories [][]llm.Message `json:"histories"`
}

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Path returns the file of a name.
func Path(name string) (string, error) {
	if !validName.MatchString(name) {
		return "", fmt.Errorf("%q cannot name a session: use up to 64 letters, digits, dots, "+
			"underscores and hyphens, and begin with a letter or a digit", texts.Truncate(name, 80))
	}
	dir, err := folder()
	return filepath.Join(dir, name), err
}

// folder returns the folder of all sessions.
func folder() (string, error) {
	dir, err := UserFolder()
	if err != nil {
		return "", fmt.Errorf("cannot find the folder of sessions: %w", err)
	}
	return filepath.Join(dir, "sessions"), nil
}

// UserFolder returns the folder in which the user keeps what lasts of this program.
func UserFolder() (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "rlm"), nil
}

// Names returns the names of the sessions that are kept, sorted.
func Names() []string {
	dir, err := folder()
	if err != nil {
		return nil
	}
	entries, _ := os.ReadDir(dir) // without a folder, none is kept
	var names []string
	for _, entry := range entries {
		if entry.Type().IsRegular() && validName.MatchString(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	return names
}

// File is the file of a conversation, as it was when it was opened.
type File struct {
	Conversation

	path   string
	file   *os.File      // at the snapshot; nil if there is none
	expand *zstd.Decoder // reads the snapshot; nil in the old version
	state  fs.FileInfo
	saved  []byte // the SHA-256 of what Save has written last
}

// Open opens the conversation of a name. If there is none, it is empty.
func Open(name string) (f *File, err error) {
	path, err := Path(name)
	if err != nil {
		return nil, err
	}

	f = &File{path: path}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, nil
	case err == nil && !info.Mode().IsRegular():
		err = errors.New("it is not a file")
	}

	if err == nil {
		f.file, err = os.Open(path)
	}
	if err == nil {
		if err = f.load(); err != nil {
			err = errors.Join(err, f.file.Close())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("cannot continue session %s: %w; if you do not need it, delete %s",
			name, err, path)
	}
	return f, nil
}

func (f *File) load() (err error) {
	if f.state, err = f.file.Stat(); err != nil {
		return err
	}
	if f.Conversation, err = decode(f.file); err != nil || f.Version == oldVersion {
		return err
	}
	f.expand, err = zstd.NewReader(f.file, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderConcurrency(1))
	return err
}

// maxWindow bounds the memory with which a snapshot is expanded, in bytes.
const maxWindow = 64 << 20

// Snapshot returns the snapshot of the variables, nil if there is none. It can be read once.
func (f *File) Snapshot() io.Reader {
	switch {
	case f.file == nil:
		return nil
	case f.expand != nil:
		return f.expand
	}
	return f.file
}

// Close closes the file.
func (f *File) Close() error {
	if f.expand != nil {
		f.expand.Close()
	}
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

// decode reads the part before the snapshot. It allocates no more than it has read.
func decode(r io.Reader) (c Conversation, err error) {
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

	// Check the version first, because other versions have other fields.
	var other struct {
		Version int `json:"version"`
	}
	err = json.Unmarshal(text, &other)
	if err == nil && (other.Version < oldVersion || other.Version > version) {
		return c, fmt.Errorf("its file has version %d, but this program reads up to version %d",
			other.Version, version)
	}

	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil || decoder.More() {
		return c, errors.Join(errors.New("its header is damaged"), err)
	}
	err = c.check()
	return c, err
}

// check refuses what no conversation has.
func (c *Conversation) check() error {
	if len(c.Contexts) > maxContexts || len(c.Histories) > maxQuestions {
		return fmt.Errorf("it has %d contexts and %d questions, more than %d and %d",
			len(c.Contexts), len(c.Histories), maxContexts, maxQuestions)
	}

	for _, context := range c.Contexts {
		kinds := 0
		for _, given := range []bool{context.Path != "", context.Text != nil, context.JSON != nil} {
			if given {
				kinds++
			}
		}
		if kinds != 1 || context.Path != "" && !filepath.IsAbs(context.Path) {
			return fmt.Errorf("its context %q is neither a path nor a text nor JSON", context.Name)
		}
	}

	for _, messages := range c.Histories {
		for _, m := range messages {
			if m.Role != llm.RoleUser && m.Role != llm.RoleAssistant {
				return fmt.Errorf("it has a message with the role %q", texts.Truncate(string(m.Role), 80))
			}
		}
	}
	return nil
}

// Save replaces the file by the conversation and what snapshot writes. Only the user can read
// it. A conversation that another program has changed since Open is left as it is. If nothing
// has changed, nothing is written.
func (f *File) Save(c Conversation, snapshot func(io.Writer) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot keep session %s: %w", filepath.Base(f.path), err)
		}
	}()
	header, err := encode(c)
	if err != nil {
		return err
	}

	dir := filepath.Dir(f.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(dir, ".new-*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }() // it is gone after the renaming

	sum := sha256.New()
	out := io.MultiWriter(temp, sum)
	_, err = out.Write(header)
	if err == nil {
		err = writeState(out, snapshot)
	}
	if err != nil || bytes.Equal(sum.Sum(nil), f.saved) {
		return errors.Join(err, temp.Close())
	}

	state, statErr := temp.Stat()
	if err := errors.Join(temp.Sync(), statErr, temp.Close()); err != nil {
		return err
	}

	if err := f.checkUnchanged(); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), f.path); err != nil {
		return err
	}
	f.state, f.saved = state, sum.Sum(nil)
	return nil
}

// writeState writes a snapshot, compressed and bounded.
func writeState(w io.Writer, snapshot func(io.Writer) error) error {
	// One goroutine compresses the same state to the same bytes.
	compress, err := zstd.NewWriter(w, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	err = snapshot(&boundedWriter{compress, MaxState})
	return errors.Join(err, compress.Close())
}

// boundedWriter writes at most so many bytes.
type boundedWriter struct {
	w    io.Writer
	left int
}

// Write implements io.Writer.
func (b *boundedWriter) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, fmt.Errorf("its variables have more than %d MiB: delete large ones, or keep them in files",
			MaxState>>20)
	}
	return b.w.Write(p)
}

func (f *File) checkUnchanged() error {
	now, err := os.Stat(f.path)
	isNew := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !isNew:
		return err
	case isNew && f.state == nil:
		return nil
	case !isNew && f.state != nil && os.SameFile(now, f.state) && now.ModTime().Equal(f.state.ModTime()):
		return nil
	}
	return errors.New("another run changed it in the meantime: ask again")
}

// encode returns the part before the snapshot.
func encode(c Conversation) ([]byte, error) {
	c.Version, c.Histories = version, shorten(c.Histories)
	if err := c.check(); err != nil {
		return nil, err
	}
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	if len(text) > maxHeader {
		return nil, fmt.Errorf("its contexts and histories have %d bytes, more than %d: "+
			"give large contexts as files", len(text), maxHeader)
	}

	sum := sha256.Sum256(text)
	out := binary.BigEndian.AppendUint32([]byte(magic), uint32(len(text))) //nolint:gosec // bounded above
	return append(append(out, text...), sum[:]...), nil
}

// shorten bounds the histories: the latest stay whole, of older ones the question and the
// answer.
func shorten(histories [][]llm.Message) [][]llm.Message {
	out := make([][]llm.Message, len(histories))
	size := 0
	for i := len(histories) - 1; i >= 0; i-- {
		messages := histories[i]
		if size > maxHistory && len(messages) > 2 {
			messages = []llm.Message{messages[0], messages[len(messages)-1]}
		}
		for _, m := range messages {
			m.Content = texts.Truncate(m.Content, maxMessage)
			size += len(m.Content)
			out[i] = append(out[i], m)
		}
	}
	return out
}

package inputs

import (
	"bytes"
	"compress/bzip2"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/mikelolasagasti/xz"
	"github.com/pierrec/lz4/v4"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/text/quantity"
)

// packing is a compression format for one file.
type packing struct {
	name     string
	magic    string
	suffixes []string // endings of names; in each pair, the second replaces the first
	open     func(io.Reader) (io.Reader, func(), error)
}

// maxWindow bounds a decompressor's memory for earlier data, in bytes. It suffices for `zstd
// --long` and `xz -9e` with the largest usual dictionary.
const maxWindow = 128 << 20

var packings = []packing{
	{"gzip", "\x1f\x8b\x08", []string{".gz", "", ".tgz", ".tar"}, openGzip},
	{"zstd", "\x28\xb5\x2f\xfd", []string{".zst", "", ".tzst", ".tar"}, openZstd},
	{"bzip2", "BZh", []string{".bz2", "", ".tbz2", ".tar", ".tbz", ".tar"}, openBzip2},
	{"xz", "\xfd7zXZ\x00", []string{".xz", "", ".txz", ".tar"}, openXz},
	{"lz4", "\x04\x22\x4d\x18", []string{".lz4", ""}, openLz4},
}

func openGzip(r io.Reader) (io.Reader, func(), error) {
	packed, isWhole := r.(*bytes.Reader)
	g, err := gzip.NewReader(r)
	if err != nil || !isWhole {
		return g, func() {}, err
	}
	g.Multistream(false)
	return &gzipMembers{g, packed}, func() {}, nil
}

// gzipMembers reads all members of a gzip file. Zeros after the last one are padding, as for
// gunzip.
type gzipMembers struct {
	now    *gzip.Reader
	packed *bytes.Reader
}

// Read implements io.Reader.
func (m *gzipMembers) Read(p []byte) (int, error) {
	for {
		n, err := m.now.Read(p)
		if !errors.Is(err, io.EOF) || onlyZeros(m.packed) {
			return n, err
		}

		err = m.now.Reset(m.packed)
		m.now.Multistream(false)
		if err != nil || n > 0 {
			return n, err
		}
	}
}

// onlyZeros reports whether only zeros remain. If not, the first other byte remains unread.
func onlyZeros(r *bytes.Reader) bool {
	for {
		switch b, err := r.ReadByte(); {
		case err != nil:
			return true
		case b != 0:
			return r.UnreadByte() != nil
		}
	}
}

func openZstd(r io.Reader) (io.Reader, func(), error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
	if err != nil {
		return nil, nil, err
	}
	return z, z.Close, nil
}

func openBzip2(r io.Reader) (io.Reader, func(), error) { return bzip2.NewReader(r), func() {}, nil }

func openXz(r io.Reader) (io.Reader, func(), error) {
	x, err := xz.NewReader(r, maxWindow)
	return x, func() {}, err
}

func openLz4(r io.Reader) (io.Reader, func(), error) { return lz4.NewReader(r), func() {}, nil }

// findPacking returns the compression format of a file, or nil if there is none.
func findPacking(head []byte) *packing {
	for i := range packings {
		p := &packings[i]
		if !bytes.HasPrefix(head, []byte(p.magic)) {
			continue
		}
		if p.name == "bzip2" && (len(head) < 10 || head[3] < '1' || head[3] > '9' ||
			!bytes.Equal(head[4:10], []byte("1AY&SY")) && !bytes.Equal(head[4:10], []byte("\x17rE8P\x90"))) {
			continue // a text can begin with BZh
		}
		return p
	}
	return nil
}

// trimName returns the name of a file after unpacking.
func (p *packing) trimName(name string) string {
	for i := 0; i < len(p.suffixes); i += 2 {
		end := len(name) - len(p.suffixes[i])
		if end > 0 && strings.EqualFold(name[end:], p.suffixes[i]) {
			return name[:end] + p.suffixes[i+1]
		}
	}
	return name
}

// isDamaged reports whether the head of a file cannot be unpacked. If isWhole is set, the head is
// the whole file; otherwise it may end anywhere.
func (p *packing) isDamaged(head []byte, isWhole bool) bool {
	const most = 1 << 20 // enough to detect damage in a small file
	unpacked, stop, err := p.open(bytes.NewReader(head))
	if err == nil {
		defer stop()
		_, err = readBlock(unpacked, make([]byte, most))
	}
	isCut := errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, xz.ErrBuf)
	return err != nil && !errors.Is(err, io.EOF) && (isWhole || !isCut)
}

// unpack decompresses a text as many times as it was compressed, at most three times. It owns the
// text.
func (r *reader) unpack(ctx context.Context, text *bigtext.Text) (*bigtext.Text, []string, error) {
	const mostLayers = 3
	var notes []string

	for range mostLayers {
		head, err := readHead(text)
		if err != nil {
			return nil, nil, errors.Join(err, text.Close())
		}
		p := findPacking(head)
		if p == nil {
			break
		}
		packed := text.Size()
		if text, err = r.unpackOnce(ctx, text, p); err != nil {
			return nil, nil, err
		}
		notes = append(notes, fmt.Sprintf("unpacked from %s: %s of %s", p.name,
			quantity.IBytes(text.Size()), quantity.IBytes(packed)))
	}
	return text, notes, nil
}

// headSize is the number of bytes that identify a file.
const headSize = 64 << 10

func readHead(text *bigtext.Text) ([]byte, error) {
	head := make([]byte, min(headSize, text.Size()))
	_, err := text.ReadAt(head, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return head, err
}

// unpackOnce decompresses a text. It owns the text.
func (r *reader) unpackOnce(ctx context.Context, packed *bigtext.Text, p *packing) (*bigtext.Text, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	source, err := r.openPacked(packed, p)
	if err != nil {
		return nil, errors.Join(err, packed.Close())
	}
	unpacked, stop, err := p.open(source)
	if err != nil {
		return nil, errors.Join(r.explain(packed, p, err), packed.Close())
	}
	defer stop()

	if mapped, isMapped := source.(*bytes.Reader); isMapped {
		unpacked = r.watchMapped(&guardedReader{packed, unpacked}, packed, mapped)
	}
	bounded := &boundedReader{reader: r, source: unpacked, packed: packed.Size()}
	ahead, wait := readAhead(ctx, bounded)
	name := p.trimName(packed.Name())
	text, err := bigtext.Spooled(ctx, name, ahead, r.MaxUnpacked, func() error { return nil })
	cancel()
	wait() // until the packed text is no longer read
	if err != nil {
		err = r.explain(packed, p, err)
	} else if text.Size() == 0 {
		err = errors.Join(fmt.Errorf("it contains no data: %s is empty when unpacked", packed.Name()), text.Close())
	}

	err = errors.Join(err, packed.Close())
	if err != nil {
		return nil, err
	}
	return text, nil
}

// openPacked returns a reader of a packed text. The gzip decompressor reads mapped bytes without a
// copy, in the goroutine of its caller.
func (r *reader) openPacked(packed *bigtext.Text, p *packing) (io.Reader, error) {
	if p.name != "gzip" {
		return r.watch(packed, "unpacking"), nil
	}
	data, err := packed.Raw(0, packed.Size())
	if err != nil {
		return nil, err
	}
	return bytes.NewReader(data), nil
}

// guardedReader reads a decompressor's output from a text's mapped bytes.
type guardedReader struct {
	text   *bigtext.Text
	source io.Reader
}

// Read implements io.Reader.
func (g *guardedReader) Read(p []byte) (n int, err error) {
	if changed := bigtext.Guard(g.text, func() { n, err = g.source.Read(p) }); changed != nil {
		return 0, changed
	}
	return n, err
}

// explain returns the error for a text that could not be unpacked.
func (r *reader) explain(packed *bigtext.Text, p *packing, err error) error {
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, xz.ErrBuf):
		err = fmt.Errorf("it is cut short, or damaged: %w", err)
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, xz.ErrMemlimit):
		err = fmt.Errorf("it needs more than %s of memory: %w", quantity.IBytes(maxWindow), err)
	}
	return fmt.Errorf("cannot unpack %s as %s: %w", filepath.Base(packed.Name()), p.name, err)
}

// boundedReader fails at the limits on unpacked bytes.
type boundedReader struct {
	*reader
	source io.Reader
	packed int64
	got    int64
}

// Read implements io.Reader.
func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.source.Read(p)
	b.got += int64(n)
	if limit := b.checkUnpacked(b.got, b.packed); limit != nil {
		return 0, limit
	}
	return n, err
}

// checkUnpacked returns an error if the number of unpacked bytes exceeds a limit.
func (r *reader) checkUnpacked(unpacked, packed int64) error {
	switch {
	case unpacked > r.MaxUnpacked:
		return fmt.Errorf("%w: it unpacks to more than %s: raise --max-unpacked",
			bigtext.ErrTooLarge, quantity.IBytes(r.MaxUnpacked))
	case unpacked > anyRatio && unpacked/r.MaxRatio > packed:
		return fmt.Errorf("%w: it unpacks to more than %d times its size, which suggests a "+
			"malicious file: raise --max-ratio", bigtext.ErrTooLarge, r.MaxRatio)
	}
	return nil
}

// watchReader reports progress while a text is read.
type watchReader struct {
	io.Reader
	what  string
	tell  func(string)
	size  int64
	rest  func() int64 // unread bytes of the text; nil if Read returns the text's own bytes
	got   int64
	next  time.Time
	begun bool
}

// watch returns a reader of a text that calls Progress about every second.
func (r *reader) watch(text *bigtext.Text, verb string) io.Reader {
	section := io.NewSectionReader(text, 0, text.Size())
	const block = 1 << 20
	if r.Progress == nil {
		return newBlockReader(section, block)
	}
	return r.newWatch(newBlockReader(section, block), text, verb)
}

// watchMapped is like watch, for a reader of data made from a text that is read through mapped.
func (r *reader) watchMapped(made io.Reader, text *bigtext.Text, mapped *bytes.Reader) io.Reader {
	if r.Progress == nil {
		return made
	}
	w := r.newWatch(made, text, "unpacking")
	w.rest = func() int64 { return int64(mapped.Len()) }
	return w
}

func (r *reader) newWatch(source io.Reader, text *bigtext.Text, verb string) *watchReader {
	return &watchReader{
		Reader: source, what: verb + " " + filepath.Base(text.Name()), tell: r.Progress, size: text.Size(),
	}
}

// Read implements io.Reader.
func (w *watchReader) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if w.got += int64(n); w.rest != nil {
		w.got = w.size - w.rest()
	}
	if now := time.Now(); !w.begun {
		w.begun, w.next = true, now.Add(time.Second)
	} else if now.After(w.next) {
		w.next = now.Add(time.Second)
		w.tell(fmt.Sprintf("%s: %d %%", w.what, 100*w.got/max(1, w.size)))
	}
	return n, err
}

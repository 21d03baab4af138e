package wasm

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/rlmhq/rlm/internal/machine/cpython"
	"github.com/rlmhq/rlm/internal/snippet/hostcall"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/snippet/session/wire"
	"github.com/rlmhq/rlm/tiers"
)

// An exact state is a checkpoint for another process:
//
//	magic, the number of variables and the length of the head (4 bytes each, little-endian),
//	the head as JSON, the pages, one after another and compressed with Zstandard if the head
//	does not say that they are raw
//
// It contains no globals of the module: between snippets, the stack pointer is that of the image,
// and each run sets the fuel. So a state adds only bytes of the guest's memory, which a guest can
// write itself.
const (
	exactMagic = "rlm-pages 1\n"

	mostExactHead  = 4 << 20   // bytes
	mostExactPages = 128 << 20 // bytes, before compression
	// mostExactWindow bounds the memory of the decoder; the encoder's window is 4 MiB.
	mostExactWindow = 8 << 20
	// mostFrame bounds the part of a frame outside its blocks, in bytes.
	mostFrame = 64
)

// exactHead describes the requirements of an exact state, and the places of its pages.
type exactHead struct {
	Module string `json:"module"` // the SHA-256 of the interpreter's code
	Image  string `json:"image"`  // see imageDigest
	// Session is the fingerprint of the configuration that the guest may have in its memory.
	Session       string `json:"session"`
	Deterministic bool   `json:"deterministic"`
	Configured    bool   `json:"configured"` // the guest fetched the whole configuration
	Raw           bool   `json:"raw,omitempty"`

	Size  uint64      `json:"size"`  // size of the memory, in bytes
	Pages [][2]uint32 `json:"pages"` // the runs of changed pages, as half-open intervals
	Texts []exactText `json:"texts,omitempty"`
}

// exactText describes a mappedText. The other process maps its own copy of the text at the same
// place.
type exactText struct {
	Number int    `json:"number"`
	Start  uint64 `json:"start"`
	End    uint64 `json:"end"`
	Length int64  `json:"length"`
	Width  int64  `json:"width"`
	ASCII  bool   `json:"ascii"`
}

var pageEncoder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
})

// ExportExact returns the namespace as Export does, plus the pages of the guest. If the pages
// are missing, the log reports why.
func (g *guest) ExportExact(ctx context.Context) (tiers.State, error) {
	if g.in == nil {
		return tiers.State{}, session.ErrClosed
	}
	if err := g.saveLast(); err != nil {
		return tiers.State{}, err
	}

	head, why := g.describePages(ctx)
	var exact []byte
	var packing sync.WaitGroup
	if why == nil {
		packing.Go(func() { exact, why = packExact(head, g.saved.pages.data) })
	}
	state, err := g.exportSaved(ctx)
	packing.Wait()
	switch {
	case err != nil:
		return state, err
	case why != nil:
		g.engine.options.Log.Info("a snapshot has the variables only", "reason", why)
	default:
		state.Exact = noteVariables(exact, g.accounts.Exported())
	}
	return state, nil
}

// SavePages writes an exact state to a writer. The pages are not compressed, because that takes
// ten times as long as copying them.
func (g *guest) SavePages(ctx context.Context, to io.Writer) (tiers.State, error) {
	if g.in == nil {
		return tiers.State{}, session.ErrClosed
	}
	if err := g.saveLast(); err != nil {
		return tiers.State{}, err
	}

	head, err := g.describePages(ctx)
	if err != nil {
		return tiers.State{}, fmt.Errorf("cannot save the memory of the session: %w", err)
	}
	head.Raw = true
	begin, err := beginExact(head)
	if err != nil {
		return tiers.State{}, err
	}
	for _, part := range [][]byte{begin, g.saved.pages.data} {
		if _, err := to.Write(part); err != nil {
			return tiers.State{}, err
		}
	}
	return g.accounts.StateOfPages(Name)
}

// describePages returns the head for the last checkpoint.
func (g *guest) describePages(ctx context.Context) (*exactHead, error) {
	c := g.saved
	if length(c.runs) > mostExactPages {
		return nil, fmt.Errorf("its memory has changed in more than %d MiB", mostExactPages>>20)
	}

	head, err := g.describeThis(ctx)
	if err != nil {
		return nil, err
	}
	head.Configured = c.knows == g.accounts.Configuration()
	head.Size = c.size
	for _, run := range c.runs {
		head.Pages = append(head.Pages, [2]uint32{
			uint32(run.Start / pageSize), uint32(run.End / pageSize), //nolint:gosec // below 4 GiB
		})
	}
	for _, t := range c.texts {
		head.Texts = append(head.Texts, exactText{
			t.number, t.at.Start, t.at.End, t.characters.Length, t.characters.Width, t.characters.ASCII,
		})
	}
	return head, nil
}

// describeThis returns a head with the values that the head of a fitting state must contain.
func (g *guest) describeThis(ctx context.Context) (*exactHead, error) {
	fingerprint, err := g.accounts.Fingerprint(ctx)
	return &exactHead{
		Module: cpython.Manifest().Module.SHA256, Image: g.engine.imageDigest(),
		Session: fingerprint, Deterministic: g.accounts.Config().Deterministic,
	}, err
}

// packExact returns an exact state without variables.
func packExact(head *exactHead, pages []byte) ([]byte, error) {
	begin, err := beginExact(head)
	if err != nil {
		return nil, err
	}
	encoder, err := pageEncoder()
	if err != nil {
		return nil, err
	}
	return slices.Concat(slices.Insert(compress(encoder, pages), 0, begin)...), nil
}

// beginExact returns the part before the pages.
func beginExact(head *exactHead) ([]byte, error) {
	text, err := json.Marshal(head)
	if err != nil {
		return nil, err
	}
	if len(text) > mostExactHead {
		return nil, errors.New("its memory has changed in too many places")
	}

	begin := make([]byte, len(exactMagic)+numbers, len(exactMagic)+numbers+len(text))
	copy(begin, exactMagic)
	binary.LittleEndian.PutUint32(begin[len(begin)-4:], uint32(len(text))) //nolint:gosec // bounded above
	return append(begin, text...), nil
}

// packSize is the number of bytes that one processor compresses as a unit.
const packSize = 2 << 20

// compress returns the frames of all pages, in order.
func compress(encoder *zstd.Encoder, pages []byte) [][]byte {
	parts := slices.Collect(slices.Chunk(pages, packSize))
	var group sync.WaitGroup
	for i, part := range parts {
		group.Go(func() {
			parts[i] = encoder.EncodeAll(part, make([]byte, 0, encoder.MaxEncodedSize(len(part))))
		})
	}
	group.Wait()
	return parts
}

// numbers is the size of the two numbers after the magic, in bytes.
const numbers = 8

func noteVariables(exact []byte, n int) []byte {
	binary.LittleEndian.PutUint32(exact[len(exactMagic):], uint32(n)) //nolint:gosec // a guest's count
	return exact
}

// splitExact decodes the head of an exact state. It checks only the form.
func splitExact(data []byte) (head *exactHead, variables int, pages []byte, err error) {
	rest, isExact := bytes.CutPrefix(data, []byte(exactMagic))
	if !isExact || len(rest) < numbers {
		return nil, 0, nil, errors.New("its pages have another version")
	}
	variables, size := int(binary.LittleEndian.Uint32(rest)), binary.LittleEndian.Uint32(rest[4:])
	if rest = rest[numbers:]; size > mostExactHead || uint64(size) > uint64(len(rest)) {
		return nil, 0, nil, errDamagedPages
	}

	text := rest[:size]
	if hostcall.CountValues(text, 3) > mostExactPages/pageSize*3 {
		return nil, 0, nil, errDamagedPages
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	head = &exactHead{}
	if decoder.Decode(head) != nil || decoder.More() {
		return nil, 0, nil, errDamagedPages
	}
	return head, variables, rest[size:], nil
}

var errDamagedPages = errors.New("its pages are damaged")

// compare returns why a state with this head does not fit a guest with the other head.
func (h *exactHead) compare(here *exactHead) error {
	switch {
	case h.Module != here.Module:
		return errors.New("its pages are those of another interpreter")
	case h.Image != here.Image:
		return errors.New("its pages are those of another image of the interpreter")
	case h.Deterministic != here.Deterministic:
		return errors.New("only one of the sessions is deterministic")
	case h.Session != here.Session:
		return errors.New("the session was kept with another limit of memory, or with other contexts, " +
			"functions or packages, or /out differs")
	}
	return nil
}

// checkPlaces returns the runs of the pages, after checking that they and the texts are within the
// memory and do not overlap, and that the memory is within the limit. Each text appears only once:
// texts do not count towards the limit, although a guest can write into them.
func (h *exactHead) checkPlaces(img *image, limit uint64) ([]span, error) {
	if h.Size%wasmPage != 0 || h.Size < img.size || h.Size > addressSpace {
		return nil, errDamagedPages
	}

	taken, known := []span{}, map[int]bool{}
	end := img.size
	for _, t := range h.Texts {
		if t.Start%wasmPage != 0 || t.End%wasmPage != 0 || t.Start < end || t.End <= t.Start ||
			t.End > h.Size || known[t.Number] {
			return nil, errDamagedPages
		}
		taken, known[t.Number] = append(taken, span{t.Start, t.End}), true
		end = t.End
	}
	if h.Size-length(taken) > limit {
		return nil, errDamagedPages
	}

	var runs []span
	end = 0
	for _, pages := range h.Pages {
		run := span{uint64(pages[0]) * pageSize, uint64(pages[1]) * pageSize}
		if run.Start < end || run.End <= run.Start || run.End > h.Size {
			return nil, errDamagedPages
		}
		for len(taken) > 0 && taken[0].End <= run.Start {
			taken = taken[1:]
		}
		if len(taken) > 0 && taken[0].Start < run.End {
			return nil, errDamagedPages
		}
		runs, end = append(runs, run), run.End
	}
	if length(runs) > mostExactPages {
		return nil, errDamagedPages
	}
	return runs, nil
}

// importExact makes the guest continue with the pages of a state. If the state does not fit
// here, why gives the reason, and the guest is unchanged.
func (g *guest) importExact(
	ctx context.Context, state *tiers.State,
) (report tiers.Report, why, err error) {
	head, variables, pages, why := splitExact(state.Exact)
	if why != nil {
		return report, why, nil
	}
	here, why := g.describeThis(ctx)
	if why == nil {
		why = head.compare(here)
	}
	if why != nil {
		return report, why, nil
	}

	c, why := g.readCheckpoint(head, pages)
	if why == nil {
		why = g.accounts.Adopt(state.Data, state.Snippet)
	}
	if why == nil {
		c.texts, why = g.openTexts(ctx, head.Texts)
	}
	if why != nil {
		c.free()
		return report, why, nil
	}

	c.snippet = state.Snippet
	if head.Configured {
		c.knows = g.accounts.Configuration()
	}
	g.saved, g.imported = c, nil
	g.in.retire() // the guest has run nothing
	g.in = nil
	if err := g.renew(ctx); err != nil {
		return report, nil, err
	}
	g.isRestored = true
	g.flags &^= wire.FlagReseed // the random module continues, as after a portable state
	return tiers.Report{Moved: variables, Exact: true}, nil, nil
}

// readCheckpoint returns a checkpoint with the pages.
func (g *guest) readCheckpoint(head *exactHead, packed []byte) (*checkpoint, error) {
	runs, err := head.checkPlaces(g.engine.image, g.in.limit)
	if err != nil {
		return nil, err
	}
	c := &checkpoint{size: head.Size, runs: runs}
	if err := c.pages.resize(length(runs)); err != nil {
		return nil, err
	}

	unpack := unpackPages
	if head.Raw {
		unpack = copyPages
	}
	if err := unpack(c.pages.data, packed); err != nil {
		c.free()
		return nil, err
	}
	return c, nil
}

// unpackPages decompresses pages into memory. It never allocates more than into, and reads no more
// bytes than pages of this size can take: without the bound, empty frames would cost time.
func unpackPages(into, packed []byte) error {
	if len(packed) > len(into)+len(into)>>8+mostFrame {
		return errDamagedPages
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderMaxMemory(mostExactPages+1), zstd.WithDecoderMaxWindow(mostExactWindow))
	if err != nil {
		return err
	}
	defer decoder.Close()

	all, err := decoder.DecodeAll(packed, into[:0:len(into)])
	if err != nil || len(all) != len(into) {
		return errDamagedPages
	}
	return nil
}

// copyPages is unpackPages for uncompressed pages.
func copyPages(into, raw []byte) error {
	if len(raw) != len(into) {
		return errDamagedPages
	}
	copy(into, raw)
	return nil
}

// openTexts returns the texts that a head lists, with their characters in this process.
func (g *guest) openTexts(ctx context.Context, all []exactText) (texts []mappedText, err error) {
	for _, known := range all {
		t, err := g.accounts.Text(ctx, known.Number)
		if err != nil {
			return nil, err
		}
		if t.Size() <= session.LongText {
			return nil, errOtherText
		}
		room := known.End - known.Start
		c, err := t.Characters(ctx, int64(room)) //nolint:gosec // checkPlaces has bounded it
		if err != nil {
			return nil, err
		}
		if c.Length != known.Length || c.Width != known.Width || c.ASCII != known.ASCII ||
			pagesOf(c)*wasmPage != room {
			return nil, errOtherText
		}
		texts = append(texts, mappedText{known.Number, span{known.Start, known.End}, c})
	}
	return texts, nil
}

var errOtherText = errors.New("a long context has another length or other characters")

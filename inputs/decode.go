package inputs

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/unicode"

	"github.com/rlmhq/rlm/internal/data/bigtext"
)

// decode returns the text in UTF-8, or marks it as bytes. It owns the text. A UTF-8 text remains
// unchanged, even if a few bytes are invalid.
func (r *reader) decode(ctx context.Context, text *bigtext.Text) (*bigtext.Text, error) {
	e, kind, err := r.findForm(ctx, text)

	switch {
	case err != nil:
		return nil, errors.Join(err, text.Close())
	case kind != "":
		text.MarkBinary(kind)
		return text, nil
	case e == nil:
		return text, nil
	}

	section := r.watch(text, "decoding")
	utf8 := e.NewDecoder().Reader(section)
	decoded, err := bigtext.Decoded(ctx, text, nameEncoding(e), utf8, r.MaxUnpacked)
	if err != nil {
		return nil, fmt.Errorf("cannot decode it as %s: %w", nameEncoding(e), err)
	}
	return decoded, nil
}

// findForm returns the encoding of a text, or nil for UTF-8. For bytes that are not text, it
// returns their kind.
func (r *reader) findForm(
	ctx context.Context, text *bigtext.Text,
) (e encoding.Encoding, kind bigtext.Kind, err error) {
	if r.encoding != nil {
		if r.encoding == unicode.UTF8 || r.encoding == unicode.UTF8BOM {
			return nil, "", nil
		}
		return r.encoding, "", nil
	}

	head, err := readHead(text)
	if err != nil {
		return nil, "", err
	}
	if e := detectMarked(head); e != nil {
		return e, "", nil
	}
	if kind := findKind(head); kind != "" {
		return nil, kind, nil
	}
	if e := cmp.Or(detectWide(head), detectEscaped(head)); e != nil {
		return e, "", nil
	}

	isUTF8, err := mostlyUTF8(ctx, text)
	if err != nil || isUTF8 {
		return nil, "", err
	}
	sample, err := takeSample(ctx, text)
	if err != nil {
		return nil, "", err
	}
	if isFilled(sample) {
		return nil, "", nil
	}
	if looksBinary(head) || looksBinary(sample) {
		return nil, bigtext.KindBinary, nil
	}
	if e = detectNarrow(sample); e == nil {
		return nil, bigtext.KindBinary, nil
	}
	return e, "", nil
}

// mostlyUTF8 reports whether a text is UTF-8, or was UTF-8 before some of its bytes were damaged.
func mostlyUTF8(ctx context.Context, text *bigtext.Text) (bool, error) {
	invalid, err := text.Invalid(ctx)
	if err != nil || invalid == 0 {
		return err == nil, err
	}
	chars, err := text.Len(ctx)
	if err != nil {
		return false, err
	}
	more := text.Size() - chars // bytes of characters after the first byte of each
	return more >= 4*invalid, nil
}

// takeSample returns the lines of a text around bytes that are not ASCII: up to 64 KiB, from the
// first 16 MiB after the first such byte.
func takeSample(ctx context.Context, text *bigtext.Text) ([]byte, error) {
	const most, window = 64 << 10, 16 << 20
	first, err := text.FirstInvalid(ctx)
	if err != nil {
		return nil, err
	}
	start := max(0, first-(4<<10))
	data, err := text.Raw(start, min(text.Size(), start+window))
	if err != nil {
		return nil, err
	}

	var sample []byte
	err = bigtext.Guard(text, func() {
		for line := range bytes.Lines(data) {
			if bytes.ContainsFunc(line, func(c rune) bool { return c >= 0x80 }) {
				sample = append(sample, line[:min(len(line), most-len(sample))]...)
			}
			if len(sample) >= most {
				return
			}
		}
	})
	return sample, err
}

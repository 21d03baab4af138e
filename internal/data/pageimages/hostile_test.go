package pageimages_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/pageimages"
	"github.com/rlmhq/rlm/internal/machine/rustmodule"
)

// TestBadPagesAreErrors draws pages that do not exist or exceed a bound.
func TestBadPagesAreErrors(t *testing.T) {
	whole := string(makePDF([][2]string{{small, red}}))
	sized := func(box string) string { return string(makePDF([][2]string{{"/MediaBox [" + box + "]", red}})) }
	encrypted := strings.Replace(whole, "trailer << ", "trailer << /ID [<00> <00>] /Encrypt << /Filter /Standard "+
		"/V 1 /R 2 /O <"+strings.Repeat("00", 32)+"> /U <"+strings.Repeat("00", 32)+"> /P -4 >> ", 1)
	for name, c := range map[string]struct {
		data      string
		page, dpi int
		want      string
	}{
		"page out of range":    {whole, 1, 72, "finds 1 pages, but not page 2"},
		"a page below 0":       {whole, -1, 72, "not page 4294967296"},
		"a low resolution":     {whole, 0, 35, "must be from 36 to 300"},
		"a high resolution":    {whole, 0, 301, "must be from 36 to 300"},
		"a wide page":          {sized("0 0 9999 72"), 0, 72, "9999 x 72 pixels"},
		"many pixels":          {sized("0 0 4090 4090"), 0, 72, "16 million"},
		"a page beyond u16":    {sized("0 0 65600 65600"), 0, 72, "65600 x 65600 pixels"},
		"a page beyond all":    {sized("0 0 99999999999 99999999999"), 0, 300, "pixels"},
		"less than a pixel":    {sized("0 0 1 1"), 0, 36, "change dpi"},
		"no PDF":               {"plain", 0, 72, "damaged"},
		"nothing":              {"", 0, 72, ""},
		"a password":           {encrypted, 0, 72, "encrypted with a password"},
		"a PDF without a page": {string(makePDF(nil)), 0, 72, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := draw(t, []byte(c.data), c.page, c.dpi)
			if !errors.Is(err, pageimages.ErrNotDrawn) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestHostilePagesEnd draws pages that recurse, repeat and unpack endlessly. Each call must end
// within its bounds, with a picture or an error.
func TestHostilePagesEnd(t *testing.T) {
	const form = "/Type /XObject /Subtype /Form /BBox [0 0 144 72] /Resources << /XObject << /X 5 0 R >> >>"
	const bomb = "/Type /XObject /Subtype /Image /Width 60000 /Height 60000 /BitsPerComponent 8 /ColorSpace /DeviceRGB"
	page := [][2]string{{small, "/X Do"}}
	packed := stream(bomb+" /Filter [/ASCIIHexDecode /RunLengthDecode]", strings.Repeat("8100", 1<<16))
	for name, data := range map[string][]byte{
		"a form that draws itself":  makePDF(page, stream(form, "/X Do /X Do")),
		"a mask of itself":          makePDF(page, stream(bomb+" /SMask 5 0 R", "x")),
		"an image larger than life": makePDF(page, stream(bomb, "x")),
		"a packed image":            makePDF(page, packed),
		"deep arrays":               makePDF([][2]string{{small, strings.Repeat("[", 1<<20) + " TJ"}}),
		"deep states":               makePDF([][2]string{{small, strings.Repeat("q ", 1<<18) + red}}),
		"deep clips":                makePDF([][2]string{{small, strings.Repeat("0 0 9 9 re W n q ", 1<<14) + red}}),
		"many dashes":               makePDF([][2]string{{small, "[0.0000001] 0 d 0 0 m 1e9 1e9 l S"}}),
		"endless kids": bytes.Replace(makePDF([][2]string{{small, red}}),
			[]byte("/Kids [5 0 R ]"), []byte("/Kids [2 0 R ]"), 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := draw(t, data, 0, 72); err != nil && !errors.Is(err, pageimages.ErrNotDrawn) {
				t.Error(err)
			}
		})
	}
}

func TestTruncatedDocumentsEnd(t *testing.T) {
	data := makePDF([][2]string{{small, red}})
	for length := 0; length < len(data); length += 97 {
		if _, err := draw(t, data[:length], 0, 72); err != nil && !errors.Is(err, pageimages.ErrNotDrawn) {
			t.Errorf("%d bytes: %v", length, err)
		}
	}
}

func TestDrawingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	want := errors.New("enough")
	cancel(want)
	section := io.NewSectionReader(strings.NewReader("%PDF-"), 0, 5)

	_, err := pageimages.Draw(ctx, rustmodule.Start{}, section, 0, 72)
	if !errors.Is(err, want) && !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// FuzzDraw changes documents. For each one, the module must finish within its bounds and answer in
// the right format.
func FuzzDraw(f *testing.F) {
	f.Add(makePDF([][2]string{{small, red}}))
	f.Add(makePDF([][2]string{{small + " /Rotate 90", "BT /F1 40 Tf 10 20 Td (Wide) Tj /F2 9 Tf <65e5> Tj ET"}}))
	f.Add(makePDF([][2]string{{small, "/X Do"}}, stream("/Type /XObject /Subtype /Image /Width 2 /Height 2 "+
		"/BitsPerComponent 8 /ColorSpace /DeviceGray", "abcd")))

	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := draw(t, data, 0, 36); err != nil && !errors.Is(err, pageimages.ErrNotDrawn) {
			t.Error(err)
		}
	})
}

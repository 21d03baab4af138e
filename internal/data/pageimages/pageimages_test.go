package pageimages_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"io"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/internal/data/pageimages"
	"github.com/rlmhq/rlm/internal/machine/rustmodule"
	"github.com/rlmhq/rlm/internal/testing/testcache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func draw(tb testing.TB, data []byte, page, dpi int) (*pageimages.Picture, error) {
	tb.Helper()
	section := io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data)))
	return pageimages.Draw(tb.Context(), rustmodule.Start{CacheDir: testcache.Dir()}, section, page, dpi)
}

// makePDF returns a PDF. Each page consists of the entries of its dictionary and of what it draws.
// Further objects are numbered from 5.
func makePDF(pages [][2]string, further ...string) []byte {
	const fonts = "/Font << /F1 3 0 R /F2 4 0 R >>"
	objects := append([]string{
		"<< /Type /Catalog /Pages 2 0 R >>", "",
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
		"<< /Type /Font /Subtype /Type0 /BaseFont /HeiseiMin-W3 /Encoding /UniJIS-UCS2-H /DescendantFonts " +
			"[<< /Type /Font /Subtype /CIDFontType0 /BaseFont /HeiseiMin-W3 " +
			"/CIDSystemInfo << /Registry (Adobe) /Ordering (Japan1) /Supplement 2 >> >>] >>",
	}, further...)
	var kids strings.Builder
	for _, page := range pages {
		fmt.Fprintf(&kids, "%d 0 R ", len(objects)+1)
		objects = append(objects, fmt.Sprintf("<< /Type /Page /Parent 2 0 R %s /Contents %d 0 R /Resources "+
			"<< %s /XObject << /X 5 0 R >> >> >>", page[0], len(objects)+2, fonts), stream("", page[1]))
	}
	objects[1] = fmt.Sprintf("<< /Type /Pages /Count %d /Kids [%s] >>", len(pages), kids.String())

	out := "%PDF-1.4\n"
	table := fmt.Sprintf("xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for i, object := range objects {
		table += fmt.Sprintf("%010d 00000 n \n", len(out))
		out += fmt.Sprintf("%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	return fmt.Appendf(nil, "%s%strailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n",
		out, table, len(objects)+1, len(out))
}

func stream(entries, content string) string {
	return fmt.Sprintf("<< /Length %d %s >>\nstream\n%s\nendstream", len(content), entries, content)
}

const (
	small = "/MediaBox [0 0 144 72]"
	red   = "1 0 0 rg 0 0 72 72 re f"
)

// mustDraw draws a page that must be drawn, and decodes it.
func mustDraw(t *testing.T, data []byte, page, dpi int) (image.Image, string) {
	t.Helper()
	picture, err := draw(t, data, page, dpi)
	if err != nil {
		t.Fatal(err)
	}
	decoded, err := png.Decode(bytes.NewReader(picture.PNG))
	if err != nil {
		t.Fatal(err)
	}
	return decoded, picture.Lacks
}

func isRed(i image.Image, x, y int) bool {
	r, g, b, _ := i.At(x, y).RGBA()
	return r > 0xf000 && g < 0x1000 && b < 0x1000
}

// TestPagesAreDrawn draws pages whose left half is red, before they are rotated or cropped.
func TestPagesAreDrawn(t *testing.T) {
	data := makePDF([][2]string{
		{small, red}, {small + " /Rotate 90", red}, {small + " /CropBox [36 0 144 72]", red}, {small, ""},
	})
	for name, c := range map[string]struct {
		page, dpi, width, height int
		red, white               [2]int
	}{
		"at 72 dpi":  {0, 72, 144, 72, [2]int{10, 10}, [2]int{100, 10}},
		"at 36 dpi":  {0, 36, 72, 36, [2]int{5, 5}, [2]int{50, 5}},
		"at 300 dpi": {0, 300, 600, 300, [2]int{290, 150}, [2]int{310, 150}},
		"turned":     {1, 72, 72, 144, [2]int{10, 10}, [2]int{10, 100}},
		"cropped":    {2, 72, 108, 72, [2]int{30, 10}, [2]int{42, 10}},
	} {
		t.Run(name, func(t *testing.T) {
			got, lacks := mustDraw(t, data, c.page, c.dpi)
			if got.Bounds().Dx() != c.width || got.Bounds().Dy() != c.height || lacks != "" {
				t.Errorf("%v, it lacks %q", got.Bounds(), lacks)
			}
			if !isRed(got, c.red[0], c.red[1]) || isRed(got, c.white[0], c.white[1]) {
				t.Errorf("%v at %v, %v at %v", got.At(c.red[0], c.red[1]), c.red,
					got.At(c.white[0], c.white[1]), c.white)
			}
		})
	}
}

// TestTextIsDrawnOrNamed draws text in an available font and in a missing one.
func TestTextIsDrawnOrNamed(t *testing.T) {
	for name, c := range map[string]struct {
		content, lacks string
		hasInk         bool
	}{
		"a standard font": {"BT /F1 40 Tf 10 20 Td (Wide) Tj ET", "", true},
		"a missing font":  {"BT /F2 40 Tf 10 20 Td <65e5672c> Tj ET", "text whose font is missing", false},
		"a broken image":  {"q 100 0 0 50 0 0 cm /X Do Q", "a picture that cannot be decoded", false},
	} {
		t.Run(name, func(t *testing.T) {
			broken := stream("/Type /XObject /Subtype /Image /Width 9 /Height 9 /BitsPerComponent 8 "+
				"/ColorSpace /DeviceRGB /Filter /DCTDecode", "no JPEG")
			got, lacks := mustDraw(t, makePDF([][2]string{{small, c.content}}, broken), 0, 72)
			hasInk := false
			for y := range 72 {
				for x := range 144 {
					r, _, _, _ := got.At(x, y).RGBA()
					hasInk = hasInk || r < 0x8000
				}
			}
			if hasInk != c.hasInk || lacks != c.lacks {
				t.Errorf("it has ink: %v, it lacks %q", hasInk, lacks)
			}
		})
	}
}

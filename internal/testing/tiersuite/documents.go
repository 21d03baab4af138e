package tiersuite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/tiers"
)

// testDocuments checks the parts of short and long documents, and of other texts.
func (s *suite) testDocuments(t *testing.T) {
	long := strings.Repeat("é ", 5<<20)
	for name, filler := range map[string]string{"short": "é ", "long": long} {
		t.Run(name, func(t *testing.T) {
			first, second := "## Sheet 1: A\n"+filler, "## Sheet 2: B\nlast"
			text := bigtext.FromBytes("sales.xlsx", []byte("Excel\n"+first+second))
			text.MarkDocument("xlsx", []bigtext.Section{
				{Title: "A", Start: 6}, {Title: "B", Start: int64(6 + len(first))},
			})
			defer text.Close()

			box := s.open(t, tiers.Config{Inputs: []tiers.Input{{Name: "sales.xlsx", Text: text}}})
			box.mustPrint(t, "p = context.parts; print(len(p), p.titles, p)", "2 ['A', 'B'] <2 parts: 'A', 'B'>\n")
			box.mustPrint(t, "print(context.parts['B'] == context.parts[-1] == context[-18:], 'A' in p, 'C' in p)",
				"True True False\n")
			box.mustPrint(t, "print([part[:10] for part in p], [len(part) for part in p[:1]] == [len(context) - 24])",
				"['## Sheet 1', '## Sheet 2'] True\n")
			box.mustPrint(t, "try:\n    p['C']\nexcept KeyError as e:\n    print(e, p[2:])", "'C' []\n")
		})
	}

	box := s.open(t, tiers.Config{Inputs: []tiers.Input{{Name: "a.txt", Text: strings.NewReader("no document")}}})
	box.mustPrint(t, "print(list(context.parts), context.parts.titles)", "['no document'] ['']\n")
}

// openPDF returns an input that looks like a PDF of two pages, of which the second can be drawn.
func openPDF(t *testing.T, filler string) tiers.Input {
	t.Helper()
	text := bigtext.FromBytes("report.pdf", []byte("PDF\none\n"+filler+"two\n"))
	text.MarkDocument("pdf", []bigtext.Section{{Start: 4}, {Start: int64(8 + len(filler))}})
	text.MarkPages(func(_ context.Context, page, dpi int) ([]byte, error) {
		if page != 1 {
			return nil, errors.New("it is damaged")
		}
		const head = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00\x00\x00\x00\x0a"
		return fmt.Appendf(nil, "its é\n"+head+"page %d at %d\xff", page, dpi), nil
	})
	t.Cleanup(func() { _ = text.Close() }) // cannot lose data: the text is a constant
	return tiers.Input{Name: "report.pdf", Text: text}
}

// testPages checks pictures of pages, which the host draws.
func (s *suite) testPages(t *testing.T) {
	for name, filler := range map[string]string{"short": "", "long": strings.Repeat("é ", 5<<20)} {
		t.Run(name, func(t *testing.T) {
			box := s.open(t, tiers.Config{Inputs: []tiers.Input{openPDF(t, filler)}})
			box.mustPrint(t, "page = context.parts[1]; print(repr(page), type(page), len(page[1:]))",
				"'two\\n' <class 'str'> 3\n")
			r := box.mustRun(t, "p = page.image(); print(p[:4], p[24:], p._repr_png_() == p, isinstance(p, bytes), p)")
			want := "b'\\x89PNG' b'page 1 at 100\\xff' True True <PNG of 256 x 10 pixels: 38 bytes>\n"
			if r.Stdout != want || r.Stderr != "note: the picture of page 2 may lack its é\n" {
				t.Errorf("%s", describe(r))
			}
			box.mustPrint(t, "print(context.parts[-1].image(dpi=36)[24:], len(bytes(p)))", "b'page 1 at 36\\xff' 38\n")
		})
	}

	for source, want := range map[string]string{
		"context.parts[0].image()":    "HostError: it is damaged",
		"context.parts[1].image(301)": "ValueError: dpi must be from 36 to 300, not 301",
		"context.parts[1].image(1.5)": "TypeError: 'float' object cannot be interpreted as an integer",
		"context.image()":             "ValueError: only pages of a PDF have an image: context.parts[0].image()",
		"context_1.parts[0].image()":  "ValueError: only pages of a PDF have an image",
	} {
		t.Run(source, func(t *testing.T) {
			box := s.open(t, tiers.Config{Inputs: []tiers.Input{openPDF(t, ""), makeTextInput(t, "a.txt", "a")}})
			r := box.run(t, source)
			if r.Exception == nil || r.Exception.Type+": "+r.Exception.Message != want {
				t.Errorf("%s", describe(r))
			}
		})
	}
	s.testMovedPage(t)
}

// testMovedPage checks that a page that moves to another sandbox is still a page.
func (s *suite) testMovedPage(t *testing.T) {
	from := s.open(t, tiers.Config{Inputs: []tiers.Input{openPDF(t, "")}})
	if _, moves := from.box.(tiers.Exporter); !moves {
		return
	}
	from.mustRun(t, "page = context.parts[1]; picture = page.image()")
	to := s.open(t, tiers.Config{Inputs: []tiers.Input{openPDF(t, "")}})
	moveTo(t, from, to)
	to.mustPrint(t, "print(page.image(50)[24:], picture)", "b'page 1 at 50\\xff' <PNG of 256 x 10 pixels: 38 bytes>\n")
}

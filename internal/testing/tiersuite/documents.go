package tiersuite

import (
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/tiers"
)

// testDocuments checks the parts of documents, short and long, and of other texts.
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

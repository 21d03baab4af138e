package documenttruth_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/documenttruth"
)

// rightText is the known content as Markdown.
const rightText = "Document\nfirst w0001\n\n| a w0002 | b |\n| --- | --- |\n| 1 |  |\n\nx w0003 2.50\n\nnote w0004\n"

// TestDifferencesAreFound changes the reading in every way that Differences must report.
func TestDifferencesAreFound(t *testing.T) {
	whole := "as it is\r\n"
	known := documenttruth.Known{
		Blocks: []documenttruth.Block{
			{Text: "first w0001"},
			{Table: [][]string{{"a w0002", "b"}, {"1", ""}}},
			{Row: []string{"x w0003", "2.50"}},
			{Text: "note w0004", Anywhere: true},
		},
	}
	rows := func(value string) documenttruth.Reading {
		row := map[string]any{"n": json.Number(value)}
		return documenttruth.Reading{Tables: map[string][]map[string]any{"": {row}}}
	}

	for name, c := range map[string]struct {
		known documenttruth.Known
		got   documenttruth.Reading
		want  string
	}{
		"right":        {known, documenttruth.Reading{Text: rightText}, ""},
		"lost":         {known, change("first w0001", ""), "lost: [w0001]"},
		"changed":      {known, change("first", "fist"), `text: no "first w0001"`},
		"doubled":      {known, change("x w0003", "x w0003 w0003"), "doubled: w0003"},
		"moved":        {known, change("first w0001\n", "x w0003 first w0001\n"), "doubled"},
		"another cell": {known, change("| 1 |  |", "|  | 1 |"), "table: "},
		"another row":  {known, change("x w0003 2.50", "x w0003\n\n3.50"), "row: no"},
		"a text":       {documenttruth.Known{Whole: &whole}, documenttruth.Reading{Text: "as it is\n"}, "text: "},
		"a number":     {keep(rows("9007199254740993")), rows("9007199254740992"), "row 1"},
		"a form":       {keep(rows("1e2")), rows("100.0"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(c.known.Differences(c.got), "\n")
			if got != c.want && (c.want == "" || !strings.HasPrefix(got, c.want)) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func keep(rows documenttruth.Reading) documenttruth.Known {
	return documenttruth.Known{Tables: rows.Tables}
}

func change(from, to string) documenttruth.Reading {
	return documenttruth.Reading{Text: strings.Replace(rightText, from, to, 1)}
}

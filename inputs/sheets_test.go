package inputs

import (
	"archive/zip"
	"bytes"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/bigtext"
)

func TestHiddenCellsAreCounted(t *testing.T) {
	for cells, want := range map[string]int{
		`<c r="A1"><f>B1*2</f><v></v></c>`: 1, `<c r="A1"><f>B1*2</f><v/></c>`: 1, `<c r="A1"><f>B1*2</f><v /></c>`: 1,
		`<c r="A1" s="1"><f t="shared" si="0"/></c>`: 1, `<c><f>1</f></c><c><f>2</f><v>2</v></c><c><f>3</f></c>`: 2,
		`<c r="A1"><f>B1*2</f><v>4</v></c>`: 0, `<c r="A1" t="str"><f>""</f><v></v></c>`: 0, `<c r="A1"/>`: 0,
		`<c r="A1"><v>1</v></c><cols><col/></cols>`: 0, `<c t="inlineStr"><is><t>x</t></is></c>`: 0,
		"": 0, "<c><f>1": 0,
		"<c><f>" + strings.Repeat("1+", 100_000) + "1</f></c>": 1,
	} {
		var got unseen
		got.add(strings.NewReader("<row>" + cells + "</row>"))
		if got.formulas != want {
			t.Errorf("%.60s: %d, want %d", cells, got.formulas, want)
		}
	}
	for tags, want := range map[string]unseen{
		`<row r="1" hidden="1"/><row r="2"/><row r="3" spans="1:2" hidden="true">`: {rows: 2},
		`<col min="2" max="4" hidden="1"/><col min="5" max="5"/>`:                  {columns: 3},
		`<col min="5" max="16384" hidden="1"/><col min="5" hidden="1"/>`:           {},
		`<col min="-5" max="99999999999999999999" hidden="1"/>`:                    {},
		`<col min="9" max="3" hidden="1"/><row hidden="0"/>`:                       {},
	} {
		var got unseen
		if got.add(strings.NewReader(tags)); got != want {
			t.Errorf("%s: %+v, want %+v", tags, got, want)
		}
	}

	var file bytes.Buffer
	w := zip.NewWriter(&file)
	for _, name := range []string{"xl/worksheets/sheet1.xml", "xl/worksheets/sheet2.xml", "xl/other.xml"} {
		part, err := w.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := part.Write([]byte("<row hidden=\"1\"/><c><f>1</f></c>")); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	notes := describeSheets(t.Context(), bigtext.FromBytes("a.xlsx", file.Bytes()))
	if len(notes) != 2 || !strings.HasPrefix(notes[0], "2 formulas without a saved value") ||
		!strings.HasSuffix(notes[1], "2 hidden rows") {
		t.Errorf("notes: %q", notes)
	}
	if notes := describeSheets(t.Context(), bigtext.FromBytes("a.xlsx", file.Bytes()[:50])); notes != nil {
		t.Errorf("notes on a damaged file: %q", notes)
	}
}

func FuzzSheets(f *testing.F) {
	f.Add([]byte(`<c r="A1"><f>B1*2</f><v></v></c>`))
	f.Add([]byte(`<col min="2" max="4" hidden="1"/><row hidden="1">`))
	f.Add([]byte(`<c><f`))
	f.Fuzz(func(t *testing.T, sheet []byte) {
		var n unseen
		n.add(bytes.NewReader(sheet))
		if n.formulas > len(sheet)/4 || n.rows > len(sheet)/4 || n.columns > len(sheet)*lastColumn {
			t.Errorf("%+v in %d bytes", n, len(sheet))
		}
	})
}

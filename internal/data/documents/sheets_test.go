package documents_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/documents"
	"github.com/rlmhq/rlm/internal/testing/documenttruth"
)

// convertSheet returns the text of a workbook and its warnings.
func convertSheet(t *testing.T, book documenttruth.Workbook) (text, warnings string) {
	t.Helper()
	text, about, err := convert(t, documents.Zip, book.Bytes(t))
	if err != nil {
		t.Fatal(err)
	}
	return text, strings.Join(about.Warnings, "\n")
}

func TestNumbersAreShownAsInExcel(t *testing.T) {
	book := documenttruth.Workbook{}
	rows, want := "", []string{}
	for i, c := range []struct{ code, number, shown string }{
		{"00000", "2134", "02134"},
		{"000-00-0000", "12345678", "012-34-5678"},
		{`000\-00\-0000`, "12345678", "012-34-5678"},
		{`0.0" kg"`, "3.5", "3.5 kg"},
		{"#,##0.00 €", "1234.5", "1,234.50 €"},
		{`0;-0;"none"`, "0", "none"},
		{"0.0%", "0.256", "25.6%"},
		{"[h]:mm:ss", "1.2708333333333333", "30:30:00"},
		{"h:mm", "0.4375", "10:30"},
		{"mm:ss", "0.0625", "30:00"},
		{"h:mm:ss", "1.25", "6:00:00"},
		{"dd/mm/yyyy", "45366", "2024-03-15"},
		{"mmm yyyy", "45366", "Mar 2024"},
		{"yyyy-mm-dd", "-3", "-3"},
		{"yyyy-mm-dd", "3000000", "3000000"},
		{"General", "1234567890123456", "1234567890123456"},
		{"General", "0.30000000000000004", "0.3"},
	} {
		book.Codes = append(book.Codes, c.code)
		rows += fmt.Sprintf(`<row r="%d"><c s="%[1]d"><v>%s</v></c></row>`, i+1, c.number)
		want = append(want, "| "+c.shown+" |")
	}
	book.Sheets = []string{"<sheetData>" + rows + "</sheetData>"}

	text, warnings := convertSheet(t, book)
	var got []string
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "| ---") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	if !strings.HasPrefix(warnings, "2 cells with the format of a date and a number outside the calendar") {
		t.Errorf("warnings: %q", warnings)
	}

	text, _ = convertSheet(t, documenttruth.Workbook{
		Sheets:   []string{`<sheetData><row><c s="1"><v>43904</v></c></row></sheetData>`},
		Codes:    []string{"yyyy-mm-dd"},
		Settings: `<workbookPr date1904="1"/>`,
	})
	if !strings.Contains(text, "| 2024-03-15 |") {
		t.Errorf("a date from 1904: %s", text)
	}
}

func TestRowsKeepTheirNumbers(t *testing.T) {
	styled := ""
	for row := 7; row < 3000; row++ {
		styled += fmt.Sprintf(`<row r="%d"><c s="1"/><c s="1"/><c s="1"/></row>`, row)
	}
	text, warnings := convertSheet(t, documenttruth.Workbook{
		Codes: []string{"0"},
		Sheets: []string{
			`<sheetData><row r="1"><c r="A1"><v>1</v></c><c r="C1"><v>2</v></c></row>` +
				`<row r="4"><c r="B4" t="inlineStr"><is><t>a_x000D_` + "\n" + `b|_x005F_x0041_</t></is></c></row>` +
				styled + `</sheetData>`,
			`<sheetData><row r="1"><c><v>1</v></c></row><row r="900"><c><v>2</v></c></row></sheetData>`,
		},
	})
	checkOrder(t, text, []string{
		"| 1 |  | 2 |\n| --- | --- | --- |\n|  |  |  |\n|  |  |  |\n|  | a<br>b\\|_x0041_ |  |\n\n## Sheet 2",
		"| 1 |\n| --- |\n| 2 |\n",
	})
	if !strings.Contains(warnings, `sheet "Sheet2": rows 2 to 899 are empty and left out`) {
		t.Errorf("warnings: %q", warnings)
	}
}

func TestSimpleFormulasAreComputed(t *testing.T) {
	const cells = `<sheetData>` +
		`<row r="1"><c r="A1"><v>2</v></c><c r="B1" s="1"><f>A1*2</f>%s</c></row>` +
		`<row r="2"><c r="A2"><v>3</v></c><c r="B2"><f>SUM(A1:A2)+B1</f>%[1]s</c></row>` +
		`<row r="3"><c r="A3"><v>4</v></c><c r="B3"><f>VLOOKUP(1,A1:B2,2)</f>%[1]s</c></row></sheetData>`
	for name, c := range map[string]struct{ value, settings, last string }{
		"openpyxl":   {"<v></v>", "", "=VLOOKUP(1,A1:B2,2)"},
		"no value":   {"", "", "=VLOOKUP(1,A1:B2,2)"},
		"XlsxWriter": {"<v>0</v>", `<calcPr fullCalcOnLoad="1"/>`, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			text, warnings := convertSheet(t, documenttruth.Workbook{
				Codes: []string{"0.00"}, Sheets: []string{fmt.Sprintf(cells, c.value)}, Settings: c.settings,
			})
			checkOrder(t, text, []string{"| 2 | 4.00 |", "| 3 | 9 |", "| 4 | " + c.last + " |"})
			const told = "3 formulas without a saved value: 2 computed here, 1 not simple enough"
			if !strings.Contains(warnings, told) {
				t.Errorf("warnings: %q", warnings)
			}
		})
	}

	text, warnings := convertSheet(t, documenttruth.Workbook{Sheets: []string{fmt.Sprintf(cells, "<v>0</v>")}})
	if !strings.Contains(text, "| 2 | 0 |\n") || warnings != "" {
		t.Errorf("values that are saved: %s\n%s", text, warnings)
	}
}

// TestFormulasOfBinaryWorkbooksAreComputed reads a workbook without saved values, as if no
// spreadsheet program had opened it.
func TestFormulasOfBinaryWorkbooksAreComputed(t *testing.T) {
	text, about, err := convert(t, documents.Zip, documenttruth.DropValues(t, binaryWorkbook(t, "book.xlsb")))
	if err != nil {
		t.Fatal(err)
	}
	checkOrder(t, text, []string{
		"| Grüße 1 漢字 | 1 | 0.125 |", "| Grüße 18 漢字 | 18 | 2.25 |", "| Grüße 19 漢字 | 19 | 0 |",
	})
	want := []string{
		"20 formulas without a saved value: 19 computed here, 1 not simple enough, whose cells show the 0 " +
			"that is in the file",
	}
	if !slices.Equal(about.Warnings, want) {
		t.Errorf("warnings: %q", about.Warnings)
	}
}

func TestWorkbooksInXML(t *testing.T) {
	const book = `<?xml version="1.0"?><?mso-application progid="Excel.Sheet"?>
<Workbook xmlns="urn:schemas-microsoft-com:office:spreadsheet"
 xmlns:ss="urn:schemas-microsoft-com:office:spreadsheet">
<Styles><Style ss:ID="s1"><NumberFormat ss:Format="00000"/></Style>
<Style ss:ID="s2"><NumberFormat ss:Format="Percent"/></Style>
<Style ss:ID="s3"><NumberFormat ss:Format="[h]:mm"/></Style></Styles>
<Worksheet ss:Name="Stock"><Table>
<Row><Cell><Data ss:Type="String">code &amp; name</Data></Cell><Cell><Data ss:Type="String">day</Data></Cell></Row>
<Row ss:Index="3"><Cell ss:StyleID="s1"><Data ss:Type="Number">42</Data></Cell>
<Cell><Data ss:Type="DateTime">2024-03-15T00:00:00.000</Data></Cell></Row>
<Row><Cell ss:Index="2" ss:StyleID="s2"><Data ss:Type="Number">0.25</Data></Cell></Row>
</Table></Worksheet>
<Worksheet ss:Name="Old"><Table><Column ss:Hidden="1"/><Row ss:Hidden="1">
<Cell><Data ss:Type="Boolean">1</Data><Comment><ss:Data>why</ss:Data></Comment></Cell>
<Cell ss:StyleID="s3"><Data ss:Type="DateTime">1900-01-01T06:30:00.000</Data></Cell>
<Cell ss:Formula="=RC[-1]*2"/></Row></Table>
<WorksheetOptions><Visible>SheetHidden</Visible></WorksheetOptions></Worksheet></Workbook>`
	text, about, err := convert(t, documents.SpreadsheetXML, []byte(book))
	if err != nil || len(about.Parts) != 2 {
		t.Fatal(about, err)
	}
	checkOrder(t, text, []string{
		"Excel workbook in XML, 2 sheets (Stock, Old)", "## Sheet 1: Stock",
		"| code & name | day |\n| --- | --- |\n|  |  |\n| 00042 | 2024-03-15 |\n|  | 25.00% |",
		"## Sheet 2: Old (hidden)", "| TRUE (comment: why) | 30:30 | =RC[-1]*2 |",
	})
	want := []string{
		"1 formula without a saved value, shown instead of it",
		"the text and the rows include 1 hidden row", "the text and the rows include 1 hidden column",
	}
	if !slices.Equal(about.Warnings, want) {
		t.Errorf("warnings: %q", about.Warnings)
	}
}

// TestHiddenRowsOfOldWorkbooksAreCounted reads a workbook in the format used before 2007.
func TestHiddenRowsOfOldWorkbooksAreCounted(t *testing.T) {
	var book []byte
	add := func(kind uint16, body ...byte) {
		book = binary.LittleEndian.AppendUint16(book, kind)
		book = binary.LittleEndian.AppendUint16(book, uint16(len(body)))
		book = append(book, body...)
	}
	const begin, end, sheet, columns, row, number = 0x0809, 0x000a, 0x0085, 0x007d, 0x0208, 0x0203
	start := func(kind byte) { add(begin, 0, 6, kind, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) }
	const length = 4 + 16 + 4 + 9 + 4 // of the records before the sheet
	start(5)
	add(sheet, length, 0, 0, 0, 0, 0, 1, 0, 'S')
	add(end)
	start(0x10)
	add(columns, 1, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0)
	for i := range byte(3) {
		add(row, i, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0x20*(i&1), 1, 0, 0)
		value := binary.LittleEndian.AppendUint64(nil, math.Float64bits(float64(i)+7))
		add(number, append([]byte{i, 0, 0, 0, 0, 0}, value...)...)
	}
	add(end)
	book = append(book, make([]byte, 5000)...) // short streams are stored elsewhere

	text, about, err := convert(t, documents.OLE, makeCompound(map[string][]byte{"Workbook": book}))
	if err != nil {
		t.Fatal(err)
	}
	checkOrder(t, text, []string{"## Sheet 1: S", "| 7 |", "| 8 |", "| 9 |"})
	want := []string{"the text and the rows include 1 hidden row", "the text and the rows include 2 hidden columns"}
	if !slices.Equal(about.Warnings, want) {
		t.Errorf("warnings: %q", about.Warnings)
	}
}

package tablefiles_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/tablefiles"
)

// xmlCells contains cells of a workbook in XML, and their values in JSON.
var xmlCells = []struct{ cell, want string }{
	{`<Cell><Data ss:Type="Number">123456789012345678</Data></Cell>`, "123456789012345678"},
	{`<Cell><Data ss:Type="Number">0.1</Data></Cell>`, "0.1"},
	{`<Cell><Data ss:Type="Number">3.0</Data></Cell>`, "3"},
	{`<Cell><Data ss:Type="String">007</Data></Cell>`, `"007"`},
	{`<Cell><Data ss:Type="Boolean">1</Data></Cell>`, "true"},
	{`<Cell><Data ss:Type="Error">#N/A</Data></Cell>`, `"#N/A"`},
	{`<Cell><Data ss:Type="DateTime">2024-03-15T00:00:00.000</Data></Cell>`, `"2024-03-15"`},
	{`<Cell><Data ss:Type="DateTime">2024-03-15T10:30:00.500</Data></Cell>`, `"2024-03-15T10:30:00.500"`},
	{`<Cell><Data ss:Type="DateTime">1899-12-31T10:30:00.000</Data></Cell>`, `"10:30:00"`},
	{`<Cell ss:StyleID="e"><Data ss:Type="DateTime">1900-01-01T06:30:00.000</Data></Cell>`, `"30:30:00"`},
	{`<Cell ss:Formula="=RC*2"><Data ss:Type="Number">5</Data><Comment><ss:Data>x</ss:Data></Comment></Cell>`, "5"},
	{`<Cell ss:Formula="=RC*2"/>`, "null"},
	{`<Cell/>`, "null"},
}

func TestWorkbooksInXMLHaveRows(t *testing.T) {
	header, cells, want := "", "", ""
	for i, c := range xmlCells {
		name := string(rune('a' + i))
		header += `<Cell><Data ss:Type="String">` + name + `</Data></Cell>`
		cells += c.cell
		want += `,"` + name + `":` + c.want
	}
	book := `<?xml version="1.0" encoding="windows-1252"?><Workbook xmlns:ss="s"><Styles>` +
		`<Style ss:ID="e"><NumberFormat ss:Format="[h]:mm"/></Style></Styles>` +
		`<Worksheet ss:Name="Stra` + "\xdf" + `e"><Table><Row>` + header + `</Row><Row ss:Index="5">` + cells +
		`</Row></Table></Worksheet><Worksheet ss:Name="None"><Table/></Worksheet></Workbook>`

	tables, err := tablefiles.List(t.Context(), options, tablefiles.SpreadsheetXML, section([]byte(book)))
	if err != nil || len(tables) != 2 || tables[0].Name != "Straße" || len(tables[0].Columns) != len(xmlCells) {
		t.Fatalf("%+v, %v", tables, err)
	}
	var lines strings.Builder
	err = tablefiles.Rows(t.Context(), options, tablefiles.SpreadsheetXML, 0, section([]byte(book)), &lines)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(lines.String()); got != "{"+want[1:]+"}" || !json.Valid([]byte(got)) {
		t.Errorf("got\n%s\nwant\n{%s}", got, want[1:])
	}
	_, err = tablefiles.List(t.Context(), options, tablefiles.SpreadsheetXML, section([]byte("<Workbook><a></b>")))
	if err == nil {
		t.Error("a damaged workbook has tables")
	}
}

// TestTimesOfOpenDocumentAreThoseOfExcel reads times of day, and durations.
func TestTimesOfOpenDocumentAreThoseOfExcel(t *testing.T) {
	content := `<office:document-content xmlns:office="o" xmlns:text="t" xmlns:table="b"><office:body>` +
		`<office:spreadsheet><table:table table:name="S"><table:table-row><table:table-cell ` +
		`office:value-type="string"><text:p>t</text:p></table:table-cell></table:table-row>`
	want := ""
	for _, c := range [][2]string{
		{"PT08H50M00S", "08:50:00"}, {"PT102H35M07S", "102:35:07"}, {"-PT01H00M00.5S", "-01:00:00.500"}, {"P1Y", "P1Y"},
	} {
		content += `<table:table-row><table:table-cell office:value-type="time" office:time-value="` + c[0] +
			`"><text:p>x</text:p></table:table-cell></table:table-row>`
		want += `{"t":"` + c[1] + "\"}\n"
	}
	content += `</table:table></office:spreadsheet></office:body></office:document-content>`

	var book bytes.Buffer
	w := zip.NewWriter(&book)
	for _, file := range [][2]string{
		{"mimetype", "application/vnd.oasis.opendocument.spreadsheet"},
		{"content.xml", content},
		{"META-INF/manifest.xml", `<manifest:manifest xmlns:manifest="m"/>`},
	} {
		member, err := w.Create(file[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := member.Write([]byte(file[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	var lines strings.Builder
	if err := rows(t, "book.ods", book.Bytes(), 0, "S", &lines); err != nil || lines.String() != want {
		t.Errorf("%v\ngot\n%s\nwant\n%s", err, lines.String(), want)
	}
}

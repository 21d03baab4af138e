package documenttruth

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"
)

// Workbook describes an xlsx file.
type Workbook struct {
	// Sheets are the elements of the sheets, in XML. Their names are Sheet1 and so on.
	Sheets []string
	// Codes are number formats. A cell with s="1" has the first format.
	Codes []string
	// Settings are additional XML elements of the workbook.
	Settings string
}

// Bytes returns the file.
func (w Workbook) Bytes(tb testing.TB) []byte {
	tb.Helper()
	const (
		office   = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
		main     = `xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="` + office + `"`
		packages = "http://schemas.openxmlformats.org/package/2006/"
		types    = "application/vnd.openxmlformats-officedocument.spreadsheetml."
	)
	var contents, links, sheets, formats, styles strings.Builder
	parts := map[string]string{}
	for i, rows := range w.Sheets {
		name := fmt.Sprintf("sheet%d.xml", i+1)
		parts["xl/worksheets/"+name] = "<worksheet " + main + ">" + rows + "</worksheet>"
		fmt.Fprintf(&contents, `<Override PartName="/xl/worksheets/%s" ContentType="%sworksheet+xml"/>`, name, types)
		fmt.Fprintf(&links, `<Relationship Id="r%d" Type="%s/worksheet" Target="worksheets/%s"/>`, i+1, office, name)
		fmt.Fprintf(&sheets, `<sheet name="Sheet%d" sheetId="%[1]d" r:id="r%[1]d"/>`, i+1)
	}
	for i, code := range w.Codes {
		fmt.Fprintf(&formats, `<numFmt numFmtId="%d" formatCode="`, 164+i)
		if err := xml.EscapeText(&formats, []byte(code)); err != nil {
			tb.Fatal(err)
		}
		formats.WriteString(`"/>`)
		fmt.Fprintf(&styles, `<xf numFmtId="%d" applyNumberFormat="1"/>`, 164+i)
	}

	parts["[Content_Types].xml"] = `<Types xmlns="` + packages + `content-types">` +
		`<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>` +
		`<Override PartName="/xl/workbook.xml" ContentType="` + types + `sheet.main+xml"/>` +
		`<Override PartName="/xl/styles.xml" ContentType="` + types + `styles+xml"/>` + contents.String() + `</Types>`
	parts["_rels/.rels"] = `<Relationships xmlns="` + packages + `relationships">` +
		`<Relationship Id="r1" Type="` + office + `/officeDocument" Target="xl/workbook.xml"/></Relationships>`
	parts["xl/_rels/workbook.xml.rels"] = `<Relationships xmlns="` + packages + `relationships">` +
		links.String() + `<Relationship Id="s1" Type="` + office + `/styles" Target="styles.xml"/></Relationships>`
	parts["xl/workbook.xml"] = `<workbook ` + main + `>` + w.Settings + `<sheets>` + sheets.String() +
		`</sheets></workbook>`
	parts["xl/styles.xml"] = `<styleSheet ` + main + `><numFmts>` + formats.String() + `</numFmts>` +
		`<cellXfs><xf numFmtId="0"/>` + styles.String() + `</cellXfs></styleSheet>`

	var file bytes.Buffer
	archive := zip.NewWriter(&file)
	for name, content := range parts {
		part, err := archive.Create(name)
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := part.Write([]byte(`<?xml version="1.0" encoding="UTF-8"?>` + content)); err != nil {
			tb.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		tb.Fatal(err)
	}
	return file.Bytes()
}

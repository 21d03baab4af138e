package documents_test

import (
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/documents"
)

// wordFile returns a Word document with the given body.
func wordFile(t *testing.T, body string) []byte {
	t.Helper()
	const (
		types = `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">` +
			`<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>` +
			`<Override PartName="/word/document.xml" ContentType="application/` +
			`vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>`
		relations = `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` +
			`<Relationship Id="rId1" Target="word/document.xml" ` +
			`Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"/>` +
			`</Relationships>`
		begin = `<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" ` +
			`xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"><w:body>`
	)
	return packed(t, map[string][]byte{
		"[Content_Types].xml": []byte(types), "_rels/.rels": []byte(relations),
		"word/document.xml": []byte(begin + body + `<w:sectPr/></w:body></w:document>`),
	})
}

// TestTablesAndFormulasOfWord reads tables and formulas that office_oxide alone would move or join.
func TestTablesAndFormulasOfWord(t *testing.T) {
	run := func(text string) string { return `<w:r><w:t>` + text + `</w:t></w:r>` }
	cell := func(text string) string { return `<w:tc><w:p>` + run(text) + `</w:p></w:tc>` }
	merged := func(property, text string) string {
		return `<w:tc><w:tcPr>` + property + `</w:tcPr><w:p>` + run(text) + `</w:p></w:tc>`
	}
	row := func(cells ...string) string { return `<w:tr>` + strings.Join(cells, "") + `</w:tr>` }
	math := func(text string) string { return `<m:r><m:t>` + text + `</m:t></m:r>` }
	ruby := func(word, reading string) string {
		return `<w:r><w:ruby><w:rubyPr/><w:rt>` + run(reading) + `</w:rt><w:rubyBase>` + run(word) +
			`</w:rubyBase></w:ruby></w:r>`
	}

	for name, c := range map[string]struct{ body, want string }{
		"a row that begins further right": {
			`<w:tbl>` + row(cell("a"), cell("b"), cell("c")) +
				row(`<w:trPr><w:gridBefore w:val="2"/></w:trPr>`, cell("9")) + `</w:tbl>`,
			"| a | b | c |\n| --- | --- | --- |\n|  |  | 9 |",
		},
		"a row that ends further left": {
			`<w:tbl>` + row(`<w:trPr><w:gridAfter w:val="1"/></w:trPr>`, cell("a"), cell("b")) +
				row(cell("1"), cell("2"), cell("3")) + `</w:tbl>`,
			"| a | b |  |\n| --- | --- | --- |\n| 1 | 2 | 3 |",
		},
		"merged cells": {
			`<w:tbl>` + row(merged(`<w:gridSpan w:val="2"/>`, "ab"), cell("c")) +
				row(merged(`<w:vMerge w:val="restart"/>`, "x"), cell("1"), cell("2")) +
				row(merged(`<w:vMerge/>`, ""), cell("3"), cell("4")) + `</w:tbl>`,
			"| ab |  | c |\n| --- | --- | --- |\n| x | 1 | 2 |\n|  | 3 | 4 |",
		},
		"a fraction": {
			`<w:p>` + run("is 3") + `<m:oMath><m:f><m:num>` + math("1") + `</m:num><m:den>` + math("250") +
				`</m:den></m:f></m:oMath>` + run(" of it") + `</w:p>`,
			"is 3 1/250 of it",
		},
		"a power": {
			`<w:p><m:oMathPara><m:oMath><m:sSup><m:e>` + math("10") + `</m:e><m:sup>` + math("6") +
				`</m:sup></m:sSup></m:oMath></m:oMathPara></w:p>`,
			"10^6",
		},
		"a root": {
			`<w:p><m:oMath><m:rad><m:deg/><m:e>` + math("x") + `</m:e></m:rad></m:oMath></w:p>`, "√(x)",
		},
		"ruby": {
			`<w:p>` + ruby("東", "とう") + ruby("京", "きょう") + run("で") + `</w:p>`, "東京(とうきょう)で",
		},
	} {
		t.Run(name, func(t *testing.T) {
			text, _, err := convert(t, documents.Zip, wordFile(t, c.body))
			if err != nil || !strings.Contains(text, c.want) {
				t.Errorf("no %q in\n%s\n%v", c.want, text, err)
			}
		})
	}
}

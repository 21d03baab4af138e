package documents_test

import (
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/documents"
)

// TestTablesOfPages reads tables whose cells are recognised by their positions.
func TestTablesOfPages(t *testing.T) {
	for name, c := range map[string]struct{ page, want string }{
		"headers of rows": {
			`<table><tr><th>Land</th><td>Peru</td></tr><tr><th>Area</th><td>12</td></tr></table>`,
			"| Land | Peru |\n| --- | --- |\n| Area | 12 |",
		},
		"scopes": {
			`<table><thead><tr><th scope=col>a<th scope=col>b</thead><tbody><tr><th scope=row>x<td>1
				<tr><th scope=row>y<td>2</tbody><tfoot><tr><td>sum<td>3</tfoot></table>`,
			"| a | b |\n| --- | --- |\n| x | 1 |\n| y | 2 |\n| sum | 3 |",
		},
		"spans": {
			`<table><tr><th rowspan=2>City<th colspan=2>People<tr><th>2019<th>2020
				<tr><td rowspan=2>Oslo<td>1<td>2<tr><td>3<td>4</table>`,
			"| City | People |  |\n| --- | --- | --- |\n|  | 2019 | 2020 |\n| Oslo | 1 | 2 |\n|  | 3 | 4 |",
		},
		"spans to the end of a group": {
			`<table><tbody><tr><td rowspan=0>a<td>1<tr><td>2</tbody><tbody><tr><td>b<td>3</tbody></table>`,
			"| a | 1 |\n| --- | --- |\n|  | 2 |\n| b | 3 |",
		},
		"no header": {
			`<table><tr><td>id<td>name<tr><td>1<td>x | y</table>`,
			"| id | name |\n| --- | --- |\n| 1 | x \\| y |",
		},
		"a caption": {
			`<table><caption>Sales</caption><tr><th>a<tr><td>1</table>`,
			"Sales\n\n| a |\n| --- |\n| 1 |",
		},
		"a table in a cell": {
			`<table><tr><th>order<th>items<tr><td>17<td><table><tr><td>nut<td>2<tr><td>nail<td>3</table></table>`,
			"| order | items |\n| --- | --- |\n| 17 | nut \\| 2<br>nail \\| 3 |",
		},
		"a table for the layout": {
			`<table role=presentation><tr><td>top<tr><td><table><tr><td>a<td>b<tr><td>1<td>2</table></table>`,
			"top\n\n| a | b |\n| --- | --- |\n| 1 | 2 |",
		},
		"a frame around a table": {
			`<table width=600><tr><td><table><tr><th>a<th>b<tr><td>1<td>2</table></table>`,
			"| a | b |\n| --- | --- |\n| 1 | 2 |",
		},
		"an empty cell": {
			`<table><tr><th>a<th>b<th>c<tr><td>1<td><td>3</table>`,
			"| a | b | c |\n| --- | --- | --- |\n| 1 |  | 3 |",
		},
		"lines in a cell": {
			`<table><tr><th>a<tr><td>one<br>two<p>three</table>`,
			"| a |\n| --- |\n| one<br>two<br>three |",
		},
	} {
		t.Run(name, func(t *testing.T) {
			text, _, err := convert(t, documents.HTML, []byte(c.page))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.TrimSpace(strings.TrimPrefix(text, "HTML\n")); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// odf returns an OpenDocument file.
func odf(t *testing.T, kind, body string) []byte {
	t.Helper()
	return packed(t, map[string][]byte{
		"mimetype": []byte("application/vnd.oasis.opendocument." + kind),
		"content.xml": []byte(`<office:document-content xmlns:office="o" xmlns:text="t" xmlns:table="b" ` +
			`xmlns:draw="d"><office:body>` + body + `</office:body></office:document-content>`),
	})
}

// odfRow returns a row of cells: empty ones, ones with text, and covered ones, given as "-".
func odfRow(cells ...string) string {
	out := "<table:table-row>"
	for _, cell := range cells {
		attributes, text, _ := strings.Cut(cell, "|")
		switch {
		case cell == "-":
			out += "<table:covered-table-cell/>"
		case text == "":
			out += "<table:table-cell><text:p>" + cell + "</text:p></table:table-cell>"
		default:
			out += "<table:table-cell " + attributes + "><text:p>" + text + "</text:p></table:table-cell>"
		}
	}
	return out + "</table:table-row>"
}

// TestTablesOfOpenDocument reads tables whose cells span others or contain tables.
func TestTablesOfOpenDocument(t *testing.T) {
	const wide = `table:number-columns-spanned="2"|`
	inner := `<table:table>` + odfRow("nut", "2") + odfRow("na\\il", "3") + `</table:table>`
	spans := `<table:table><table:table-header-rows>` +
		odfRow(`table:number-rows-spanned="2"|City`, wide+"People", "-") + odfRow("-", "2019", "2020") +
		`</table:table-header-rows>` + odfRow("Oslo", "", "693") + `</table:table>`
	const spanned = "| City | People |  |\n| --- | --- | --- |\n|  | 2019 | 2020 |\n| Oslo |  | 693 |"

	for name, c := range map[string]struct{ kind, body, want string }{
		"spans":           {"text", spans, spanned},
		"spans in slides": {"presentation", `<draw:page>` + spans + `</draw:page>`, spanned},
		"columns that only continue others": {
			"text", `<table:table>` + odfRow(wide+"a", "-", "b") + odfRow(wide+"1", "-", "2") + `</table:table>`,
			"| a | b |\n| --- | --- |\n| 1 | 2 |",
		},
		"a table in a cell": {
			"text", `<table:table>` + odfRow("order", "items") +
				`<table:table-row><table:table-cell><text:p>17</text:p></table:table-cell>` +
				`<table:table-cell>` + inner + `</table:table-cell></table:table-row></table:table>`,
			`| order | items |` + "\n| --- | --- |\n" + `| 17 | nut \| 2<br>na\\il \| 3 |`,
		},
		"a table in a frame": {
			"text", `<text:p>before<draw:frame><draw:text-box>` + inner + `</draw:text-box></draw:frame></text:p>`,
			`before` + "\n\n| nut | 2 |\n| --- | --- |\n" + `| na\\il | 3 |`,
		},
		"lines in a cell": {
			"text", `<table:table>` + odfRow(" |a | b") + odfRow("one</text:p><text:p/><text:p>two") + `</table:table>`,
			"| a \\| b |\n| --- |\n| one<br>two |",
		},
		"a sheet keeps its places": {
			"spreadsheet", `<table:table table:name="S">` +
				odfRow(`table:number-columns-repeated="2"| `, `office:value-type="string"|x|y\z`, wide+"1", "-") +
				`<table:table-row table:number-rows-repeated="2"><table:table-cell/></table:table-row>` +
				odfRow("2") + `</table:table>`,
			"|  |  | x\\|y\\\\z | 1 |\n| --- | --- | --- | --- |\n|  |  |  |  |\n|  |  |  |  |\n| 2 |  |  |  |",
		},
	} {
		t.Run(name, func(t *testing.T) {
			text, about, err := convert(t, documents.Zip, odf(t, c.kind, c.body))
			if err != nil || !strings.Contains(text, c.want+"\n") || len(about.Warnings) > 0 {
				t.Errorf("%v %v\n%s\nwant\n%s", err, about, text, c.want)
			}
		})
	}
}

// TestTablesOfRTF reads tables as Word and LibreOffice write them.
func TestTablesOfRTF(t *testing.T) {
	const nested = `\trowd\cellx1000\cellx4000\intbl order\cell items\cell\row` +
		`\trowd\cellx1000\cellx4000\pard\intbl 17\cell\pard\intbl\itap2 nut\nestcell 2\nestcell` +
		`{\*\nesttableprops\trowd\cellx500\cellx900\nestrow}{\nonesttables\par no}` +
		`\pard\intbl\itap2 nail\nestcell 3\nestcell{\*\nesttableprops\trowd\cellx500\cellx900\nestrow}` +
		`\pard\intbl more\cell\row\pard after\par`
	for name, c := range map[string]struct{ body, want string }{
		"columns that span": {
			`before\par\trowd\trleft-108\cellx1000\cellx3000\intbl City\cell People\cell\row` +
				`\trowd\trleft-100\cellx1010\cellx2000\cellx3000 \cell 2019\cell 2020\cell\row` +
				`\trowd\cellx1000\cellx2000\cellx3000 Oslo\cell 681\cell 693\cell\row\pard after\par`,
			"before\n\n| City | People |  |\n| --- | --- | --- |\n|  | 2019 | 2020 |\n| Oslo | 681 | 693 |\n\nafter",
		},
		"merged cells": {
			`\trowd\clvmgf\cellx1000\clmgf\cellx2000\clmrg\cellx3000\intbl City\cell People\cell \cell\row` +
				`\trowd\clvmrg\cellx1000\cellx2000\cellx3000 \cell 2019\cell 2020\cell\row\pard after\par`,
			"| City | People |  |\n| --- | --- | --- |\n|  | 2019 | 2020 |\n\nafter",
		},
		"a table in a cell": {
			nested,
			"| order | items |\n| --- | --- |\n| 17 | nut \\| 2<br>nail \\| 3<br>more |\n\nafter",
		},
		"no edges": {
			`\intbl a|b\cell c:\\d\cell\row 1\par one\cell 2\cell\row\pard after\par`,
			"| a\\|b | c:\\\\d |\n| --- | --- |\n| 1<br>one | 2 |\n\nafter",
		},
		"no end": {`\trowd\cellx1000\cellx2000\intbl a\cell b`, "| a |\n| --- |\n\nb"},
	} {
		t.Run(name, func(t *testing.T) {
			text, _, err := convert(t, documents.RTF, []byte(`{\rtf1\ansi `+c.body+`}`))
			if got := strings.TrimSpace(strings.TrimPrefix(text, "RTF document")); err != nil || got != c.want {
				t.Errorf("%v\n%s\nwant\n%s", err, got, c.want)
			}
		})
	}
}

// TestHiddenTextStaysHidden checks that invisible text is left out, but not text that only seems to
// be invisible.
func TestHiddenTextStaysHidden(t *testing.T) {
	for name, page := range map[string]string{
		"hidden":              `<p hidden>secret</p>`,
		"display":             `<div style="color:red; DISPLAY : none !important"><b>secret</b></div>`,
		"visibility":          `<p style="visibility:hidden">secret</p>`,
		"a class":             `<style>.off, .x { display: none }</style><p class="a off">secret</p>`,
		"a class on screens":  `<style>@media screen { #off { display:none } }</style><p id=off>secret</p>`,
		"a small font":        `<span style="font-size:0px">secret</span>`,
		"template":            `<template><p>secret</p></template>`,
		"script and style":    `<script>secret</script><style>secret{}</style>`,
		"a closed dialog":     `<dialog>secret</dialog>`,
		"a comment":           `<!-- secret --><!--[if mso]>secret<![endif]-->`,
		"a row":               `<table><tr><td>a<td>b<tr style="display:none"><td>secret<td>1</table>`,
		"a fallback for ruby": `<ruby>字<rp>secret</rp><rt>じ</rt></ruby>`,
	} {
		t.Run(name, func(t *testing.T) {
			text, _, err := convert(t, documents.HTML, []byte("<body><p>seen</p>"+page+"<p>also"))
			if err != nil || strings.Contains(text, "secret") {
				t.Errorf("%v\n%s", err, text)
			}
			checkOrder(t, text, []string{"seen", "also"})
		})
	}

	for name, page := range map[string]string{
		"print":          `<style>@media print { p { display:none } }</style><p>shown</p>`,
		"a later rule":   `<style>p{display:none} p.on{display:block}</style><p class=on>shown</p>`,
		"own style":      `<style>.t{display:none}</style><p class=t style="display:block">shown</p>`,
		"unknown parts":  `<style>.t{display:none} .tabs .t.on{display:block}</style><p class="t on">shown</p>`,
		"inner":          `<div style="visibility:hidden">x<b style="visibility:visible">shown</b></div>`,
		"aria-hidden":    `<p aria-hidden="true">shown</p>`,
		"details":        `<details><summary>more</summary>shown</details>`,
		"until a script": `<body style="display:none"><p>shown`,
	} {
		t.Run(name, func(t *testing.T) {
			text, _, err := convert(t, documents.HTML, []byte(page))
			if err != nil || !strings.Contains(text, "shown") {
				t.Errorf("%v\n%s", err, text)
			}
		})
	}
}

// TestNumbersStayApart checks that numbers do not merge if only their positions on the line
// separate them.
func TestNumbersStayApart(t *testing.T) {
	for name, c := range map[string]struct{ page, want string }{
		"powers":        {`<p>10<sup>6</sup> of x<sub>12</sub>`, "10<sup>6</sup> of x<sub>12</sub>"},
		"styled powers": {`<p>10<span style="vertical-align:super">6</span>`, "10<sup>6</sup>"},
		"fractions":     {`<p>take 3<sup>1</sup>&frasl;<sub>4</sub> cups`, "take 3 1/4 cups"},
		"struck out":    {`<p>was <del>7</del> now 8`, "was ~~7~~ now 8"},
		"ruby":          {`<p><ruby>東<rt>とう</rt>京<rt>きょう</rt></ruby>で`, "東京(とうきょう)で"},
		"MathML": {
			`<p>so <math><mn>2</mn><mfrac><mn>1</mn><mn>250</mn></mfrac><mo>+</mo><msup><mn>10</mn><mn>6</mn></msup>
				<mo>+</mo><msqrt><mi>x</mi></msqrt></math>.`, "so 2 1/250+10^6+√(x).",
		},
	} {
		t.Run(name, func(t *testing.T) {
			text, _, err := convert(t, documents.HTML, []byte(c.page))
			if err != nil || !strings.Contains(text, c.want) {
				t.Errorf("no %q in\n%s\n%v", c.want, text, err)
			}
		})
	}
}

// TestHostileTablesAreSmall checks that tables that claim to be enormous become small text.
func TestHostileTablesAreSmall(t *testing.T) {
	for name, page := range map[string]string{
		"wide":      `<table><tr><td colspan=1000000 rowspan=1000000>a<td>b</table>`,
		"many wide": `<table>` + strings.Repeat(`<tr><td colspan=1000 rowspan=65534>a`, 2000) + `</table>`,
		"one long": `<table><tr>` + strings.Repeat(`<td>x`, 10_000) +
			strings.Repeat(`<tr><td>y`, 10_000) + `</table>`,
		"deep": strings.Repeat(`<table><tr><td>`, 150) + "x",
	} {
		t.Run(name, func(t *testing.T) {
			text, _, err := convert(t, documents.HTML, []byte(page))
			if err != nil || len(text) > 20*len(page)+1000 {
				t.Errorf("%d bytes became %d bytes, %v", len(page), len(text), err)
			}
		})
	}
}

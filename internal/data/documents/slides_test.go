package documents_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/documents"
)

// deck returns a presentation of one slide with shapes. Its layout has placeholders for the title,
// two texts and the slide number; its master has one for text.
func deck(t *testing.T, shapes string) []byte {
	t.Helper()
	const (
		office  = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
		content = "application/vnd.openxmlformats-officedocument.presentationml."
		spaces  = `xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="` + office + `" ` +
			`xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"`
	)
	relations := func(targets ...string) []byte {
		all := ""
		for i := 0; i < len(targets); i += 2 {
			all += fmt.Sprintf(`<Relationship Id="rId%d" Type=%q Target=%q/>`, i/2+1, office+"/"+targets[i],
				targets[i+1])
		}
		return []byte(`<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">` +
			all + `</Relationships>`)
	}
	part := func(name, shapes string) []byte {
		return []byte(`<p:` + name + ` ` + spaces + `><p:cSld><p:spTree><p:nvGrpSpPr/><p:grpSpPr><a:xfrm>` +
			`<a:off x="0" y="0"/><a:ext cx="0" cy="0"/></a:xfrm></p:grpSpPr>` + shapes +
			`</p:spTree></p:cSld></p:` + name + `>`)
	}
	types := ""
	for name, kind := range map[string]string{
		"presentation": "presentation.main", "slides/slide1": "slide", "slideLayouts/slideLayout1": "slideLayout",
		"slideMasters/slideMaster1": "slideMaster",
	} {
		types += fmt.Sprintf(`<Override PartName="/ppt/%s.xml" ContentType="%s%s+xml"/>`, name, content, kind)
	}

	return packed(t, map[string][]byte{
		"[Content_Types].xml": []byte(`<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">` +
			`<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>` +
			types + `</Types>`),
		"_rels/.rels": relations("officeDocument", "ppt/presentation.xml"),
		"ppt/presentation.xml": []byte(`<p:presentation ` + spaces + `><p:sldIdLst><p:sldId id="256" r:id="rId1"/>` +
			`</p:sldIdLst></p:presentation>`),
		"ppt/_rels/presentation.xml.rels": relations("slide", "slides/slide1.xml",
			"slideMaster", "slideMasters/slideMaster1.xml"),
		"ppt/slides/slide1.xml":            part("sld", shapes),
		"ppt/slides/_rels/slide1.xml.rels": relations("slideLayout", "../slideLayouts/slideLayout1.xml"),
		"ppt/slideLayouts/slideLayout1.xml": part("sldLayout", holder(`type="title"`, place(1, 0, 8, 1), "")+
			holder(`idx="1"`, place(1, 2, 4, 4), "")+holder(`idx="2"`, place(6, 2, 3, 4), "")+
			holder(`type="sldNum" idx="12"`, place(8, 0, 1, 1), "")),
		"ppt/slideLayouts/_rels/slideLayout1.xml.rels": relations("slideMaster", "../slideMasters/slideMaster1.xml"),
		"ppt/slideMasters/slideMaster1.xml": part("sldMaster", holder(`type="subTitle" idx="9"`,
			place(1, 5, 8, 1), "")),
	})
}

// place returns the position and size of a shape, given in inches.
func place(x, y, width, height float64) string {
	const inch = 914400
	return fmt.Sprintf(`<a:xfrm><a:off x="%.0f" y="%.0f"/><a:ext cx="%.0f" cy="%.0f"/></a:xfrm>`,
		x*inch, y*inch, width*inch, height*inch)
}

func holder(role, place, text string) string {
	return `<p:sp><p:nvSpPr><p:cNvPr id="2" name=""/><p:cNvSpPr/><p:nvPr><p:ph ` + role + `/></p:nvPr></p:nvSpPr>` +
		`<p:spPr>` + place + `</p:spPr><p:txBody><a:bodyPr/><a:p><a:r><a:t>` + text +
		`</a:t></a:r></a:p></p:txBody></p:sp>`
}

func box(text string, x, y, width, height float64) string {
	return `<p:sp><p:nvSpPr><p:cNvPr id="3" name=""/><p:cNvSpPr txBox="1"/><p:nvPr/></p:nvSpPr><p:spPr>` +
		place(x, y, width, height) + `</p:spPr><p:txBody><a:bodyPr/><a:p><a:r><a:t>` + text +
		`</a:t></a:r></a:p></p:txBody></p:sp>`
}

// TestSlidesAreReadInTheirOrder checks that shapes are read by position if they have a different
// order in the file.
func TestSlidesAreReadInTheirOrder(t *testing.T) {
	const inGroup = `<a:off x="914400" y="914400"/><a:ext cx="1828800" cy="914400"/>` +
		`<a:chOff x="9144000" y="9144000"/><a:chExt cx="18288000" cy="9144000"/>`
	for name, c := range map[string]struct{ shapes, want string }{
		"a text of the layout above a box": {box("B", 1, 6.5, 3, 1) + holder(`idx="1"`, "", "A"), "A B"},
		"a text of the layout below a box": {holder(`idx="1"`, "", "B") + box("A", 1, 1, 3, 0.5), "A B"},
		"no properties at all": {
			box("B", 1, 6.5, 3, 1) + strings.Replace(holder(`idx="1"`, "", "A"), "<p:spPr></p:spPr>", "<p:spPr/>", 1),
			"A B",
		},
		"a text of another kind": {box("B", 1, 6.5, 3, 1) + holder(`type="pic" idx="1"`, "", "A"), "A B"},
		"a text of the layout by its kind": {
			box("B", 6, 6.5, 3, 1) + holder(`type="body" idx="77"`, "", "A"), "A B",
		},
		"the title first": {box("A", 1, 0, 8, 0.2) + holder(`type="title"`, "", "T"), "T T A"},
		"the number of the slide last": {
			holder(`type="sldNum" idx="12"`, "", "7") + holder(`idx="1"`, "", "A"), "A 7",
		},
		"columns with headings": {
			box("A", 1, 1, 3, 0.5) + box("C", 5, 1, 3, 0.5) + box("B", 1, 1.6, 3, 3) + box("D", 5, 1.6, 3, 3),
			"A B C D",
		},
		"columns below a text": {
			box("C", 5, 2, 3, 2) + box("A", 1, 2.1, 3, 1) + box("B", 1, 3.3, 3, 2) + box("D", 5, 4.5, 3, 1) +
				box("X", 1, 1, 7, 0.5),
			"X A B C D",
		},
		"a table of boxes": {
			box("D", 5, 3, 3, 1) + box("C", 1, 3, 3, 1) + box("B", 5, 1, 3, 1) + box("A", 1, 1, 3, 1), "A B C D",
		},
		"a note below columns": {
			box("N", 1, 6, 3, 0.3) + box("B", 5, 1, 3, 4) + box("A", 1, 1, 3, 4), "A B N",
		},
		"no columns":                     {box("B", 1, 5, 3, 1) + box("A", 5, 1, 3, 1), "A B"},
		"boxes that are not quite level": {box("B", 5, 1, 3, 1) + box("A", 1, 1.05, 3, 1), "A B"},
		"boxes on a background": {
			box("C", 1.5, 3, 2, 1) + box("B", 1.5, 1.5, 2, 1) + box("A", 1, 1, 4, 5) + box("D", 6, 1, 2, 1), "A B C D",
		},
		// Ten units of this group are one unit of the slide.
		"a group": {
			box("C", 1, 4, 2, 1) + `<p:grpSp><p:nvGrpSpPr/><p:grpSpPr><a:xfrm>` + inGroup + `</a:xfrm></p:grpSpPr>` +
				box("B", 20, 10, 10, 10) + box("A", 10, 10, 9, 10) + `</p:grpSp>`,
			"A B C",
		},
		"a group that mirrors": {
			box("C", 1, 4, 2, 1) + `<p:grpSp><p:nvGrpSpPr/><p:grpSpPr><a:xfrm flipH="1">` + inGroup +
				`</a:xfrm></p:grpSpPr>` + box("B", 10, 10, 9, 10) + box("A", 20, 10, 10, 10) + `</p:grpSp>`,
			"A B C",
		},
	} {
		t.Run(name, func(t *testing.T) {
			text, about, err := convert(t, documents.Zip, deck(t, c.shapes))
			if err != nil {
				t.Fatal(err)
			}
			_, body, _ := strings.Cut(text, "## Slide 1")
			got := strings.Join(strings.Fields(strings.NewReplacer("#", "", ":", "").Replace(body)), " ")
			if got != c.want || len(about.Warnings) > 0 {
				t.Errorf("got %q, want %q; warnings %q\n%s", got, c.want, about.Warnings, text)
			}
		})
	}
}

// TestOddSlidesAreRead checks that slides are read even if their shapes cannot be put in order.
func TestOddSlidesAreRead(t *testing.T) {
	shapes := box("B", 1, 5, 3, 1) + box("A", 1, 1, 3, 1)
	for name, shapes := range map[string]string{
		"many shapes":  strings.Repeat(box("", 1, 1, 3, 1), 10_001) + shapes,
		"deep groups":  strings.Repeat("<p:grpSp>", 70) + strings.Repeat("</p:grpSp>", 70) + shapes,
		"far away":     strings.ReplaceAll(shapes, `x="914400"`, `x="9223372036854775807"`),
		"no numbers":   strings.ReplaceAll(shapes, `x="914400"`, `x="here"`),
		"equal places": strings.Repeat(box("A", 1, 1, 3, 1), 600) + shapes,
	} {
		t.Run(name, func(t *testing.T) {
			text, _, err := convert(t, documents.Zip, deck(t, shapes))
			if err != nil {
				t.Fatal(err)
			}
			checkOrder(t, text, []string{"## Slide 1", "A", "B"})
		})
	}
}

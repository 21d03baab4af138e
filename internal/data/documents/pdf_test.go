package documents_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/documents"
)

// pdfPage is a page of a PDF: the entries of its dictionary in addition to its size, and what it
// draws.
type pdfPage struct{ entries, content string }

// makePDF returns a PDF whose font has ligatures at the codes 1 to 3.
func makePDF(pages ...pdfPage) []byte {
	const mapped = "3 beginbfchar <01> <FB01> <02> <FB02> <03> <FB03> endbfchar "
	objects := []string{
		"<< /Type /Catalog /Pages 2 0 R >>", "",
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 5 0 R >>",
		stream("/CIDInit /ProcSet findresource begin begincmap 1 begincodespacerange <00> <FF> endcodespacerange " +
			mapped + "1 beginbfrange <20> <7e> <0020> endbfrange endcmap end"),
	}
	var kids strings.Builder
	for _, page := range pages {
		fmt.Fprintf(&kids, "%d 0 R ", len(objects)+1)
		objects = append(objects, fmt.Sprintf("<< /Type /Page /Parent 2 0 R "+
			"/Resources << /Font << /F1 3 0 R /F2 4 0 R >> >> /Contents %d 0 R %s >>",
			len(objects)+2, page.entries), stream(page.content))
	}
	objects[1] = fmt.Sprintf("<< /Type /Pages /Count %d /Kids [%s] >>", len(pages), kids.String())

	return writePDF(objects)
}

// makeTaggedPDF returns a PDF whose tags mark the given lines, from the top, as one paragraph.
func makeTaggedPDF(lines ...string) []byte {
	var content, marks, owners strings.Builder
	for i, line := range lines {
		fmt.Fprintf(&content, "/P << /MCID %d >> BDC BT /F1 9 Tf 1 0 0 1 50 %.1f Tm (%s) Tj ET EMC\n",
			i, 700-10.5*float64(i), line)
		fmt.Fprintf(&marks, "%d ", i)
		owners.WriteString("7 0 R ")
	}
	return writePDF([]string{
		"<< /Type /Catalog /Pages 2 0 R /MarkInfo << /Marked true >> /StructTreeRoot 6 0 R >>",
		"<< /Type /Pages /Count 1 /Kids [4 0 R] >>",
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /StructParents 0 " +
			"/Resources << /Font << /F1 3 0 R >> >> /Contents 5 0 R >>",
		stream(content.String()),
		"<< /Type /StructTreeRoot /K [7 0 R] /ParentTree 8 0 R >>",
		fmt.Sprintf("<< /Type /StructElem /S /P /P 6 0 R /Pg 4 0 R /K [%s] >>", marks.String()),
		fmt.Sprintf("<< /Nums [0 [%s]] >>", owners.String()),
	})
}

func writePDF(objects []string) []byte {
	out := "%PDF-1.4\n"
	table := fmt.Sprintf("xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for i, object := range objects {
		table += fmt.Sprintf("%010d 00000 n \n", len(out))
		out += fmt.Sprintf("%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	return fmt.Appendf(nil, "%s%strailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n",
		out, table, len(objects)+1, len(out))
}

func stream(content string) string {
	return fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(content), content)
}

// lines draws lines of text from a height downwards, within a matrix.
func lines(matrix, word string, height int) string {
	var out strings.Builder
	fmt.Fprintf(&out, "q %s cm\n", matrix)
	for i := range 5 {
		fmt.Fprintf(&out, "BT /F1 12 Tf 1 0 0 1 72 %d Tm (%s line %d) Tj ET\n", height-20*i, word, i)
		fmt.Fprintf(&out, "BT /F1 12 Tf 1 0 0 1 400 %d Tm (%d.50) Tj ET\n", height-20*i, i)
	}
	return out.String() + "Q\n"
}

const (
	upright   = "1 0 0 1 0 0"
	leftward  = "0 1 -1 0 595 0" // the text runs upwards
	rightward = "0 -1 1 0 0 842" // the text runs downwards
	backward  = "-1 0 0 -1 595 842"
	portrait  = "/MediaBox [0 0 595 842] "
	landscape = "/MediaBox [0 0 842 595] "
)

// TestTurnedPagesAreReadInOrder checks the order of text on pages that are displayed rotated, that
// draw rotated text, or both.
func TestTurnedPagesAreReadInOrder(t *testing.T) {
	order := func(word string) (texts []string) {
		for i := range 5 {
			texts = append(texts, fmt.Sprintf("%s line %d", word, i), fmt.Sprintf("%d.50", i))
		}
		return texts
	}
	for _, box := range []string{portrait, landscape} {
		for _, rotate := range []int{0, 90, 180, 270, -90, 450} {
			for name, matrix := range map[string]string{
				"upright": upright, "leftward": leftward, "rightward": rightward, "backward": backward,
			} {
				if rotate%180 == 0 && box == landscape {
					continue // most of the text would be outside
				}
				height := 800
				if strings.HasPrefix(matrix, "0") {
					height = 500 // within the page, whose width the lines fill
				}
				t.Run(fmt.Sprintf("%s %d %s", strings.Fields(box)[3], rotate, name), func(t *testing.T) {
					data := makePDF(pdfPage{fmt.Sprintf("%s /Rotate %d", box, rotate), lines(matrix, "A", height)},
						pdfPage{portrait, lines(upright, "B", 800)})
					text, about, err := convert(t, documents.PDF, data)
					if err != nil || len(about.Warnings) > 0 || len(about.Parts) != 2 {
						t.Fatalf("%v %+v", err, about)
					}
					checkOrder(t, text, append(order("A"), order("B")...))
				})
			}
		}
	}
}

// TestSignsThatLookLikeAccentsStay checks that signs next to letters are kept, while accents above
// letters are combined with the letters.
func TestSignsThatLookLikeAccentsStay(t *testing.T) {
	beside := pdfPage{
		"/MediaBox [0 0 595 842]",
		"BT /F2 12 Tf 72 700 Td (`code` and) Tj 0 -20 Td (~tilde~ and) Tj 0 -20 Td (^n, not `n) Tj ET",
	}
	over := pdfPage{
		"/MediaBox [0 0 595 842]", "BT /F2 12 Tf 72 700 Td (`) Tj ET BT /F2 12 Tf 72 700 Td (Ecole) Tj ET",
	}
	text, _, err := convert(t, documents.PDF, makePDF(beside, over))
	if err != nil {
		t.Fatal(err)
	}
	checkOrder(t, text, []string{"`code` and", "~tilde~ and", "^n, not `n", "Ècole"})
}

// TestLinesOfAParagraphHaveSpaces checks the spaces between lines that end and begin with
// punctuation.
func TestLinesOfAParagraphHaveSpaces(t *testing.T) {
	text, _, err := convert(t, documents.PDF, makeTaggedPDF("It costs 100 % [sic]", "here, and it ends.",
		"*Not bold* is a well-", "known sign (a)", "(b) at the end"))
	if err != nil {
		t.Fatal(err)
	}
	checkOrder(t, text, []string{
		"100 % [sic] here, and it ends. *Not bold* is a well-", "known sign (a) (b) at the end",
	})
}

// TestTablesWithoutLinesAreRows checks that cells next to each other become rows, but columns of
// prose do not.
func TestTablesWithoutLinesAreRows(t *testing.T) {
	at := func(x, y int, text string) string {
		return fmt.Sprintf("BT /F1 10 Tf 1 0 0 1 %d %d Tm (%s) Tj ET\n", x, y, text)
	}
	bill := at(60, 780, "Invoice 17 of the company")
	wanted := []string{"Invoice 17 of the company"}
	for i := range 20 {
		y := 740 - 14*i
		bill += at(60, y, fmt.Sprintf("item %d of the list", i)) + at(300, y, strconv.Itoa(3*i)) +
			at(400, y, fmt.Sprintf("%d.50", 7*i)) + at(500, y, fmt.Sprintf("%d.00", 21*i))
		wanted = append(wanted, fmt.Sprintf("item %d of the list", i), fmt.Sprintf("%d.50", 7*i),
			fmt.Sprintf("%d.00\n", 21*i))
	}
	bill += at(60, 400, "Please pay within thirty days, and name the number of the invoice when you do so.")
	wanted = append(wanted, "Please pay within thirty days")

	// The heading and the notes are above and below two columns, whose lines are drawn alternately.
	columns := at(60, 780, "The heading of this page stands over both of its columns")
	left, right := []string{"The heading"}, []string{}
	for i := range 30 {
		y := 740 - 12*i
		columns += at(60, y, fmt.Sprintf("left %d goes on and on to the gap", i)) +
			at(310, y, fmt.Sprintf("right %d goes on and on to the edge", i))
		left = append(left, fmt.Sprintf("left %d goes", i))
		right = append(right, fmt.Sprintf("right %d goes", i))
	}
	columns += at(60, 300, "1. This note is as wide as the page and stands below both of the columns of the text.")

	for name, c := range map[string]struct {
		content string
		want    []string
	}{
		"a bill":      {bill, wanted},
		"two columns": {columns, slices.Concat(left, right, []string{"1. This note"})},
	} {
		t.Run(name, func(t *testing.T) {
			text, _, err := convert(t, documents.PDF, makePDF(pdfPage{"/MediaBox [0 0 595 842]", c.content}))
			if err != nil {
				t.Fatal(err)
			}
			checkOrder(t, text, c.want)
		})
	}
}

func TestLigaturesAreLetters(t *testing.T) {
	page := pdfPage{portrait, "BT /F2 12 Tf 72 700 Td (\\001nance \\002ow o\\003ce) Tj ET"}
	text, _, err := convert(t, documents.PDF, makePDF(page))
	if err != nil || !strings.Contains(text, "finance flow office") {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestHiddenTextIsLeftOut checks that text drawn twice in one place, which is bold text, is read
// once, and that the text of a scanned page is read.
func TestHiddenTextIsLeftOut(t *testing.T) {
	bold := "BT /F1 12 Tf 1 0 0 1 72 700 Tm (Total 42) Tj ET BT /F1 12 Tf 1 0 0 1 72.3 700 Tm (Total 42) Tj ET\n"
	text, about, err := convert(t, documents.PDF, makePDF(pdfPage{portrait, bold}))
	if err != nil || strings.Count(text, "42") != 1 || len(about.Warnings) > 0 {
		t.Errorf("%v %+v\n%s", err, about, text)
	}

	scanned := "BT 3 Tr /F1 12 Tf 1 0 0 1 72 700 Tm (recognised 42) Tj ET"
	text, _, err = convert(t, documents.PDF, makePDF(pdfPage{portrait, scanned}))
	if err != nil || !strings.Contains(text, "recognised 42") {
		t.Errorf("%v\n%s", err, text)
	}
}

// TestTextOutsideThePageIsNamed checks that text outside a page is left out with a warning, however
// it gets there, and that text inside has no warning.
func TestTextOutsideThePageIsNamed(t *testing.T) {
	many := strings.Repeat("inside ", 12)
	for name, c := range map[string]struct {
		content string
		isNamed bool
	}{
		"moved":           {"72 700 Td (inside) Tj ET BT /F1 12 Tf 1 0 0 1 72 1700 Tm (outside) Tj", true},
		"scaled":          {"72 300 Td (inside) Tj ET 1 0 0 4 0 0 cm BT /F1 12 Tf 72 300 Td (outside) Tj", true},
		"turned":          {"0 1 -1 0 72 700 Tm (inside and then far beyond the upper edge) Tj", true},
		"by a gap":        {"500 700 Td [(inside) -9000 (outside)] TJ", true},
		"by several gaps": {"540 700 Td [(inside) -900 -900 -900 -900 -900 -900 (outside)] TJ", true},
		"by wide signs":   {"500 700 Td 300 Tz [(in) -900 ( ) -900 ( ) -900 (outside)] TJ", true},
		"a restored step": {"72 700 Td 900 TL q 14 TL (inside) Tj Q T* (outside) Tj", true},
		"after others":    {"72 700 Td (" + many + ") Tj ( the edge, and then outside) Tj", true},
		"a restored page": {"72 700 Td (inside) Tj ET q 9 0 0 9 0 0 cm Q BT /F1 12 Tf 72 680 Td (inside) Tj", false},
		"with small gaps": {"72 700 Td [(ins) -20 (ide) -333 (and) 40 (inside)] TJ 0 -14 Td (inside) Tj", false},
	} {
		t.Run(name, func(t *testing.T) {
			data := makePDF(pdfPage{portrait, "BT /F1 12 Tf " + c.content + " ET"})
			text, about, err := convert(t, documents.PDF, data)
			if err != nil || !strings.Contains(text, "in") {
				t.Fatalf("%v\n%s", err, text)
			}
			isNamed := strings.Contains(strings.Join(about.Warnings, ""), "outside the visible part of page 1")
			if isNamed != c.isNamed {
				t.Errorf("%+v\n%s", about.Warnings, text)
			}
		})
	}
}

package documents_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/internal/data/documents"
	"github.com/rlmhq/rlm/internal/machine/rustmodule"
	"github.com/rlmhq/rlm/internal/testing/documenttruth"
	"github.com/rlmhq/rlm/internal/testing/testcache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var options = documents.Options{
	CacheDir: testcache.Dir(),
	Bounds:   rustmodule.Bounds{MaxUnpacked: 1 << 30, MaxRatio: 250},
}

func convert(tb testing.TB, kind documents.Kind, data []byte) (string, *documents.Description, error) {
	tb.Helper()
	var text strings.Builder
	about, err := documents.Convert(tb.Context(), options, kind, section(data), &text)
	return text.String(), about, err
}

func section(data []byte) *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data)))
}

// checkOrder reports the first string in texts that does not occur after the previous one.
func checkOrder(t *testing.T, got string, texts []string) {
	t.Helper()
	if missing, rest := documenttruth.FindMissing(got, texts); missing != "" {
		t.Fatalf("no %q in the rest of the text, which begins\n%.300s\nthe whole begins\n%.600s", missing, rest, got)
	}
}

// words contains paragraphs of the documents written by LibreOffice.
var words = []string{"Grüße aus Zürich", "naïve café", "漢字とかな", "Привет мир", "αβγδ", "a | b", "x < y & z"}

// TestDocumentsOfLibreOffice checks the text of files that LibreOffice 25.2 converted from those of
// scripts/documents/make.py.
func TestDocumentsOfLibreOffice(t *testing.T) {
	report := slices.Concat([]string{"Annual report"}, words,
		[]string{"first item", "cell 0-0", "cell 0-1", "cell 2-1", "Outlook", "The end."})
	sales := slices.Concat([]string{"Sales", "item", "price", "item0", "item499", "499", "748.5", "Köpfe"}, words)
	var deck []string
	for _, w := range words {
		deck = append(deck, "Slide about", w)
	}

	files, err := zip.OpenReader("testdata/libreoffice.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	for _, c := range []struct {
		name  string
		kind  documents.Kind
		texts []string
		parts int
	}{
		{"report.doc", documents.OLE, report, 0},
		{"report.odt", documents.Zip, report, 0},
		{"report.rtf", documents.RTF, report, 0},
		{"report.epub", documents.Zip, report, 1},
		{"report.pdf", documents.PDF, report, 1},
		{"sales.xls", documents.OLE, sales, 2},
		{"sales.ods", documents.Zip, sales, 2},
		{"deck.ppt", documents.OLE, deck, len(words)},
		{"deck.odp", documents.Zip, deck, len(words)},
	} {
		t.Run(c.name, func(t *testing.T) {
			text, about, err := convert(t, c.kind, member(t, &files.Reader, c.name))
			if err != nil {
				t.Fatal(err)
			}
			checkOrder(t, text, c.texts)
			if len(about.Parts) != c.parts || len(about.Warnings) > 0 {
				t.Errorf("%d parts, want %d; warnings %q", len(about.Parts), c.parts, about.Warnings)
			}
		})
	}
}

// TestBinaryWorkbooksHaveAllCells checks the cells of files made by SheetJS: see
// scripts/documents/xlsb.js. The versions of SheetJS write cells in different ways.
func TestBinaryWorkbooksHaveAllCells(t *testing.T) {
	sales := []string{"## Sheet 1: Sales", "name", "count", "share", "day", "note", "ok"}
	for i := range 20 {
		sales = append(sales, fmt.Sprintf("| Grüße %d 漢字 | %d | %v | 2024-03-%02d |", i, i, float64(i)/8, i+1))
		if i%2 == 1 {
			sales = append(sales, fmt.Sprintf(" x%d |", i))
		}
		sales = append(sales, strings.ToUpper(strconv.FormatBool(i%3 == 0)))
	}
	more := slices.Concat(sales, []string{"## Sheet 2: Köpfe & more", "| a | 1000000000 |", "| b | -2.5 |"})
	odd := slices.Concat(more, []string{"## Sheet 3: Odd", "| a | b | c | d |", "| 1 | #N/A |", "| 4 |"})

	for name, texts := range map[string][]string{"book.xlsb": more, "short.xlsb": odd, "shared.xlsb": odd} {
		t.Run(name, func(t *testing.T) {
			text, about, err := convert(t, documents.Zip, binaryWorkbook(t, name))
			if err != nil {
				t.Fatal(err)
			}
			checkOrder(t, text, texts)
			if len(about.Warnings) > 0 {
				t.Errorf("warnings %q", about.Warnings)
			}
		})
	}
}

func binaryWorkbook(tb testing.TB, name string) []byte {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("../tablefiles/testdata", name))
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func member(tb testing.TB, files *zip.Reader, name string) []byte {
	tb.Helper()
	f, err := files.Open(name)
	if err != nil {
		tb.Fatal(err)
	}
	data, err := io.ReadAll(f)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

const message = "From: =?utf-8?q?Ad=C3=A9?= <ade@example.com>\r\nTo: bob@example.com\r\n" +
	"Subject: Gr=?utf-8?q?=C3=BC?=n\r\nDate: Mon, 2 Mar 2026 10:00:00 +0100\r\n" +
	"MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n" +
	"--b\r\nContent-Type: text/html; charset=iso-8859-1\r\n\r\n<p>Caf\xe9 <b>bold</b></p>\r\n" +
	"--b\r\nContent-Type: application/rtf\r\nContent-Disposition: attachment; filename=\"a.rtf\"\r\n\r\n" +
	"{\\rtf1 in the attachment}\r\n--b--\r\n"

func TestDocumentsThatAreTexts(t *testing.T) {
	for name, c := range map[string]struct {
		kind  documents.Kind
		data  string
		texts []string
		not   string
	}{
		"html": {
			documents.HTML, "<html><head><title>T &amp; U</title></head><body><script>alert()</script><h2>Head</h2>" +
				"<p>one <a href='x'>two</a></p><table><tr><th>a</th></tr><tr><td>1</td></tr></table>",
			[]string{"HTML: T & U", "## Head", "one [two](x)", "| a |", "| 1 |"},
			"alert",
		},
		"html in Latin-1": {
			documents.HTML, "<meta charset=iso-8859-1><p>caf\xe9", []string{"café"}, "\uFFFD",
		},
		"mail": {
			documents.Mail, message,
			[]string{
				"Adé <ade@example.com>", "bob@example.com", "2026-03-02T10:00:00+01:00", "Café bold", "a.rtf",
				"in the attachment",
			},
			"<p>",
		},
		"notebook": {
			documents.Notebook, `{"cells": [{"cell_type": "markdown", "source": ["# A\n", "b"]},
				{"cell_type": "code", "source": "f()", "outputs": [{"output_type": "stream", "text": ["o1\n"]},
				{"output_type": "error", "ename": "KeyError", "evalue": "'k'"},
				{"output_type": "error", "ename": "ZeroDivisionError", "evalue": "by zero", "traceback":
					["\u001b[0;31m-----\u001b[0m", "Cell \u001b[1;32mIn[1], line 7\u001b[0m",
						"ZeroDivisionError: by zero"]},
				{"data": {"image/png": "aaaa", "text/plain": "<Figure>"}}]}], "nbformat": 4}`,
			[]string{
				"2 cells", "# A", "b", "```python", "f()", "o1", "KeyError: 'k'",
				"```\n-----\nCell In[1], line 7\nZeroDivisionError: by zero\n```", "Figure", "[picture: png]",
			},
			"aaaa",
		},
		"rtf": {
			documents.RTF, `{\rtf1\ansi\ansicpg1250{\fonttbl{\f0 Arial;}}P\'f8\'edli\'9a {\b bold}\par` +
				`\u-10179?\u-8704?{\v hidden}{\footnote a note} end\par}`,
			[]string{"Příliš bold", "😀", "(note: a note)", "end"},
			"hidden",
		},
	} {
		t.Run(name, func(t *testing.T) {
			text, _, err := convert(t, c.kind, []byte(c.data))
			if err != nil {
				t.Fatal(err)
			}
			checkOrder(t, text, c.texts)
			if strings.Contains(text, c.not) {
				t.Errorf("%q is in\n%s", c.not, text)
			}
		})
	}
}

func TestMailboxIsReadMessageByMessage(t *testing.T) {
	var box strings.Builder
	for range 300 {
		box.WriteString("From ada@example.com Mon Mar  2 10:00:00 2026\nSubject: one of many\n" +
			"Content-Type: text/plain\n\n>From the start\n" + strings.Repeat("padding ", 500) + "\n\n")
	}
	text, about, err := convert(t, documents.Mailbox, []byte(box.String()))
	if err != nil {
		t.Fatal(err)
	}
	if len(about.Parts) != 300 || about.Noun != "message" {
		t.Fatalf("%d parts that are a %q", len(about.Parts), about.Noun)
	}
	last := about.Parts[299]
	if !strings.HasPrefix(text[last.Start:], "## Message 300: one of many") {
		t.Errorf("the last part begins %.60q", text[last.Start:])
	}
}

func TestDocumentsWithoutTextSayWhy(t *testing.T) {
	archive := packed(t, map[string][]byte{"a.txt": []byte("a")})

	for name, c := range map[string]struct {
		kind documents.Kind
		data string
		want documents.ProblemKind
	}{
		"no header of a PDF":       {documents.PDF, strings.Repeat("nothing ", 100), documents.Damaged},
		"an archive of no kind":    {documents.Zip, string(archive), documents.Unsupported},
		"a cut archive":            {documents.Zip, "PK\x03\x04" + strings.Repeat("\x00", 100), documents.Damaged},
		"a cut compound file":      {documents.OLE, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", documents.Damaged},
		"a page without text":      {documents.HTML, "<html><script>alert()</script></html>", documents.NoText},
		"no notebook":              {documents.Notebook, "{", documents.Damaged},
		"a notebook without cells": {documents.Notebook, "{}", documents.Damaged},
		"RTF without text":         {documents.RTF, `{\rtf1{\fonttbl x}}`, documents.NoText},
		"an unknown kind":          {"other", "x", documents.Unsupported},
		"an encrypted ODF": {
			documents.Zip,
			string(packed(t, map[string][]byte{
				"mimetype":              []byte("application/vnd.oasis.opendocument.text"),
				"META-INF/manifest.xml": []byte("<encryption-data/>"), "content.xml": []byte("secret"),
			})), documents.Encrypted,
		},
	} {
		t.Run(name, func(t *testing.T) {
			text, _, err := convert(t, c.kind, []byte(c.data))
			problem, ok := errors.AsType[*documents.ProblemError](err)
			if !ok || problem.Kind != c.want {
				t.Errorf("%v (%q), want kind %d", err, text, c.want)
			}
		})
	}
}

// packed returns a zip archive.
func packed(tb testing.TB, files map[string][]byte) []byte {
	tb.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for name, data := range files {
		f, err := w.Create(name)
		if err == nil {
			_, err = f.Write(data)
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// TestSectionsAreParts checks that the headings of the highest level that occurs twice begin the
// parts of a document.
func TestSectionsAreParts(t *testing.T) {
	const begin = `<a xmlns:text="t"><text:h text:outline-level="1">Title</text:h><text:p>before</text:p>`
	odt := packed(t, map[string][]byte{
		"mimetype": []byte("application/vnd.oasis.opendocument.text"),
		"content.xml": []byte(begin + `<text:h text:outline-level="2">One</text:h><text:p>first</text:p>` +
			`<text:h text:outline-level="2">Two</text:h><text:p>second</text:p></a>`),
	})
	text, about, err := convert(t, documents.Zip, odt)
	if err != nil {
		t.Fatal(err)
	}

	var titles []string
	for i, part := range about.Parts {
		titles = append(titles, part.Title)
		end := int64(len(text))
		if i+1 < len(about.Parts) {
			end = about.Parts[i+1].Start
		}
		if want := []string{"before", "first", "second"}[i]; !strings.Contains(text[part.Start:end], want) {
			t.Errorf("part %d is %q, without %q", i, text[part.Start:end], want)
		}
	}
	if !slices.Equal(titles, []string{"", "One", "Two"}) || about.Noun != "section" {
		t.Errorf("%q are called %q", titles, about.Noun)
	}
}

// TestNotesNameLeftOutParts checks the notes about documents that cannot be read completely, or at
// all.
func TestNotesNameLeftOutParts(t *testing.T) {
	odt := func(content string) []byte {
		return packed(t, map[string][]byte{
			"mimetype": []byte("application/vnd.oasis.opendocument.text"), "content.xml": []byte(content),
		})
	}
	_, _, err := convert(t, documents.Zip, odt("<a/>"))
	if problem, ok := errors.AsType[*documents.ProblemError](err); !ok || problem.Kind != documents.NoText {
		t.Errorf("an empty text: %v", err)
	}

	_, about, err := convert(t, documents.Zip, odt("<a><text:p>x &unknown; y</text:p></a>"))
	if err != nil || len(about.Warnings) != 1 || !strings.Contains(about.Warnings[0], "&unknown;") {
		t.Errorf("an entity that is not declared: %v, %v", about, err)
	}

	page := "<p>hello</p>" + strings.Repeat("<div>", 100_000)
	_, _, err = convert(t, documents.HTML, []byte(page))
	if problem, ok := errors.AsType[*documents.ProblemError](err); !ok || problem.Kind != documents.Damaged {
		t.Errorf("a deep page: %v", err)
	}
	mail := "Subject: s\nContent-Type: text/html\n\n" + page
	text, about, err := convert(t, documents.Mail, []byte(mail))
	if err != nil || !strings.Contains(text, "hello") || len(about.Warnings) != 1 {
		t.Errorf("a deep page in mail: %.100q, %v, %v", text, about, err)
	}
}

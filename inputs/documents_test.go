package inputs_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/encoding/unicode"

	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/tiers"
)

// samples returns small documents made by other programs.
func samples(t *testing.T) map[string][]byte {
	t.Helper()
	return unzip(t, "../internal/data/documents/testdata/libreoffice.zip")
}

const (
	mailbox  = "From a Mon Mar  2 10:00:00 2026\nSubject: hello\n\nthe body\n"
	notebook = `{"cells": [{"cell_type": "code", "source": "f()"}]}`
	page     = "<!DOCTYPE html><html><body><h1>Head</h1><script>alert()</script></body></html>"
)

func TestDocumentsBecomeMarkdown(t *testing.T) {
	all := samples(t)
	wide, err := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().Bytes([]byte(page))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		data  []byte
		kind  bigtext.Kind
		holds string
		note  string
	}{
		"report.pdf":  {all["report.pdf"], "pdf", "Annual report", "1 page"},
		"a":           {all["report.pdf"], "pdf", "Annual report", "1 page"}, // the bytes decide
		"report.doc":  {all["report.doc"], "doc", "# Annual report", "from doc"},
		"report.odt":  {all["report.odt"], "odt", "# Annual report", "from odt"},
		"report":      {all["report.odt"], "odt", "# Annual report", "from odt"},
		"report.rtf":  {all["report.rtf"], "rtf", "Annual report", "from rtf"},
		"sales.xls":   {all["sales.xls"], "xls", "## Sheet 2: Köpfe", "2 sheets"},
		"page.html":   {[]byte(page), "html", "# Head", "from html"},
		"wide.html":   {wide, "html", "# Head", "from html"},
		"pagewithout": {[]byte(page), "html", "# Head", "from html"},
		"page.xls":    {[]byte(page), "html", "# Head", "from html"},
		"table.xls": {
			[]byte("<table><tr><th>a</th></tr><tr><td>Zoë</td></tr></table>"), "html", "Zoë", "from html",
		},
		"report.pdf.gz":  {packed(t, "gzip", all["report.pdf"]), "pdf", "Annual report", "1 page"},
		"message.eml":    {[]byte("Subject: hello\n\nthe body\n"), "eml", "Subject: hello", "from eml"},
		"box.mbox":       {[]byte(mailbox), "mbox", "the body", "1 message"},
		"notebook.ipynb": {[]byte(notebook), "ipynb", "```python\nf()\n", "1 cell"},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := read(t, inputs.Options{}, name, c.data)
			if err != nil {
				t.Fatal(err)
			}
			text := in.Text.(*bigtext.Text)
			got := contentOf(t, text)
			if text.IsBinary() || text.Kind() != c.kind || !strings.Contains(got, c.holds) {
				t.Errorf("a %q that begins\n%.200s", text.Kind(), got)
			}
			notes := strings.Join(in.Notes, "\n")
			if !strings.Contains(notes, c.note) || !strings.Contains(notes, "converted from") {
				t.Errorf("notes %q", in.Notes)
			}
			if !strings.HasSuffix(name, ".gz") && contentOf(t, text.Original()) != string(c.data) {
				t.Error("the file itself is lost")
			}
		})
	}
}

func TestDocumentsInFoldersAndArchives(t *testing.T) {
	all := samples(t)
	dir := t.TempDir()
	for _, name := range []string{"report.pdf", "report.odt", "sales.xls"} {
		if err := os.WriteFile(filepath.Join(dir, name), all[name], 0o600); err != nil {
			t.Fatal(err)
		}
	}
	archive, err := os.ReadFile("../internal/data/documents/testdata/libreoffice.zip")
	if err != nil {
		t.Fatal(err)
	}

	folder, err := inputs.Open(t.Context(), inputs.Options{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	packed, err := read(t, inputs.Options{}, "all.zip", archive)
	if err != nil {
		t.Fatal(err)
	}
	for where, in := range map[string]tiers.Input{"folder": folder, "archive": packed} {
		t.Run(where, func(t *testing.T) {
			files := filesOf(t, in)
			for _, name := range []string{"report.pdf", "report.odt", "sales.xls"} {
				if !strings.Contains(files[name], "Annual report") && !strings.Contains(files[name], "Sheet 1: Sales") {
					t.Errorf("%s: %s begins %.100q", where, name, files[name])
				}
			}
		})
	}
}

func TestDocumentsWithoutTextStayBytes(t *testing.T) {
	for name, c := range map[string]struct{ data, note string }{
		"damaged.pdf":  {"%PDF-1.4\nnothing", "damaged"},
		"damaged.doc":  {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 nothing", "damaged"},
		"damaged.docx": {"PK\x03\x04 nothing", "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := read(t, inputs.Options{}, name, []byte(c.data))
			if err != nil {
				t.Fatal(err)
			}
			text := in.Text.(*bigtext.Text)
			notes := strings.Join(in.Notes, "\n")
			if !text.IsBinary() || contentOf(t, text) != c.data || !strings.Contains(notes, c.note) {
				t.Errorf("%s: a %q of %d bytes, notes %q", name, text.Kind(), text.Size(), in.Notes)
			}
		})
	}
}

// TestPagesOfPDFsCanBeDrawn draws pages with and without text.
func TestPagesOfPDFsCanBeDrawn(t *testing.T) {
	for name, c := range map[string]struct {
		content  string
		isBinary bool
	}{
		"text.pdf":    {"BT /F1 12 Tf 9 9 Td (Total: 42) Tj ET", false},
		"scanned.pdf": {"0 0 9 9 re f", true},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := read(t, inputs.Options{}, name, makePDF(t, c.content))
			if err != nil {
				t.Fatal(err)
			}
			text := in.Text.(*bigtext.Text)
			if text.IsBinary() != c.isBinary || len(text.Sections()) != 1 || !text.HasPages() {
				t.Errorf("binary: %v, %d sections, notes %q", text.IsBinary(), len(text.Sections()), in.Notes)
			}
			picture, err := text.DrawPage(t.Context(), 0, 72)
			if err != nil || !bytes.HasPrefix(picture, []byte("\n\x89PNG")) {
				t.Errorf("%.20q, %v", picture, err)
			}
			_, err = text.DrawPage(t.Context(), 1, 72)
			if err == nil || !strings.Contains(err.Error(), "page 2 of "+name) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestTextsThatSeemDocumentsStayTexts(t *testing.T) {
	for name, data := range map[string]string{
		"false.ipynb": `{"cells": 1}`,
		"empty.html":  "<html><script>alert()</script></html>",
		"mail.txt":    "From: a\nSubject: b\n\nbody",
		"a.patch":     "From 0123456789 Mon Sep 17 00:00:00 2001\nFrom: a\n",
		"page.php":    page,
		"false.docx":  "only the name says docx",
		"about.md":    "%PDF- is how a PDF begins",
	} {
		t.Run(name, func(t *testing.T) {
			in, err := read(t, inputs.Options{}, name, []byte(data))
			if err != nil {
				t.Fatal(err)
			}
			if text := in.Text.(*bigtext.Text); name != "about.md" && (text.IsBinary() || contentOf(t, text) != data) {
				t.Errorf("%s: it is a %q, %q", name, text.Kind(), contentOf(t, text))
			}
		})
	}
}

func TestDocumentsCanBeKept(t *testing.T) {
	pdf := samples(t)["report.pdf"]
	o := inputs.Options{KeepDocuments: true}
	for name, data := range map[string][]byte{"a.pdf": pdf, "a.html": []byte(page)} {
		t.Run(name, func(t *testing.T) {
			in, err := read(t, o, name, data)
			if err != nil {
				t.Fatal(err)
			}
			text := in.Text.(*bigtext.Text)
			if text.IsBinary() != (name == "a.pdf") || contentOf(t, text) != string(data) {
				t.Errorf("%s: it is a %q of %d bytes", name, text.Kind(), text.Size())
			}
		})
	}
}

// TestTheTextOfADocumentIsBounded checks the error for a page whose text exceeds the limit.
func TestTheTextOfADocumentIsBounded(t *testing.T) {
	o := inputs.Options{MaxUnpacked: 1 << 20}
	_, err := read(t, o, "a.html", bytes.Repeat([]byte("<p>word"), 300_000))
	if err == nil || !strings.Contains(err.Error(), "--max-unpacked") {
		t.Errorf("%v", err)
	}
}

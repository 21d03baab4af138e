package documents_test

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/documents"
	"github.com/rlmhq/rlm/internal/rustmodule"
	"github.com/rlmhq/rlm/internal/testing/testcache"
)

// TestBombsEndInErrors converts small files that stand for very much.
func TestBombsEndInErrors(t *testing.T) {
	const types = `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`
	zeros := make([]byte, 300<<20)
	page := append([]byte("BT /F1 12 Tf "), bytes.Repeat([]byte("(aaaaaaaa) Tj "), 8<<20)...)
	xml := append([]byte("<worksheet><sheetData><row><c><v>"), bytes.Repeat([]byte("1"), 100<<20)...)
	for name, c := range map[string]struct {
		kind documents.Kind
		data []byte
	}{
		"xlsx": {documents.Zip, packed(t, map[string][]byte{
			"[Content_Types].xml": []byte(types),
			"xl/workbook.xml":     xml,
		})},
		"docx": {documents.Zip, packed(t, map[string][]byte{
			"[Content_Types].xml": zeros[:100<<20], "word/document.xml": []byte("<w/>"),
		})},
		"odt": {documents.Zip, packed(t, map[string][]byte{
			"mimetype": []byte("application/vnd.oasis.opendocument.text"), "content.xml": zeros,
		})},
		"pdf":           {documents.PDF, makePDF(t, page)},
		"deep rtf":      {documents.RTF, []byte(`{\rtf1 ` + strings.Repeat("{", 1<<20))},
		"deep notebook": {documents.Notebook, []byte(strings.Repeat(`{"cells":[`, 1<<18))},
	} {
		t.Run(name, func(t *testing.T) {
			text, _, err := convert(t, c.kind, c.data)
			_, isProblem := errors.AsType[*documents.ProblemError](err)
			if !isProblem && !documents.IsLimit(err) {
				t.Errorf("%d bytes became %d bytes, and the error %v", len(c.data), len(text), err)
			}
		})
	}
}

// makePDF returns a PDF of one page whose content is packed.
func makePDF(tb testing.TB, content []byte) []byte {
	tb.Helper()
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	if _, err := w.Write(content); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}

	var out bytes.Buffer
	var starts []int
	for _, object := range []string{
		"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
		fmt.Sprintf("<</Filter/FlateDecode/Length %d>>stream\n%s\nendstream", packed.Len(), packed.Bytes()),
		"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
	} {
		if out.Len() == 0 {
			out.WriteString("%PDF-1.4\n")
		}
		starts = append(starts, out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", len(starts), object)
	}
	table := out.Len()
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n", len(starts)+1)
	for _, start := range starts {
		fmt.Fprintf(&out, "%010d 00000 n \n", start)
	}
	fmt.Fprintf(&out, "trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(starts)+1, table)
	return out.Bytes()
}

func TestConversionEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	want := errors.New("enough")
	data := []byte(strings.Repeat("<p>text", 1<<16))
	cancelling := writerFunc(func(p []byte) (int, error) {
		cancel(want)
		return len(p), nil
	})
	_, err := documents.Convert(
		ctx, documents.Options{CacheDir: testcache.Dir()}, documents.HTML, section(data), cancelling)
	if !errors.Is(err, want) && !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestErrorsOfTheTextEndAConversion(t *testing.T) {
	want := errors.New("the disk is full")
	data := []byte("<p>text")
	options := documents.Options{CacheDir: testcache.Dir()}
	failing := writerFunc(func([]byte) (int, error) { return 0, want })
	_, err := documents.Convert(t.Context(), options, documents.HTML, section(data), failing)

	if !errors.Is(err, want) {
		t.Errorf("%v", err)
	}
}

// FuzzConvert changes documents. Whatever they become, the module ends within its bounds and
// answers as it should.
func FuzzConvert(f *testing.F) {
	kinds := []documents.Kind{
		documents.PDF, documents.Zip, documents.OLE, documents.RTF, documents.Mail, documents.Mailbox,
		documents.HTML, documents.Notebook,
	}
	files, err := zip.OpenReader("testdata/libreoffice.zip")
	if err != nil {
		f.Fatal(err)
	}
	defer files.Close()
	for name, kind := range map[string]byte{
		"report.pdf": 0, "report.odt": 1, "sales.ods": 1, "report.epub": 1, "report.doc": 2,
		"sales.xls": 2, "report.rtf": 3,
	} {
		f.Add(kind, member(f, &files.Reader, name))
	}
	f.Add(byte(4), []byte(message))
	f.Add(byte(5), []byte("From a Mon Mar  2 10:00:00 2026\nSubject: s\n\nbody\n"))
	f.Add(byte(6), []byte("<html><title>t</title><table><tr><td>1<ul><li>x"))
	f.Add(byte(7), []byte(`{"cells": [{"cell_type": "code", "source": ["a"],
		"outputs": [{"data": {"text/plain": "x"}}]}]}`))

	f.Fuzz(func(t *testing.T, kind byte, data []byte) {
		_, _, err := convert(t, kinds[int(kind)%len(kinds)], data)
		if errors.Is(err, rustmodule.ErrMalformed) {
			t.Error(err)
		}
	})
}

package documents_test

import (
	"archive/zip"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/documents"
	"github.com/rlmhq/rlm/internal/machine/rustmodule"
)

// TestDeepDocumentsEndInErrors converts documents with deeply nested parts. Package inputs tests
// documents that expand enormously.
func TestDeepDocumentsEndInErrors(t *testing.T) {
	for name, c := range map[string]struct {
		kind documents.Kind
		data []byte
	}{
		"deep rtf":      {documents.RTF, []byte(`{\rtf1 ` + strings.Repeat("{", 1<<20))},
		"deep notebook": {documents.Notebook, []byte(strings.Repeat(`{"cells":[`, 1<<18))},
	} {
		t.Run(name, func(t *testing.T) {
			text, _, err := convert(t, c.kind, c.data)
			_, isProblem := errors.AsType[*documents.ProblemError](err)
			_, isLimit := errors.AsType[*rustmodule.LimitError](err)
			if !isProblem && !isLimit && !errors.Is(err, rustmodule.ErrTooDeep) {
				t.Errorf("%d bytes became %d bytes, and the error %v", len(c.data), len(text), err)
			}
		})
	}
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
		ctx, options, documents.HTML, section(data), cancelling)
	if !errors.Is(err, want) && !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestErrorsOfTheTextEndAConversion(t *testing.T) {
	want := errors.New("the disk is full")
	data := []byte("<p>text")
	failing := writerFunc(func([]byte) (int, error) { return 0, want })
	_, err := documents.Convert(t.Context(), options, documents.HTML, section(data), failing)

	if !errors.Is(err, want) {
		t.Errorf("%v", err)
	}
}

// FuzzConvert changes documents. For each one, the module must finish within its bounds and answer
// in the right format.
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
	f.Add(byte(1), binaryWorkbook(f, "short.xlsb"))
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

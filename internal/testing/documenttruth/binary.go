package documenttruth

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"io"
	"path/filepath"
	"slices"
	"testing"
)

// DropValues replaces the shares in the third column of book.xlsb of package tablefiles with
// formulas that divide the adjacent count by 8. The stored values of the formulas are 0, and the
// workbook requests a recalculation. The last row has a shared formula.
func DropValues(tb testing.TB, book []byte) []byte {
	tb.Helper()
	const rowKind, ratio, number, formula, lastRow = 0, 2, 5, 9, 20
	var row []byte
	book = ChangeRecords(tb, book, func(kind byte, body []byte) (byte, []byte) {
		isNumber := kind == ratio || kind == number
		switch {
		case kind == rowKind:
			row = body[:4]
		case isNumber && binary.LittleEndian.Uint32(body) == 2 && len(row) == 4:
			tokens := slices.Concat([]byte{0x44}, row, []byte{1, 0xc0, 0x1e, 8, 0, 0x06})
			if row[0] == lastRow {
				tokens = slices.Concat([]byte{0x01}, row)
			}
			length := binary.LittleEndian.AppendUint32(nil, uint32(len(tokens)))
			return formula, slices.Concat(body[:8], make([]byte, 8+2), length, tokens, make([]byte, 4))
		}
		return kind, body
	})

	const isOpening = 1
	settings := slices.Concat([]byte{0x9d, 0x01, 26}, make([]byte, 24), []byte{isOpening, 0})
	return changeMembers(tb, book, "xl/workbook.bin", func(workbook []byte) []byte {
		return append(workbook, settings...)
	})
}

// ChangeRecords changes the records of kinds below 128 in the sheets of a binary workbook.
func ChangeRecords(tb testing.TB, book []byte, change func(kind byte, body []byte) (byte, []byte)) []byte {
	tb.Helper()
	return changeMembers(tb, book, "xl/worksheets/*.bin", func(sheet []byte) []byte {
		return changeSheet(sheet, change)
	})
}

func changeMembers(tb testing.TB, data []byte, pattern string, change func([]byte) []byte) []byte {
	tb.Helper()
	book, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		tb.Fatal(err)
	}
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range book.File {
		isWanted, _ := filepath.Match(pattern, f.Name)
		if !isWanted {
			if err := w.Copy(f); err != nil {
				tb.Fatal(err)
			}
			continue
		}
		member, err := w.Create(f.Name)
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := member.Write(change(readMember(tb, f))); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

func readMember(tb testing.TB, f *zip.File) []byte {
	tb.Helper()
	r, err := f.Open()
	if err != nil {
		tb.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func changeSheet(sheet []byte, change func(kind byte, body []byte) (byte, []byte)) []byte {
	var out []byte
	for len(sheet) > 0 {
		kind := sheet[:1]
		if kind[0] >= 0x80 {
			kind = sheet[:2]
		}
		length, n := binary.Uvarint(sheet[len(kind):])
		start := len(kind) + n
		body := sheet[start:][:length]
		sheet = sheet[start+len(body):]

		if len(kind) == 1 {
			var changed byte
			changed, body = change(kind[0], body)
			kind = []byte{changed}
		}
		out = binary.AppendUvarint(append(out, kind...), uint64(len(body)))
		out = append(out, body...)
	}
	return out
}

package tables

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

var plainDialect = Dialect{Delimiter: ',', Quote: '"', Limit: maxRow}

// TestScannerReadsWhatAReaderReads compares a Scanner with a reader, on rows that begin and end
// anywhere within a read.
func TestScannerReadsWhatAReaderReads(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	for range 20 {
		text := slices.Concat(randomPieces(r, csvPieces, 40),
			[]byte(`"`+strings.Repeat("x", r.IntN(2*scanSize))+"\"\r\n"), randomPieces(r, csvPieces, 200_000))
		dialect := Dialect{Delimiter: ',', Quote: '"', Limit: maxRow}
		rows := &rowReader{Dialect: dialect, data: text, line: 1}
		scanner := NewScanner(bytes.NewReader(text), int64(len(text)), 0, 1, dialect)

		for {
			isRow, err := rows.next()
			if err != nil {
				t.Fatal(err)
			}
			if isRow && len(rows.fields) == 0 {
				continue
			}
			fields, err := scanner.NextFields()
			if !isRow {
				if !errors.Is(err, io.EOF) {
					t.Fatalf("at the end: %v", err)
				}
				break
			}
			if rows.open > 0 {
				if err == nil || !strings.Contains(err.Error(), "never ends") {
					t.Fatalf("a quote that never ends: %.200q, %v", fields, err)
				}
				break
			}
			if err != nil || !slices.EqualFunc(fields, rows.fields, bytes.Equal) ||
				scanner.Line() != rows.line || scanner.Offset() != int64(rows.at) {
				t.Fatalf("line %d: got %.200q in line %d, %v; want %.200q",
					rows.line, fields, scanner.Line(), err, rows.fields)
			}
		}
	}
}

func TestScannerRefusesAQuoteThatNeverEnds(t *testing.T) {
	for text, says := range map[string]string{
		"1,\"open\n2,x\n": "the quote in line 1", "1\n2,\"a\nb\",\"c\nd": "the quote in line 3",
		"1,\"a\nb\"": "", "1,a\"b": "", "1,\"a\"\"": "the quote in line 1", "1,\"\"": "",
	} {
		scanner := NewScanner(strings.NewReader(text), int64(len(text)), 0, 1, plainDialect)
		var err error
		for err == nil {
			_, err = scanner.NextFields()
		}
		if isEnd := errors.Is(err, io.EOF); isEnd != (says == "") || !isEnd && !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v; want %q", text, err, says)
		}
	}
}

func TestScannerReadsLines(t *testing.T) {
	lines := []string{
		"\ufeff{}", strings.Repeat("x", scanSize+5), "", " ", "a\r", "b\tc ",
		strings.Repeat("y", 3*scanSize),
	}
	text := strings.Join(lines, "\n")
	scanner := NewScanner(strings.NewReader(text), int64(len(text)), 0, 1, Dialect{})
	for _, want := range []string{"{}", lines[1], "a", "b\tc", lines[6]} {
		if got, err := scanner.NextLine(); err != nil || string(got) != want {
			t.Fatalf("got %.50q %v, want %.50q", got, err, want)
		}
	}
	if got, err := scanner.NextLine(); !errors.Is(err, io.EOF) || scanner.Line() != 8 {
		t.Fatalf("at the end: %.50q %v in line %d", got, err, scanner.Line())
	}
}

func TestScannerRefusesLongRows(t *testing.T) {
	text := "a\n\"" + strings.Repeat("x", 3*maxRow)
	for _, read := range []func(*Scanner) error{
		func(s *Scanner) error { _, err := s.NextFields(); return err },
		func(s *Scanner) error { _, err := s.NextLine(); return err },
	} {
		scanner := NewScanner(strings.NewReader(text), int64(len(text)), 0, 1, plainDialect)
		if err := read(scanner); err != nil {
			t.Fatal(err)
		}
		if err := read(scanner); err == nil || !strings.Contains(err.Error(), "the row in line 2 has more than") {
			t.Fatal(err)
		}
		if cap(scanner.buf) > 4*maxRow {
			t.Errorf("the scanner holds %d bytes", cap(scanner.buf))
		}
	}
}

func TestMembers(t *testing.T) {
	for line, want := range map[string]string{
		`{}`: "", `{ }`: "", `{"a":1}`: `"a"=1;`,
		`{"a" : [1, {"b": "]"}] , "c\"d":{"e":"}\\"},"f":tru}`: `"a"=[1, {"b": "]"}];"c\"d"={"e":"}\\"};"f"=tru;`,
		`{"a":"x"`: "no", `{"a"}`: "no", `[1]`: "no", `1`: "no", `{"a":1} x`: "no", `{"a":[1}`: "no", `{"a":1,}`: "no",
		`{"a":`: "no", `{"a":"\`: "no", "": "no", `{a:1}`: "no",
	} {
		got := ""
		isObject := Members([]byte(line), func(key, value []byte) { got += string(key) + "=" + string(value) + ";" })
		if !isObject {
			got = "no"
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}

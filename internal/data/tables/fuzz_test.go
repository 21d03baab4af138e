package tables

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzCSVRows reads all rows of arbitrary text, in batches of three.
func FuzzCSVRows(f *testing.F) {
	f.Add([]byte("a,b\n1,\"x\ny\"\"\"z\r\n\r3,\xff"), byte(','), byte('"'), 100, "a\x00b")
	f.Add([]byte("\"\n\n"), byte(';'), byte('\''), 1, "")
	f.Fuzz(func(t *testing.T, text []byte, delimiter, quote byte, limit int, names string) {
		dialect := Dialect{Delimiter: delimiter, Quote: quote, Limit: limit}
		if dialect.Check() != nil {
			return
		}
		var columns [][]byte
		if names != "" {
			columns = bytes.Split([]byte(names), []byte{0})
		}
		for at, line := 0, int64(1); at < len(text); {
			batch := CSVRows(text, at, line, dialect, columns, 3)
			out := batch.Encode(0)
			if bound := 1000 + 12*len(text) + 20*(len(names)+3*len(columns)); len(out) > bound {
				t.Fatalf("%d bytes became a batch of %d", len(text), len(out))
			}
			if batch.Stuck {
				break
			}
			if batch.Next <= at || batch.Next > len(text) || batch.Line <= line {
				t.Fatalf("from byte %d in line %d to byte %d in line %d of %d",
					at, line, batch.Next, batch.Line, len(text))
			}
			at, line = batch.Next, batch.Line
		}

		if layout, err := FindLayout(text, 0, Options{}); err == nil {
			seen := map[string]bool{}
			for _, name := range layout.Columns {
				if len(name) == 0 || seen[string(name)] {
					t.Fatalf("the columns of %q are %q", text, layout.Columns)
				}
				seen[string(name)] = true
			}
		}
	})
}

// FuzzJSONLines decodes random lines. Each line that the host accepts must be JSON.
func FuzzJSONLines(f *testing.F) {
	for _, piece := range jsonPieces {
		f.Add([]byte(piece))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		batch, err := JSONLines(text, 0, 1)
		if err != nil || batch.Next != len(text) {
			t.Fatalf("at byte %d of %d: %v", batch.Next, len(text), err)
		}
		if out := batch.Encode(0); len(out) > 1000+60*len(text) {
			t.Fatalf("%d bytes became a batch of %d", len(text), len(out))
		}

		line := bytes.Trim(text, " \t\r\n")
		d := &jsonDecoder{keys: map[string]int{}}
		d.begin(0)
		if d.decode(line) && !json.Valid(line) {
			t.Fatalf("%q is not JSON", line)
		}
	})
}

// FuzzLines reads all lines of arbitrary text.
func FuzzLines(f *testing.F) {
	f.Add([]byte("a\r\n\r\r\n\n\xff\xed\xa0\x80\x00\r"))
	f.Fuzz(func(t *testing.T, text []byte) {
		batch := Lines(text, 0, 1)
		lines := int64(bytes.Count(text, []byte{'\n'}))
		if len(text) > 0 && text[len(text)-1] != '\n' {
			lines++
		}
		if batch.Stuck || batch.Next != len(text) || batch.Line != 1+lines {
			t.Fatalf("byte %d of %d, line %d after %d lines", batch.Next, len(text), batch.Line, lines)
		}
		if out := batch.Encode(0); len(out) > 1000+4*len(text) {
			t.Fatalf("%d bytes became a batch of %d", len(text), len(out))
		}
	})
}

package tables

import (
	"bytes"
	"fmt"
	"testing"
)

// makeRows returns n rows in CSV and in JSON Lines.
func makeRows(n int) (csv, jsonLines []byte) {
	var c, j bytes.Buffer
	c.WriteString("id,time,user,city,amount,status,note\n")
	for i := range n {
		city := []string{"Berlin", "Köln", "New York"}[i%3]
		note := []string{"plain", "with, comma", `with ""quote""`}[i%3]
		fmt.Fprintf(&c, "%d,2026-03-%02dT10:00:00,user%d,%s,%d.%02d,ok,\"%s\"\n",
			i, i%28+1, i*7919%10000, city, i%1000, i%100, note)
		fmt.Fprintf(&j, `{"id": %d, "time": "2026-03-%02dT10:00:00", "user": "user%d", "city": %q, `+
			`"amount": %d.%02d, "status": "ok", "note": "plain \"x\""}`+"\n",
			i, i%28+1, i*7919%10000, city, i%1000, i%100)
	}
	return c.Bytes(), j.Bytes()
}

func BenchmarkCSVRows(b *testing.B) {
	text, _ := makeRows(20_000)
	layout, err := FindLayout(text, 0, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		for at, line := layout.First, int64(2); at < len(text); {
			batch := CSVRows(text, at, line, layout.Dialect, layout.Columns, 1<<30)
			at = batch.Next
		}
	}
}

func BenchmarkJSONLines(b *testing.B) {
	_, text := makeRows(20_000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		for at := 0; at < len(text); {
			batch, err := JSONLines(text, at, 1)
			if err != nil {
				b.Fatal(err)
			}
			at = batch.Next
		}
	}
}

func BenchmarkLines(b *testing.B) {
	text, _ := makeRows(20_000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		for at := 0; at < len(text); {
			at = Lines(text, at, 1).Next
		}
	}
}

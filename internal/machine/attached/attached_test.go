package attached

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
)

// fileOf creates an open file.
func fileOf(tb testing.TB, data []byte) *os.File {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "program")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		tb.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = file.Close() })
	return file
}

func attachTo(t *testing.T, program *os.File, parts ...New) []byte {
	t.Helper()
	var written bytes.Buffer
	if err := Write(&written, program, parts...); err != nil {
		t.Fatal(err)
	}
	return written.Bytes()
}

func TestPartsAreReadAsWritten(t *testing.T) {
	program := bytes.Repeat([]byte("program "), 1000)
	first := attachTo(t, fileOf(t, program), New{Name: "old", Data: []byte("old")})
	image := bytes.Repeat([]byte{7}, 3*PageSize+5)
	data := attachTo(t, fileOf(t, first), New{Name: "code", About: Code{SHA256: "ab"}, Data: []byte("code")},
		New{Name: "nothing"}, New{Name: "image", Data: image})
	if !bytes.HasPrefix(data, program) {
		t.Error("the program has changed")
	}

	parts, err := Read(fileOf(t, data))
	if err != nil || len(parts) != 3 {
		t.Fatalf("%+v, %v", parts, err)
	}
	for i, want := range [][]byte{[]byte("code"), nil, image} {
		p := parts[i]
		if got := data[p.Offset : p.Offset+p.Size]; !bytes.Equal(got, want) || p.Offset%PageSize != 0 {
			t.Errorf("%s at %d is %.20q", p.Name, p.Offset, got)
		}
	}
	if parts[0].Name != "code" || string(parts[0].About) != `{"SHA256":"ab","Header":null}` {
		t.Errorf("%+v", parts[0])
	}
}

func TestAProgramWithoutParts(t *testing.T) {
	for _, data := range [][]byte{nil, []byte("short"), bytes.Repeat([]byte("program "), 1000)} {
		if parts, err := Read(fileOf(t, data)); err != nil || parts != nil {
			t.Errorf("%+v, %v", parts, err)
		}
	}
}

// FuzzRead changes tables, and checks that the parts that Read accepts are within the file and in
// order.
func FuzzRead(f *testing.F) {
	for _, table := range []string{
		`[]`, `[{"Name":"a","Offset":4096,"Size":9}]`, `[{"Offset":-4096,"Size":1}]`, `[{"Offset":1}]`,
		`[{"Offset":4096,"Size":-1}]`, `[{"Offset":4096,"Size":9223372036854775807}]`, `{`,
		`[{"Offset":8192,"Size":9},{"Offset":4096,"Size":9}]`, `[{"Offset":9223372036854771712}]`,
	} {
		f.Add([]byte(table), uint32(len(table)))
	}
	f.Fuzz(func(t *testing.T, table []byte, size uint32) {
		data := append(make([]byte, 3*PageSize), table...)
		end := int64(len(data))
		data = append(binary.LittleEndian.AppendUint32(data, size), magic...)
		parts, err := Read(fileOf(t, data))
		if err != nil && parts != nil {
			t.Errorf("%+v with %v", parts, err)
		}
		for _, p := range parts {
			if p.Offset < 0 || p.Offset%PageSize != 0 || p.Size < 0 || p.Size > end || p.Offset > end-p.Size {
				t.Errorf("%+v of %d bytes", p, end)
			}
		}
	})
}

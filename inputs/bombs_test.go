package inputs_test

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ncruces/go-sqlite3"

	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/testing/skip"
)

// bombPath is the environment variable with the path of the bomb that a test process opens.
const bombPath = "RLM_TEST_BOMB"

// mostMemory is the maximum memory of the host at any time while it opens a bomb, in kB: the
// module's 256 MiB for small files, plus the memory that any process uses.
const mostMemory = 512 << 10

// TestBombsEndInErrors opens small files that expand enormously, each in its own process. Each must
// end with an error that names the option to raise, and the memory of the host must remain bounded.
func TestBombsEndInErrors(t *testing.T) {
	skip.Short(t, "it packs and unpacks hundreds of megabytes")
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells the most memory that a process had")
	}
	warmReaders(t)
	dir := t.TempDir()
	for name, data := range makeBombs(t) {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			command := exec.CommandContext(t.Context(), os.Args[0])
			command.Env = append(os.Environ(), bombPath+"="+path)
			out, err := command.CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}

			peak := 0
			if _, err := fmt.Sscanf(string(out), "%d", &peak); err != nil || peak > mostMemory {
				t.Errorf("%d bytes took %d kB of memory", len(data), peak)
			}
			if !regexp.MustCompile("raise --max-(ratio|unpacked)").Match(out) {
				t.Errorf("%d bytes: %s", len(data), out)
			}
			t.Logf("%d bytes: %s", len(data), out)
		})
	}
}

// warmReaders compiles the readers, because this takes more memory than reading: later processes
// find the code in the cache.
func warmReaders(t *testing.T) {
	t.Helper()
	sheet := filepath.Join(t.TempDir(), "small.xlsx")
	data := makeZip(t, "[Content_Types].xml", `<Types/>`, "xl/workbook.xml", "<workbook/>")
	if err := os.WriteFile(sheet, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"../examples/inputs/report.pdf", sheet} {
		command := exec.CommandContext(t.Context(), os.Args[0])
		command.Env = append(os.Environ(), bombPath+"="+path)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
}

// openBomb opens a bomb with its tables. It prints this process's peak memory, in kB, and the
// error or the notes.
func openBomb(path string) {
	said := ""
	in, err := inputs.Open(context.Background(), inputs.Options{}, path)
	if err == nil {
		said = strings.Join(in.Notes, "; ")
		text, _ := in.Text.(*bigtext.Text)
		for _, table := range text.Tables() {
			var rows *bigtext.Text
			if rows, err = table.Read(context.Background()); err == nil {
				err = rows.Close()
			}
		}
	}
	status, _ := os.ReadFile("/proc/self/status") // without this file, no memory is printed
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	peak, _, _ = strings.Cut(strings.TrimSpace(peak), " ")
	fmt.Println(peak, err, said)
}

func makeBombs(t *testing.T) map[string][]byte {
	t.Helper()
	const types = `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`
	const most = 300 << 20 // more than any unpacked file may have
	bombs := unzip(t, "testdata/bombs.zip")

	nothing := strings.Repeat("\x00", 100<<20)
	bombs["a.zip"] = makeZip(t, "zeros", strings.Repeat(nothing, 3))
	bombs["a.xlsx"] = makeZip(t, "[Content_Types].xml", types, "xl/workbook.xml",
		"<worksheet><sheetData><row><c><v>"+strings.Repeat("1", 100<<20))
	bombs["a.xlsb"] = makeZip(t, "[Content_Types].xml", types, "xl/workbook.bin", "",
		"xl/worksheets/sheet1.bin", "\x81\x01\x00"+nothing)
	bombs["a.docx"] = makeZip(t, "[Content_Types].xml", nothing, "word/document.xml", "<w/>")
	bombs["a.odt"] = makeZip(t, "mimetype", "application/vnd.oasis.opendocument.text",
		"content.xml", nothing)
	bombs["a.ods"] = makeZip(t, "mimetype", "application/vnd.oasis.opendocument.spreadsheet", "content.xml",
		`<a><table:table table:name="x"><table:table-row table:number-rows-repeated="16384">`+
			`<table:table-cell table:number-columns-repeated="1024"><text:p>text</text:p></table:table-cell>`+
			`</table:table-row></table:table></a>`)
	bombs["a.epub"] = makeZip(t, "mimetype", "application/epub+zip",
		"META-INF/container.xml", `<rootfile full-path="book"/>`,
		"book", `<a><item id="c" href="c.html"/>`+strings.Repeat(`<itemref idref="c"/>`, 1000)+`</a>`,
		"c.html", "<p>"+strings.Repeat("word ", 1<<20))
	bombs["a.eml"] = []byte("Subject: a\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n" +
		"--b\nContent-Type: application/zip; name=a.odt\nContent-Transfer-Encoding: base64\n\n" +
		base64.StdEncoding.EncodeToString(bombs["a.odt"]) + "\n--b--\n")
	bombs["a.pdf"] = makePDF(t, "BT /F1 12 Tf "+strings.Repeat("(aaaaaaaa) Tj ", 8<<20))
	bombs["a.sqlite"] = makeEndlessView(t)

	var inGzip, inZstd, layers bytes.Buffer
	pack(t, gzip.NewWriter(&inGzip), io.LimitReader(zeros{}, most))
	z, err := zstd.NewWriter(&inZstd)
	if err != nil {
		t.Fatal(err)
	}
	pack(t, z, io.LimitReader(zeros{}, most))
	pack(t, gzip.NewWriter(&layers), bytes.NewReader(inGzip.Bytes()))
	bombs["a.gz"], bombs["a.zst"], bombs["a.gz.gz"] = inGzip.Bytes(), inZstd.Bytes(), layers.Bytes()
	return bombs
}

// makeZip returns a zip archive of members, given as alternating names and contents.
func makeZip(t *testing.T, members ...string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for i := 0; i < len(members); i += 2 {
		w, err := z.Create(members[i])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, members[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// makePDF returns a PDF of one page with compressed content.
func makePDF(t *testing.T, content string) []byte {
	t.Helper()
	var packed bytes.Buffer
	pack(t, zlib.NewWriter(&packed), strings.NewReader(content))

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

// makeEndlessView returns a database with an endless view.
func makeEndlessView(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "a.sqlite")
	db, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Exec(`CREATE VIEW v AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c)
		SELECT x, hex(zeroblob(1000000)) AS zeros FROM c`)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// zeros is an endless stream.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func pack(t *testing.T, w io.WriteCloser, r io.Reader) {
	t.Helper()
	if _, err := io.Copy(w, r); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

package inputs_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/tiers"
)

func TestMain(m *testing.M) {
	if err := testcache.Use(); err != nil {
		panic(err)
	}
	if path := os.Getenv(bombPath); path != "" {
		openBomb(path)
		return
	}
	goleak.VerifyTestMain(m)
}

// read opens bytes as a file with that name.
func read(t *testing.T, o inputs.Options, name string, data []byte) (tiers.Input, error) {
	t.Helper()
	in, err := inputs.Read(t.Context(), o, name, bytes.NewReader(data), 1<<30)
	if err == nil {
		t.Cleanup(func() {
			if err := in.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return in, err
}

// contentOf returns a text as snippets receive it.
func contentOf(t *testing.T, text tiers.Text) string {
	t.Helper()
	data, err := io.ReadAll(io.NewSectionReader(text, 0, text.Size()))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// filesOf returns a folder as snippets receive it.
func filesOf(t *testing.T, in tiers.Input) map[string]string {
	t.Helper()
	dir, ok := in.Dir.(*bigtext.Dir)
	if !ok {
		t.Fatalf("it is no folder but %+v", in)
	}
	all := map[string]string{}
	for _, name := range dir.Names() {
		text, err := dir.Text(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = contentOf(t, text)
	}
	return all
}

// packed returns data compressed in the given way.
func packed(t *testing.T, way string, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser
	var err error
	switch way {
	case "gzip":
		w = gzip.NewWriter(&out)
	case "zstd":
		w, err = zstd.NewWriter(&out)
	case "lz4":
		w = lz4.NewWriter(&out)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func unhex(t *testing.T, text string) []byte {
	t.Helper()
	data, err := hex.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// These constants contain the text "hello\n", as compressed by the commands xz and bzip2.
const (
	xzHello = "fd377a585a000004e6d6b4460200210116000000742fe5a301000568656c6c6f0a0000" +
		"00a56097f194f6fde000011e06c12fa41d1fb6f37d010000000004595a"
	bzip2Hello = "425a6839314159265359c1c080e2000001410000100244a00030cd00c3462997177245385090c1c080e2"
)

func TestCompressedFilesAreUnpacked(t *testing.T) {
	long := []byte(strings.Repeat("a line of a long log\n", 200_000))
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"a.log.gz":       {packed(t, "gzip", long), string(long)},
		"a.log.zst":      {packed(t, "zstd", long), string(long)},
		"a.log.lz4":      {packed(t, "lz4", long), string(long)},
		"a.log.bz2":      {unhex(t, bzip2Hello), "hello\n"},
		"a.log.xz":       {unhex(t, xzHello), "hello\n"},
		"without-suffix": {packed(t, "gzip", []byte("hello")), "hello"},
		"twice.gz.zst":   {packed(t, "zstd", packed(t, "gzip", []byte("hello"))), "hello"},
		"padded.gz":      {append(packed(t, "gzip", []byte("one")), make([]byte, 600)...), "one"},
		"members.gz":     {append(packed(t, "gzip", []byte("one ")), packed(t, "gzip", []byte("two"))...), "one two"},
		"BZhere.txt":     {[]byte("BZhere is a text"), "BZhere is a text"},
		"false.gz":       {[]byte("only the name says gzip"), "only the name says gzip"},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := read(t, inputs.Options{}, name, c.data)
			if err != nil {
				t.Fatal(err)
			}
			if got := contentOf(t, in.Text); got != c.want {
				t.Errorf("%d bytes, want %d", len(got), len(c.want))
			}
			if isPacked := !bytes.Equal(c.data, []byte(c.want)); isPacked != (len(in.Notes) > 0) {
				t.Errorf("notes %q", in.Notes)
			}
		})
	}
}

func TestHostileCompressedFilesEndInErrors(t *testing.T) {
	skip.UnderRace(t)
	zeros := packed(t, "gzip", make([]byte, 300<<20))
	long := packed(t, "gzip", bytes.Repeat([]byte("0123456789abcdef"), 1<<16))
	damaged := slices.Clone(long)
	damaged[len(damaged)/2] ^= 0xff

	for name, c := range map[string]struct {
		o    inputs.Options
		data []byte
		want string
	}{
		"ratio":     {inputs.Options{}, zeros, "raise --max-ratio"},
		"bytes":     {inputs.Options{MaxUnpacked: 1000}, long, "raise --max-unpacked"},
		"cut":       {inputs.Options{}, long[:len(long)-9], "it is cut short"},
		"damaged":   {inputs.Options{}, damaged, "cannot unpack"},
		"no stream": {inputs.Options{}, []byte("\x1f\x8b\x08"), "cannot unpack"},
		// This frame requests a window of 2 GiB.
		"window":  {inputs.Options{}, []byte("\x28\xb5\x2f\xfd\x00\xa8\x01\x00\x00"), "more than 128 MiB of memory"},
		"nothing": {inputs.Options{}, packed(t, "gzip", nil), "contains no data"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := read(t, c.o, "x", c.data); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if _, err := read(t, inputs.Options{MaxRatio: 2000}, "x", zeros); err != nil {
		t.Errorf("with a higher ratio: %v", err)
	}
}

func TestUnpackingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	data := packed(t, "gzip", bytes.Repeat([]byte("text "), 1<<20))

	_, err := inputs.Read(ctx, inputs.Options{}, "x", bytes.NewReader(data), 1<<30)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// zipped returns an archive. The function change may modify the header of a member.
func zipped(t *testing.T, names []string, change func(*zip.FileHeader)) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, name := range names {
		header := &zip.FileHeader{Name: name, Method: zip.Deflate}
		if change != nil {
			change(header)
		}
		f, err := w.CreateHeader(header)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(name, "/") {
			_, err = io.WriteString(f, "text of "+name)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestZipArchivesAreFolders(t *testing.T) {
	in, err := read(t, inputs.Options{Exclude: []string{"*.bin", "skip"}}, "x.zip", zipped(t, []string{
		"a.txt", "d/", "d/b.txt", `win\c.txt`, "../up.txt", "/abs.txt", "d/../../up.txt", "C:/x", "x.bin",
		"skip/deep/y",
	}, nil))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"a.txt": "text of a.txt", "d/b.txt": "text of d/b.txt", "win/c.txt": `text of win\c.txt`,
	}
	if got := filesOf(t, in); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%q", got)
	}
	notes := strings.Join(in.Notes, "\n")
	for _, part := range []string{"4 members with an unsafe name", "2 files and folders by --exclude"} {
		if !strings.Contains(notes, part) {
			t.Errorf("no %q in %q", part, notes)
		}
	}
}

func TestZipMembersThatCannotBeReadAreCounted(t *testing.T) {
	for want, change := range map[string]func(*zip.FileHeader){
		"1 encrypted member":               func(h *zip.FileHeader) { h.Flags |= 1 },
		"1 link or special file":           func(h *zip.FileHeader) { h.SetMode(os.ModeSymlink | 0o777) },
		"1 member that a later one of the": nil,
	} {
		t.Run(want, func(t *testing.T) {
			data := zipped(t, []string{"good.txt", "x.txt"}, func(h *zip.FileHeader) {
				if change != nil && h.Name == "x.txt" {
					change(h)
				}
			})
			if change == nil {
				data = zipped(t, []string{"x.txt", "x.txt"}, nil)
			}
			in, err := read(t, inputs.Options{}, "x.zip", data)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(in.Notes, "\n"); !strings.Contains(got, want) || len(filesOf(t, in)) != 1 {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

func TestHostileZipArchivesEndInErrors(t *testing.T) {
	skip.UnderRace(t)
	var bomb bytes.Buffer
	w := zip.NewWriter(&bomb)
	zeros := make([]byte, 1<<20)
	for i := range 400 {
		f, err := w.Create(fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	whole := zipped(t, []string{"a.txt", "b.txt"}, nil)
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"ratio":   {bomb.Bytes(), "raise --max-ratio"},
		"cut":     {whole[:len(whole)-30], "cannot read the archive"},
		"nothing": {zipped(t, []string{"d/"}, nil), "no files"},
		"unsafe":  {zipped(t, []string{"../x"}, nil), "1 member with an unsafe name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read(t, inputs.Options{}, "x.zip", c.data)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		})
	}

	lying := slices.Clone(whole)
	at := bytes.Index(lying, []byte("PK\x01\x02")) // the table of contents: a smaller size
	lying[at+24]--
	in, err := read(t, inputs.Options{}, "x.zip", lying)
	if err != nil {
		t.Fatal(err)
	}

	_, err = in.Dir.(*bigtext.Dir).Text(t.Context(), "a.txt")
	if err == nil || !strings.Contains(err.Error(), `cannot unpack "a.txt"`) {
		t.Errorf("a member of another size: %v", err)
	}
}

func TestDamagedOfficeDocumentsAreBytes(t *testing.T) {
	in, err := read(t, inputs.Options{}, "x", zipped(t, []string{"[Content_Types].xml", "word/document.xml"}, nil))
	if err != nil {
		t.Fatal(err)
	}
	text, ok := in.Text.(*bigtext.Text)
	if !ok || !text.IsBinary() || text.Kind() != "docx" {
		t.Errorf("%+v", in)
	}
}

func TestTarArchivesAreFolders(t *testing.T) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, h := range []*tar.Header{
		{Name: "./a.txt", Typeflag: tar.TypeReg},
		{Name: "d", Typeflag: tar.TypeDir},
		{Name: "d/b.txt", Typeflag: tar.TypeReg},
		{Name: "../up", Typeflag: tar.TypeReg},
		{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"},
	} {
		h.Mode = 0o644
		if h.Typeflag == tar.TypeReg {
			h.Size = 5
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := io.WriteString(w, "12345"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	for name, data := range map[string][]byte{"x.tar": out.Bytes(), "x.tgz": packed(t, "gzip", out.Bytes())} {
		t.Run(name, func(t *testing.T) {
			in, err := read(t, inputs.Options{}, name, data)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := filesOf(t, in), "map[a.txt:12345 d/b.txt:12345]"; fmt.Sprint(got) != want {
				t.Errorf("%s: %v", name, got)
			}
			if notes := strings.Join(in.Notes, "\n"); !strings.Contains(notes,
				"1 link or special file, 1 member with an unsafe name") {
				t.Errorf("%s: %q", name, notes)
			}
		})
	}
	if _, err := read(t, inputs.Options{}, "x.tar", out.Bytes()[:514]); err == nil {
		t.Error("a cut archive is no error")
	}
}

func TestFoldersHaveDecodedFiles(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string][]byte{
		"plain.txt": []byte("plain"), "empty": nil, "log.gz": packed(t, "gzip", []byte("unpacked")),
		"latin.txt": []byte("caf\xe9 cr\xe8me"), "pic.png": []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"),
		"in.zip": zipped(t, []string{"a"}, nil),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	in, err := inputs.Open(t.Context(), inputs.Options{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()

	files := filesOf(t, in)
	if files["log.gz"] != "unpacked" || files["latin.txt"] != "café crème" || files["plain.txt"] != "plain" {
		t.Errorf("%q", files)
	}
	text, err := in.Dir.(*bigtext.Dir).Text(t.Context(), "pic.png")
	if err != nil || !text.IsBinary() || text.Kind() != "png" {
		t.Errorf("%v %v", text, err)
	}
	notes := strings.Join(in.Notes, "\n")
	for _, want := range []string{
		"unpacked from gzip when opened: log.gz", "decoded from windows-1252: latin.txt",
		"not text but png, in .bytes: pic.png", "pass each as a separate context: in.zip",
	} {
		if !strings.Contains(notes, want) {
			t.Errorf("no %q in %q", want, notes)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"text", "caf\xe9", "\xff\xfea\x00", "PK\x03\x04", "\x28\xb5\x2f\xfd\x00\x00\x01\x00\x00", "%PDF-1",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		const most = 1 << 20
		in, err := read(t, inputs.Options{MaxUnpacked: most}, "x", data)
		if err != nil {
			return
		}
		if in.Text != nil {
			if in.Text.Size() > 3*most+int64(len(data)) { // one byte takes up to three in UTF-8
				t.Errorf("%d bytes of %d", in.Text.Size(), len(data))
			}
			return
		}
		dir := in.Dir.(*bigtext.Dir)
		for _, name := range dir.Names() {
			if !filepath.IsLocal(name) {
				t.Errorf("the name %q leads elsewhere", name)
			}
			_, _ = dir.Text(t.Context(), name) // damaged members are errors
		}
	})
}

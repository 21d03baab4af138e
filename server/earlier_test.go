package server

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// TestTheFolderOfAnEarlierServerOpens opens a data folder that a server with tables of version 4
// filled (scripts/serve/earlier-data.sh), and finds everything in it.
func TestTheFolderOfAnEarlierServerOpens(t *testing.T) {
	dir := unpackEarlier(t)
	var made struct{ Key, File, Run, Response, Session, Snapshot string }
	data, err := os.ReadFile(filepath.Join(dir, "made.json"))
	if err == nil {
		err = json.Unmarshal(data, &made)
	}
	if err != nil {
		t.Fatal(err)
	}

	s := start(t, dir, counting(t), func(o *Options) { o.Open = false })
	s.want(s.do("GET", "/v1/runs", "", nil), 401, "")

	s.want(s.do("GET", "/v1/files/"+made.File+"/content", made.Key, nil), 200, "a needle in hay, another needle")
	run := s.do("GET", "/v1/runs/"+made.Run, made.Key, nil)
	s.want(run, 200, `"question":"How many needles?"`)
	s.want(run, 200, `"answer":"2"`)
	s.want(s.do("GET", "/v1/runs/"+made.Run+"/events", made.Key, nil), 200, "FINAL(str(context.count('needle')))")
	s.want(s.do("GET", "/v1/responses/"+made.Response, made.Key, nil), 200, "Hello.")
	s.want(s.do("GET", "/v1/usage", made.Key, nil), 200,
		`"calls":3,"input_tokens":1075,"output_tokens":17,"usd":"1.092"`)

	session := "/v1/sessions/" + made.Session
	s.want(s.do("GET", "/v1/sessions?name=kept", made.Key, nil), 200, made.Session)
	got := s.exec(session, made.Key, "n, more(), words[1], hay[:8]", "(42, 43, 'needle', 'a needle')")
	if s.field(got, "lost") != nil {
		t.Errorf("something is lost: %s", got.body)
	}
	s.want(s.do("POST", session+"/snapshots/"+made.Snapshot+"/restore", made.Key, nil), 200, "")
	s.exec(session, made.Key, "n", "41")
}

// unpackEarlier unpacks testdata/earlier.tar.zst into a new folder.
func unpackEarlier(t *testing.T) string {
	t.Helper()
	packed, err := os.Open("testdata/earlier.tar.zst")
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	unpacked, err := zstd.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	defer unpacked.Close()

	dir := t.TempDir()
	for files := tar.NewReader(unpacked); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(header.Name, "data")))
		if header.FileInfo().IsDir() {
			if err := os.MkdirAll(path, 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}

		content, err := io.ReadAll(files)
		if err == nil {
			err = os.WriteFile(path, content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

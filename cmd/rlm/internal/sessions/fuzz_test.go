package sessions_test

import (
	"crypto/sha256"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/rlmhq/rlm/cmd/rlm/internal/sessions"
)

// encode returns a file with a header and no snapshot.
func encode(tb testing.TB, header string) []byte {
	tb.Helper()
	sum := sha256.Sum256([]byte(header))
	out := binary.BigEndian.AppendUint32([]byte("rlm-session\n"), uint32(len(header)))
	return append(append(out, header...), sum[:]...)
}

// FuzzOpen opens files with any header. What opens can be saved, and opens again.
func FuzzOpen(f *testing.F) {
	for _, header := range []string{
		`{"version":1,"contexts":[{"path":"/a"},{"name":"n","text":"aGk="},{"json":[1]}],` +
			`"histories":[[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]]}`,
		`{"version":1,"contexts":[{"text":""}]}`, `{"version":1}`, `{"version":1,"contexts":null}{}`, `null`, `[]`, ``,
	} {
		f.Add(header)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, header string) {
		t.Setenv("XDG_STATE_HOME", dir)
		path, err := sessions.Path("x")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, encode(t, header), 0o600); err != nil {
			t.Fatal(err)
		}
		file, err := sessions.Open("x")
		if err != nil {
			return
		}
		defer file.Close()

		if err := file.Save(file.Conversation, write("")); err != nil {
			t.Fatalf("%q opens, and cannot be saved: %v", header, err)
		}
		again, err := sessions.Open("x")
		if err != nil {
			t.Fatalf("%q was saved, and does not open: %v", header, err)
		}
		defer again.Close()
		if len(again.Contexts) != len(file.Contexts) || len(again.Histories) != len(file.Histories) {
			t.Errorf("%q became %+v", header, again.Conversation)
		}
	})
}

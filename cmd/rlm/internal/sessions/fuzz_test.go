package sessions

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// encodeFile returns a file of the old version, with a header and no snapshot.
func encodeFile(tb testing.TB, header string) []byte {
	tb.Helper()
	sum := sha256.Sum256([]byte(header))
	out := binary.BigEndian.AppendUint32([]byte(magic), uint32(len(header)))
	return append(append(out, header...), sum[:]...)
}

// keepBlobs returns a function that returns the contents of entries.
func keepBlobs(entries []store.Entry) func(string) ([]byte, error) {
	return func(digest string) ([]byte, error) {
		for _, e := range entries {
			if e.Digest == digest {
				return bytes.Clone(e.Blob), nil
			}
		}
		return nil, errors.New("there is no such content")
	}
}

// FuzzHeader reads any header, from a file and from a store. If it can be read, it can be stored
// and read again.
func FuzzHeader(f *testing.F) {
	for _, header := range []string{
		`{"version":1,"contexts":[{"path":"/a"},{"name":"n","text":"aGk="},{"json":[1]}],` +
			`"histories":[[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]]}`,
		`{"version":1,"contexts":[{"text":""}]}`, `{"version":1}`, `{"version":1,"contexts":null}{}`, `null`, `[]`, ``,
		`{"version":3,"contexts":[{"name":"n","apart":"text"},{"paths":["/a","https://h/b"]}],` +
			`"histories":[],"bytes":-1}`,
	} {
		f.Add(header, "0", []byte("content"))
	}
	f.Fuzz(func(t *testing.T, header, key string, content []byte) {
		c, state, err := readFile(bytes.NewReader(encodeFile(t, header)))
		if err != nil {
			entries := []store.Entry{
				{Kind: kindConversation, Data: []byte(header)}, newContent(kindContext, key, content),
			}
			c, state, err = decode(entries, keepBlobs(entries))
		}
		if err != nil {
			return
		}

		entries, err := encode(c, state)
		if err != nil {
			t.Fatalf("%q can be read, and cannot be kept: %v", header, err)
		}
		again, _, err := decode(entries, keepBlobs(entries))
		if err != nil {
			t.Fatalf("%q was kept, and cannot be read: %v", header, err)
		}
		if len(again.Contexts) != len(c.Contexts) || len(again.Histories) != len(c.Histories) {
			t.Errorf("%q became %+v", header, again)
		}
	})
}

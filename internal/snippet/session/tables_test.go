package session

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/tiers"
)

// withTables returns accounts over a text that contains a table, and a folder of one file.
func withTables(t *testing.T) *Accounts {
	t.Helper()
	text := bigtext.FromBytes("shop.db", []byte("bytes"))
	text.MarkTables([]bigtext.Table{{
		Name: "orders", Columns: []bigtext.Column{{Name: "id"}},
		Read: func(context.Context) (*bigtext.Text, error) {
			return bigtext.FromBytes("rows", []byte("{\"id\":1}\n")), nil
		},
	}})
	t.Cleanup(func() { _ = text.Close() }) // the test is over

	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "a.txt"), []byte("a"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir, err := bigtext.OpenDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() }) // the test is over

	cfg := testConfig(t)
	cfg.Inputs = []tiers.Input{{Name: "shop.db", Text: text}, {Name: "folder", Dir: dir}}
	a, err := NewAccounts(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Begin(t.Context(), tiers.Job{}); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestRowsOfATableAreAText(t *testing.T) {
	a := withTables(t)
	reply := a.Handle([]byte("to0,0"))
	var got []json.RawMessage
	if err := json.Unmarshal(reply.Data, &got); err != nil || len(got) != 2 || string(got[1]) != `["id"]` {
		t.Fatalf("%s, %v", reply.Data, err)
	}
	var info textInfo
	if err := json.Unmarshal(got[0], &info); err != nil || info.ID != firstFile || info.Type != bigtext.KindJSONL {
		t.Errorf("%+v, %v", info, err)
	}

	for _, request := range []string{
		"to", "to0", "to0,1", "to0,-1", "to1,0", "to7,0", "to1048576,0", "to99999999999,0",
	} {
		t.Run(request, func(t *testing.T) {
			if reply := a.Handle([]byte(request)); !reply.Failed {
				t.Errorf("%s: %s", request, reply.Data)
			}
		})
	}
}

// TestTextsKeepTheirNumbersInAMove checks a session that opens a table before a file.
func TestTextsKeepTheirNumbersInAMove(t *testing.T) {
	a := withTables(t)
	for _, request := range []string{"to0,0", "do1,a.txt"} {
		if reply := a.Handle([]byte(request)); reply.Failed {
			t.Fatalf("%s: %s", request, reply.Data)
		}
	}
	head, err := json.Marshal(knownTexts{a.fileList()})
	if err != nil {
		t.Fatal(err)
	}

	b := withTables(t)
	if _, err := b.adopt(stateOf(head)); err != nil {
		t.Fatal(err)
	}
	for number, name := range map[int]string{firstFile: "shop.db", firstFile + 1: "a.txt"} {
		if _, got, err := b.openText(number); err != nil || got != name {
			t.Errorf("text %d is %q (%v), want %q", number, got, err, name)
		}
	}

	const chain = `{"files":[{"input":0,"table":1},{"input":1048576,"table":1}]}`
	if _, err := withTables(t).adopt(stateOf([]byte(chain))); err == nil {
		t.Error("a table of the rows of a table is adopted")
	}
}

// stateOf returns a state that consists only of a head.
func stateOf(head []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(head))), head...)
}

package tablefiles

import (
	"errors"
	"testing"

	"github.com/rlmhq/rlm/internal/machine/rustmodule"
)

// TestEngineIsWhatTheManifestSays compares the committed files with their hashes.
func TestEngineIsWhatTheManifestSays(t *testing.T) {
	if err := files.Check(); err != nil {
		t.Error(err)
	}
}

func TestMalformedAnswersAreErrors(t *testing.T) {
	for name, answer := range map[string]string{
		"empty":                     "",
		"an unknown kind":           "\x02",
		"a problem without its end": "\x01\x05abc",
		"more tables than bytes":    "\x00\xff\xff\x03",
		"more columns than bytes":   "\x00\x01\x00\x00\x05\x01a",
		"a name that is not UTF-8":  "\x00\x01\x01\xff\x00\x00",
		"bytes behind the end":      "\x00\x00x",
	} {
		if got, err := decode([]byte(answer)); !errors.Is(err, rustmodule.ErrMalformed) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := decode([]byte("\x01\x02no")); !errors.Is(err, ErrUnreadable) {
		t.Errorf("a problem: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("\x00\x01\x01t\x05\x01\x01c\x01k"))
	f.Add([]byte("\x01\x02no"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		tables, err := decode(answer)
		columns := 0
		for _, table := range tables {
			columns += len(table.Columns)
		}
		if err == nil && len(tables)+columns > len(answer) {
			t.Fatalf("%d bytes became %d tables of %d columns", len(answer), len(tables), columns)
		}
	})
}

package documents

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
		"empty":                        "",
		"an unknown problem":           "\x09\x00",
		"a problem without its end":    "\x01\x05abc",
		"a problem and more":           "\x01\x00\x00x",
		"a problem without its pages":  "\x03\x00",
		"pages of a damaged document":  "\x01\x00\x02",
		"too many pages":               "\x03\x00\xff\xff\xff\x01",
		"more parts than bytes":        "\x00\x04page\xff\xff\x03",
		"a part behind the text":       "\x00\x04page\x01\x00\x65\x00\x00",
		"parts out of order":           "\x00\x04page\x02\x00\x05\x00\x04\x00\x00",
		"a title that is not UTF-8":    "\x00\x04page\x01\x01\xff\x00\x00\x00",
		"a number without its end":     "\x00\x04page\x80",
		"a number of too many bits":    "\x00\x04page\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		"bytes behind the end":         "\x00\x00\x00\x00\x00x",
		"a warning without its length": "\x00\x00\x00\x01",
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := decode([]byte(answer), 100); !errors.Is(err, rustmodule.ErrMalformed) {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("\x00\x04page\x01\x01a\x05\x01\x01w\x02"), int64(100))
	f.Add([]byte("\x03\x02no\x07"), int64(0))
	f.Fuzz(func(t *testing.T, answer []byte, size int64) {
		about, err := decode(answer, size)
		if err != nil {
			return
		}
		last := int64(0)
		for _, part := range about.Parts {
			if part.Start < last || part.Start > size {
				t.Fatalf("%+v in a text of %d bytes", about.Parts, size)
			}
			last = part.Start
		}
	})
}

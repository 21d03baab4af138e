package corpus

import (
	"fmt"
	"strings"
	"testing"
)

func TestEveryLanguageHasTwelveSentences(t *testing.T) {
	a, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]bool{}
	for i := range a.languages {
		l := &a.languages[i]
		if len(l.sentences) < 12 {
			t.Errorf("language %s has %d sentences, want 12 or more", l.code, len(l.sentences))
		}
		if codes[l.code] {
			t.Errorf("language %s is there twice", l.code)
		}
		codes[l.code] = true
	}
}

// TestNoRecordOutgrowsABlock checks that no record exceeds maxRecord.
func TestNoRecordOutgrowsABlock(t *testing.T) {
	a, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	s := &scribe{archive: a, dice: newDice(1)}
	for range 20_000 {
		s.buf = s.buf[:0]
		s.record()
		if len(s.buf) > maxRecord/2 {
			t.Fatalf("a record takes %d bytes", len(s.buf))
		}
	}
}

func TestParseSaysWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"given: Ada":            "no language has begun",
		"- Hello.":              "no language has begun",
		"= en English\nhello":   "neither a language nor a list",
		"= en English\nhue: a":  `no list "hue"`,
		"= en English\n- {hue}": "no slot {hue}",
		"= en English\n- {name": "no slot {name}",
		"= en English":          "every language shares",
		"branches: a\nusers: b\ndomains: c\ncurrencies: d\n= en English": `"en" lacks`,
	} {
		t.Run(fmt.Sprintf("%.60s", text), func(t *testing.T) {
			_, err := parse(text)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("parse(%q) = %v, want %q in it", text, err, want)
			}
		})
	}
}

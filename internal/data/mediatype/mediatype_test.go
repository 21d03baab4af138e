package mediatype

import (
	"net/http"
	"strings"
	"testing"
)

// TestTypesAreThoseOfTheLibrary compares the detected types with those of net/http.
func TestTypesAreThoseOfTheLibrary(t *testing.T) {
	texts := []string{
		"RIFF\x00\x00\x00\x00WEBPVP8 ", "RIFF\x00\x00\x00\x00WEBPVP8X", "RIFF\x00\x00\x00\x00WEBP", "RIFF",
		"RIFF\x00\x00\x00\x00WAVE", "GIF88a", "\x89PNG", "", "\x00\x01\x02", "a text\n", "ünï\t\x1b[31m", "a\x00b",
		strings.Repeat("x", 512) + "\x00",
	}
	for _, s := range signatures {
		texts = append(texts, s.start, s.start+"and more", s.start[1:], s.start[:len(s.start)-1])
	}
	for _, text := range texts {
		want := strings.Replace(http.DetectContentType([]byte(text)), "x-gzip", "gzip", 1)
		if strings.HasPrefix(want, "audio/") {
			want = Unknown
		}
		if got := Detect([]byte(text)); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}

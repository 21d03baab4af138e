package pageimages

import (
	"errors"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/machine/rustmodule"
)

func TestEngineIsWhatTheManifestSays(t *testing.T) {
	if err := files.Check(); err != nil {
		t.Error(err)
	}
}

func TestMalformedAnswersAreErrors(t *testing.T) {
	for name, answer := range map[string]string{
		"empty":                    "",
		"an unknown kind":          "\x02\x00" + string(pngMark),
		"a reason without its end": "\x01\x05abc",
		"a reason and more":        "\x01\x00x",
		"no picture":               "\x00\x00",
		"another picture":          "\x00\x00GIF89a",
		"a picture beyond bounds":  "\x00\x00" + string(pngMark) + strings.Repeat("x", MaxPNG),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := decode([]byte(answer)); !errors.Is(err, rustmodule.ErrMalformed) {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

func TestAPictureNamesWhatItLacks(t *testing.T) {
	got, err := decode([]byte("\x00\x03" + string(pngMark)))
	want := "text whose font is missing, a picture that cannot be decoded"
	if err != nil || got.Lacks != want {
		t.Errorf("%+v, %v", got, err)
	}
}

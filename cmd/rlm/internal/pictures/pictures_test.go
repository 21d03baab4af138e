package pictures

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/mattn/go-sixel"
)

// noise returns a picture that does not compress, as PNG.
func noise(tb testing.TB, width, height int) []byte {
	tb.Helper()
	picture := image.NewNRGBA(image.Rect(0, 0, width, height))
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a picture
	for i := range picture.Pix {
		picture.Pix[i] = byte(random.Uint32())
	}
	picture.Set(0, 0, color.NRGBA{255, 0, 0, 255})
	var out bytes.Buffer
	if err := png.Encode(&out, picture); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

func TestTheEnvironmentTellsTheProtocol(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env, answer string
		want        Protocol
	}{
		{"TERM=xterm-kitty", "", Kitty},
		{"TERM=xterm-256color KITTY_WINDOW_ID=3", "", Kitty},
		{"TERM=xterm-256color TERM_PROGRAM=ghostty", "", Kitty},
		{"TERM=xterm-256color TERM_PROGRAM=iTerm.app", "", ITerm},
		{"TERM=xterm-256color LC_TERMINAL=iTerm2", "", ITerm},
		{"TERM=xterm-256color", "\x1b[?62;4;6c", Sixel},
		{"TERM=xterm-256color", "\x1b[?62;14;46c", None},
		{"TERM=xterm-256color", "\x1b[?4", None},
		{"TERM=xterm-256color", "", None},
		{"TERM=xterm-kitty TMUX=/tmp/x", "", None},
		{"TERM=tmux-256color TMUX=/tmp/x", "\x1b[?1;2;4c", Sixel},
		{"TERM=dumb", "\x1b[?4c", None},
		{"", "\x1b[?4c", None},
	} {
		variables := map[string]string{}
		for word := range strings.FieldsSeq(c.env) {
			name, value, _ := strings.Cut(word, "=")
			variables[name] = value
		}
		got := Detect(func(name string) string { return variables[name] },
			func() string { return c.answer })
		if got != c.want {
			t.Errorf("%s, %q: %s", c.env, c.answer, got)
		}
	}
}

func TestATerminalGetsThePixels(t *testing.T) {
	t.Parallel()
	data := noise(t, 60, 40)
	want, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}

	for protocol, pattern := range map[Protocol]string{
		Kitty: `\x1b_G(?:f=100,a=T,)?m=[01];([^\x1b]*)\x1b\\`, ITerm: `\x1b]1337;File=inline=1;size=\d+:([^\a]*)\a`,
	} {
		var out bytes.Buffer
		if err := Draw(&out, protocol, data); err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, part := range regexp.MustCompile(pattern).FindAllStringSubmatch(out.String(), -1) {
			if len(part[1]) > chunk && protocol == Kitty {
				t.Errorf("a sequence has %d bytes", len(part[1]))
			}
			text += part[1]
		}
		drawn, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		got, err := png.Decode(bytes.NewReader(drawn))
		if err != nil || got.Bounds() != want.Bounds() || got.At(7, 9) != want.At(7, 9) {
			t.Errorf("%s: %v", protocol, err)
		}
	}
}

func TestSixelsShowThePicture(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := Draw(&out, Sixel, noise(t, 12, 12)); err != nil {
		t.Fatal(err)
	}
	var got image.Image
	if err := sixel.NewDecoder(&out).Decode(&got); err != nil || got.Bounds().Dx() != 12 {
		t.Errorf("%v", err)
	}
}

// huge returns a PNG whose header promises a picture of that size, and that has nothing more.
func huge(width, height uint32) []byte {
	head := []byte("IHDR")
	head = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(head, width), height)
	head = append(head, 8, 6, 0, 0, 0)
	out := binary.BigEndian.AppendUint32([]byte("\x89PNG\r\n\x1a\n"), 13)
	out = append(out, head...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(head))
}

func TestHostilePicturesAreRefused(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := Draw(&out, Kitty, huge(1<<30, 1<<20)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a bomb: %v", err)
	}
	for _, data := range []string{"", "\x1b]0;title\a", "\x89PNG\r\n\x1a\n\x1b[2J"} {
		if err := Draw(&out, ITerm, []byte(data)); err == nil {
			t.Errorf("%q was drawn", data)
		}
	}
	if out.Len() > 0 {
		t.Errorf("the terminal got %q", out.String())
	}
}

func FuzzDraw(f *testing.F) {
	f.Add(noise(f, 5, 5))
	f.Add(huge(5, 5))
	f.Fuzz(func(t *testing.T, data []byte) {
		var out bytes.Buffer
		if err := Draw(&out, Kitty, data); err != nil && out.Len() > 0 {
			t.Errorf("an error after output: %v", err)
		}
	})
}

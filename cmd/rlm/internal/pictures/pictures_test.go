package pictures

import (
	"bytes"
	"compress/zlib"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-sixel"

	"github.com/rlmhq/rlm/internal/testing/skip"
)

// noise returns an incompressible picture as PNG.
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
		t.Run(c.env, func(t *testing.T) {
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
		})
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

// huge returns a PNG with a header that declares a picture of that size, but without pixels.
func huge(width, height uint32) []byte {
	head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
	return append([]byte("\x89PNG\r\n\x1a\n"), block("IHDR", append(head, 8, 6, 0, 0, 0))...)
}

// block returns a chunk of a PNG.
func block(kind string, data []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	out = append(append(out, kind...), data...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:]))
}

// inflating returns a PNG of few pixels with 64 MiB of compressed zeros.
func inflating(t *testing.T) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	if _, err := io.CopyN(w, zeros{}, 64<<20); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return append(append(huge(5, 5), block("IDAT", packed.Bytes())...), block("IEND", nil)...)
}

// zeros is an endless stream of zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// refining returns a progressive JPEG of 16 million pixels with many scans of 25 bytes that do not
// refine any block.
func refining(scans int) []byte {
	out := []byte("\xff\xd8\xff\xc2\x00\x0b\x08\x10\x00\x10\x00\x01\x01\x11\x00")
	out = append(out, "\xff\xc4\x00\x14\x10\x01"...) // the code 0 ends 16,384 or more blocks
	out = append(append(out, make([]byte, 15)...), 0xe0)
	for range scans {
		out = append(out, "\xff\xda\x00\x08\x01\x01\x00\x01\x3f\x00"...)
		out = append(out, make([]byte, 32)...)
	}
	return append(out, "\xff\xd9"...)
}

func TestHostilePicturesAreRefused(t *testing.T) {
	skip.UnderRace(t)
	t.Parallel()
	var out bytes.Buffer
	if err := Draw(&out, Kitty, huge(1<<30, 1<<20)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a bomb: %v", err)
	}
	if err := Draw(&out, Kitty, inflating(t)); err == nil {
		t.Error("64 MiB for 25 pixels was drawn")
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

// TestASlowPictureIsGivenUp decodes a picture of one megabyte that would take half an hour.
//
//nolint:paralleltest // it changes a bound
func TestASlowPictureIsGivenUp(t *testing.T) {
	skip.Short(t, "a decoder works for seconds")
	before := maxTime
	maxTime = 100 * time.Millisecond
	defer func() { maxTime = before }()
	if err := Draw(io.Discard, Sixel, refining(25_000)); !errors.Is(err, ErrTooSlow) {
		t.Error(err)
	}
}

// TestAnyShapeIsDrawn draws pictures with many pixels, or many in one direction.
func TestAnyShapeIsDrawn(t *testing.T) {
	t.Parallel()
	for _, size := range []image.Point{{1 << 19, 1}, {1, 1 << 19}, {2100, 700}} {
		var data bytes.Buffer
		if err := png.Encode(&data, image.NewGray(image.Rectangle{Max: size})); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := Draw(&out, Sixel, data.Bytes()); err != nil {
			t.Errorf("%v: %v", size, err)
		}

		var got image.Image
		if err := sixel.NewDecoder(&out).Decode(&got); err != nil {
			t.Errorf("%v: %v", size, err)
			continue
		}
		if side := max(got.Bounds().Dx(), got.Bounds().Dy()); side > maxSide+6 { // a sixel is six pixels high
			t.Errorf("%v: %d pixels are drawn", size, side)
		}
	}
}

// TestALargePictureKeepsItsColours checks that each pixel of the smaller picture is the mean of an
// area.
func TestALargePictureKeepsItsColours(t *testing.T) {
	t.Parallel()
	large := image.NewNRGBA(image.Rect(5, 5, 5+2*maxSide, 5+100))
	for y := range 100 {
		for x := range 2 * maxSide {
			shade := uint8(100 + 100*(x%2))
			alpha := uint8(255)
			if x >= maxSide {
				alpha = 0
			}
			large.SetNRGBA(5+x, 5+y, color.NRGBA{shade, 0, 255, alpha})
		}
	}
	small := shrink(large)
	if small.Bounds() != image.Rect(0, 0, maxSide, 50) {
		t.Fatalf("its bounds are %v", small.Bounds())
	}
	for x, want := range map[int]color.RGBA{
		0: {150, 0, 255, 255}, maxSide/2 - 1: {150, 0, 255, 255}, maxSide / 2: {}, maxSide - 1: {},
	} {
		if got := small.At(x, 49); got != want {
			t.Errorf("the pixel %d is %v, want %v", x, got, want)
		}
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

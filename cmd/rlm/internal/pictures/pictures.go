// Package pictures draws pictures on terminals that can show them, with the protocols of kitty and
// iTerm, or as sixels.
//
// The bytes of a picture are not trusted. The package decodes them within limits, and draws the
// pixels, so a terminal never receives bytes that a sandbox wrote.
package pictures

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	_ "image/gif"  // a format that snippets produce
	_ "image/jpeg" // a format that snippets make
	"image/png"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-sixel"
	"golang.org/x/term"
)

// Protocol is a terminal's graphics protocol.
type Protocol string

// The supported protocols. None means that there is no protocol.
const (
	Kitty Protocol = "kitty"
	ITerm Protocol = "iterm"
	Sixel Protocol = "sixel"
	None  Protocol = "none"
)

// Protocols returns the names of all protocols.
func Protocols() []string {
	return []string{string(Kitty), string(ITerm), string(Sixel), string(None)}
}

const (
	// maxPixels is the maximum number of pixels. Decoding a JPEG uses up to 16 bytes per pixel on
	// the host.
	maxPixels = 16 << 20

	// maxSide is the maximum side of a drawn picture, in pixels. Larger pictures are scaled down,
	// because no terminal shows more, and go-sixel panics when it samples a very wide but low
	// picture.
	maxSide = 2048
)

// maxTime is the maximum decoding time. Without it, a JPEG of one megabyte could take an hour.
var maxTime = 5 * time.Second

var (
	// ErrTooLarge reports a picture with too many pixels.
	ErrTooLarge = fmt.Errorf("the picture has more than %d million pixels", maxPixels>>20)

	// ErrTooSlow reports a picture that takes too long to decode.
	ErrTooSlow = errors.New("the picture takes too long to decode, which suggests a malicious file")
)

// Detect returns the protocol of a terminal, based on the variables that terminals set. ask, which
// may be nil, queries the terminal for its device attributes; it is called if the variables do not
// determine the protocol.
func Detect(getenv func(string) string, ask func() string) Protocol {
	program := getenv("TERM_PROGRAM")
	switch name := getenv("TERM"); {
	case getenv("TMUX") != "" || getenv("STY") != "":
		// A multiplexer swallows the sequences of kitty and iTerm.
	case getenv("KITTY_WINDOW_ID") != "" || slices.Contains([]string{"xterm-kitty", "xterm-ghostty"}, name),
		program == "ghostty":
		return Kitty
	case program == "iTerm.app", program == "WezTerm", getenv("LC_TERMINAL") == "iTerm2":
		return ITerm
	case name == "dumb" || name == "":
		return None
	}

	if ask != nil && hasSixels(ask()) {
		return Sixel
	}
	return None
}

// hasSixels reports whether an answer to "ESC [ c" lists attribute 4.
func hasSixels(answer string) bool {
	_, rest, found := strings.Cut(answer, "\x1b[?")
	list, _, ends := strings.Cut(rest, "c")
	return found && ends && slices.Contains(strings.Split(list, ";"), "4")
}

// Ask queries a terminal for its device attributes. It returns "" if the terminal does not answer
// within a fifth of a second.
func Ask(in, out *os.File) string {
	state, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return ""
	}
	defer func() { _ = term.Restore(int(in.Fd()), state) }()
	if _, err := out.WriteString("\x1b[c"); err != nil {
		return ""
	}

	var answer []byte
	for until := time.Now().Add(200 * time.Millisecond); time.Now().Before(until) && len(answer) < 100; {
		b, ok := readByte(in, time.Until(until))
		if !ok {
			break
		}
		if answer = append(answer, b); b == 'c' {
			break
		}
	}
	return string(answer)
}

// Draw draws a picture and ends the line. The error wraps image.ErrFormat if the bytes are not a
// picture in a known format.
func Draw(w io.Writer, p Protocol, data []byte) error {
	picture, err := decode(data)
	if err != nil {
		return err
	}
	picture = shrink(picture)

	var out bytes.Buffer
	switch p {
	case Kitty, ITerm:
		err = encode(&out, p, picture)
	case Sixel:
		err = sixel.NewEncoder(&out).Encode(picture)
	case None:
		return errors.New("the terminal cannot draw pictures")
	}
	if err != nil {
		return fmt.Errorf("cannot draw the picture: %w", err)
	}

	out.WriteByte('\n')
	_, err = out.WriteTo(w)
	return err
}

// decode decodes a picture within limits on pixels and time.
func decode(data []byte) (image.Image, error) {
	config, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("cannot read the picture: %w", err)
	}
	if config.Width <= 0 || config.Height <= 0 || config.Width > maxPixels/config.Height {
		return nil, ErrTooLarge
	}

	picture, _, err := image.Decode(&hurried{bytes.NewReader(data), time.Now().Add(maxTime)})
	if err != nil {
		return nil, fmt.Errorf("cannot read the picture: %w", err)
	}
	return picture, nil
}

// hurried is a reader that fails after a deadline. Reads are short, because a decoder can work on a
// few bytes for a long time.
type hurried struct {
	r     io.Reader
	until time.Time
}

func (h *hurried) Read(p []byte) (int, error) {
	if time.Now().After(h.until) {
		return 0, ErrTooSlow
	}
	return h.r.Read(p[:min(len(p), 512)])
}

// shrink scales a picture down to sides of at most maxSide pixels.
func shrink(picture image.Image) image.Image {
	from := picture.Bounds()
	longest := max(from.Dx(), from.Dy())
	if longest <= maxSide {
		return picture
	}

	whole := image.NewRGBA(image.Rect(0, 0, from.Dx(), from.Dy()))
	draw.Draw(whole, whole.Rect, picture, from.Min, draw.Src)
	small := image.NewRGBA(image.Rect(0, 0, max(1, from.Dx()*maxSide/longest), max(1, from.Dy()*maxSide/longest)))
	for y := range small.Rect.Dy() {
		for x := range small.Rect.Dx() {
			small.SetRGBA(x, y, average(whole, image.Rect(
				x*from.Dx()/small.Rect.Dx(), y*from.Dy()/small.Rect.Dy(),
				(x+1)*from.Dx()/small.Rect.Dx(), (y+1)*from.Dy()/small.Rect.Dy(),
			)))
		}
	}
	return small
}

// average returns the mean colour of an area, which must not be empty.
func average(picture *image.RGBA, area image.Rectangle) color.RGBA {
	var sum [4]int
	for y := area.Min.Y; y < area.Max.Y; y++ {
		row := picture.Pix[picture.PixOffset(area.Min.X, y):picture.PixOffset(area.Max.X, y)]
		for i, value := range row {
			sum[i%4] += int(value)
		}
	}
	count := area.Dx() * area.Dy()
	mean := func(i int) uint8 { return uint8((sum[i] + count/2) / count) } //nolint:gosec // as its summands
	return color.RGBA{mean(0), mean(1), mean(2), mean(3)}
}

// chunk is the maximum size of a kitty sequence's payload, in bytes of base64.
const chunk = 4096

// encode writes a picture as PNG in kitty or iTerm sequences.
func encode(out *bytes.Buffer, p Protocol, picture image.Image) error {
	var plain bytes.Buffer
	if err := png.Encode(&plain, picture); err != nil {
		return err
	}
	text := base64.StdEncoding.EncodeToString(plain.Bytes())
	if p == ITerm {
		fmt.Fprintf(out, "\x1b]1337;File=inline=1;size=%d:%s\a", plain.Len(), text)
		return nil
	}

	keys := "f=100,a=T,"
	for len(text) > 0 {
		n, more := min(chunk, len(text)), 1
		if n == len(text) {
			more = 0
		}
		fmt.Fprintf(out, "\x1b_G%sm=%d;%s\x1b\\", keys, more, text[:n])
		text, keys = text[n:], ""
	}
	return nil
}

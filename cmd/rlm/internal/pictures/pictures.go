// Package pictures draws pictures on terminals that can show them: by the protocols of kitty
// and iTerm, and by sixels.
//
// The bytes of a picture are hostile. They are decoded here, within bounds, and drawn from
// their pixels, so a terminal never gets what a sandbox wrote.
package pictures

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	_ "image/gif"  // a format that snippets make
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

// Protocol is a way to draw.
type Protocol string

// The protocols, and the absence of one.
const (
	Kitty Protocol = "kitty"
	ITerm Protocol = "iterm"
	Sixel Protocol = "sixel"
	None  Protocol = "none"
)

// Protocols are the names of all protocols.
func Protocols() []string {
	return []string{string(Kitty), string(ITerm), string(Sixel), string(None)}
}

// maxPixels bounds a picture: four bytes each on this host.
const maxPixels = 16 << 20

// ErrTooLarge reports a picture with too many pixels.
var ErrTooLarge = fmt.Errorf("the picture has more than %d million pixels", maxPixels>>20)

// Detect returns the protocol of a terminal, from the variables that terminals set. ask asks
// the terminal for its device attributes; it is called if no variable tells, and may be nil.
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

// Ask asks a terminal for its device attributes. A terminal that does not answer within the
// fifth of a second has none.
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

// Draw draws a picture, and ends the line. The error wraps image.ErrFormat for bytes that are
// no picture in a known format.
func Draw(w io.Writer, p Protocol, data []byte) error {
	config, _, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("cannot read the picture: %w", err)
	}
	if config.Width <= 0 || config.Height <= 0 || config.Width > maxPixels/config.Height {
		return ErrTooLarge
	}
	picture, _, err := image.Decode(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("cannot read the picture: %w", err)
	}

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

// chunk is how much of a picture kitty takes in one sequence, in bytes of base64.
const chunk = 4096

// encode writes a picture as PNG in the sequences of kitty or iTerm.
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

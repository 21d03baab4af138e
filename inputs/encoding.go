package inputs

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/wlynxg/chardet"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
)

// marks lists the byte order marks, longest first.
var marks = []struct {
	mark     string
	encoding encoding.Encoding
}{
	{"\xff\xfe\x00\x00", utf32LE},
	{"\x00\x00\xfe\xff", utf32BE},
	{"\xff\xfe", utf16LE},
	{"\xfe\xff", utf16BE},
}

// detectMarked returns the encoding that a byte order mark indicates, or nil without a mark.
func detectMarked(head []byte) encoding.Encoding {
	for _, m := range marks {
		if bytes.HasPrefix(head, []byte(m.mark)) {
			if text := countWide(head[len(m.mark):], m.encoding); text.bad*100 <= text.count {
				return m.encoding
			}
		}
	}
	return nil
}

// detectWide returns the encoding of a text with two bytes per character and no byte order mark, or
// nil for any other text.
func detectWide(head []byte) encoding.Encoding {
	for _, e := range []encoding.Encoding{utf16LE, utf16BE} {
		text := countWide(head, e)
		hasWords := text.ends*200 >= text.count && text.ends > 0
		isASCII := text.ascii*2 > text.count
		if text.count > 1 && text.bad*100 <= text.count && (hasWords || isASCII) && text.blocks <= 4+text.count/4 {
			return e
		}
	}
	return nil
}

// wideCount counts a text's characters in a wide encoding.
type wideCount struct {
	count, ascii int
	bad          int // characters that do not occur in texts
	ends         int // characters that end a word or a line
	blocks       int // blocks of 256 characters in which the characters occur
}

func countWide(b []byte, e encoding.Encoding) (n wideCount) {
	width := 2
	if e == utf32LE || e == utf32BE {
		width = 4
	}

	var blocks [(unicode.MaxRune + 1) >> 14]uint64
	for ; len(b) >= width; b = b[width:] {
		var c rune
		switch e {
		case utf16LE:
			c = rune(binary.LittleEndian.Uint16(b))
		case utf16BE:
			c = rune(binary.BigEndian.Uint16(b))
		case utf32LE:
			c = rune(binary.LittleEndian.Uint32(b))
		default:
			c = rune(binary.BigEndian.Uint32(b))
		}

		n.count++
		isSurrogate := width == 2 && utf16.IsSurrogate(c)
		switch {
		case c < 0, c > unicode.MaxRune, !isTextual(c) && !isSurrogate:
			n.bad++
			continue
		case c == ' ', c == '\n', c == '\u3000', c == '\u3002':
			n.ends++
		}
		if c < utf8.RuneSelf {
			n.ascii++
		}
		blocks[c>>14] |= 1 << (c >> 8 & 63)
	}

	for i := range blocks {
		n.blocks += bits.OnesCount64(blocks[i])
	}
	return n
}

// isTextual reports whether a character may occur in text.
func isTextual(c rune) bool {
	switch {
	case c == '\t', c == '\n', c == '\r', c == '\f', c == '\uFEFF':
		return true
	case c < ' ', c == utf8.RuneError:
		return false
	}
	return unicode.IsPrint(c) || unicode.IsSpace(c) || unicode.Is(unicode.Cf, c)
}

// looksBinary reports whether bytes that are not UTF-8 contain too many control characters to be
// text in any encoding of one or more bytes.
func looksBinary(b []byte) bool {
	control := 0

	for _, c := range b {
		switch {
		case c == 0:
			control += 10
		case c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f' && c != '\x1b' && c != '\b', c == 0x7f:
			control++
		}
	}
	return control*50 > len(b)
}

// detectEscaped returns the encoding of ASCII text that starts with Japanese inside escape
// sequences, or nil for any other text.
func detectEscaped(head []byte) encoding.Encoding {
	isJapanese := bytes.Contains(head, []byte("\x1b$B")) || bytes.Contains(head, []byte("\x1b$@"))
	if isJapanese && bytes.Contains(head, []byte("\x1b(")) && decodes(head, japanese.ISO2022JP) {
		return japanese.ISO2022JP
	}
	return nil
}

// isFilled reports whether most non-ASCII bytes of a sample are FF, as in damaged text. No language
// uses that character so often in any encoding.
func isFilled(sample []byte) bool {
	filled, other := 0, 0

	for _, c := range sample {
		switch {
		case c == 0xff:
			filled++
		case c >= utf8.RuneSelf:
			other++
		}
	}
	return filled > other
}

// detectNarrow returns the likeliest encoding of a sample that is not UTF-8 or wide. The result is
// windows-1252 if the sample is inconclusive, and nil if the sample is not text in any encoding.
func detectNarrow(sample []byte) encoding.Encoding {
	likely, score := guessLatin(sample)
	if !isScattered(sample) || score < surelyLatin {
		likely = cmp.Or(guessScript(sample), likely)
	}
	if likely == nil || !decodes(sample, likely) {
		likely = charmap.Windows1252
	}
	if !decodes(sample, likely) {
		return nil
	}
	return likely
}

// surelyLatin is the score, for each byte that is not ASCII, from which a text is assumed to be in
// Latin script.
const surelyLatin = 1

// guessScript returns the encoding of text in a script other than Latin, or nil if none fits.
func guessScript(sample []byte) encoding.Encoding {
	defer ignorePanic()

	for _, guess := range chardet.DetectAll(sample) {
		if guess.Confidence < 0.6 || isLatin[strings.ToLower(guess.Charset)] {
			return nil
		}
		if e, err := findEncoding(guess.Charset); err == nil && decodes(sample, e) {
			return e
		}
	}
	return nil
}

// isLatin contains the encodings that the first detector confuses.
var isLatin = map[string]bool{
	"iso-8859-1": true, "iso-8859-2": true, "iso-8859-9": true, "iso-8859-13": true, "macintosh": true,
	"windows-1250": true, "windows-1252": true, "windows-1254": true, "windows-1257": true,
}

// ignorePanic keeps a detector that panics on hostile bytes from ending this process.
func ignorePanic() { _ = recover() }

// decodes reports whether nearly all of a sample is text in an encoding. The sample may end in the
// middle of a character.
func decodes(sample []byte, e encoding.Encoding) bool {
	text, err := e.NewDecoder().Bytes(sample)
	if err != nil || len(text) == 0 {
		return false
	}
	bad, count := 0, 0

	for _, c := range string(text) {
		if c >= utf8.RuneSelf {
			count++
			if !isTextual(c) {
				bad++
			}
		}
	}
	return bad <= 1+count/50
}

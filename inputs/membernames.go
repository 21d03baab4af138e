package inputs

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"

	"github.com/rlmhq/rlm/internal/text/quantity"
)

// namePage is an encoding in which programs write names into archives without declaring it.
type namePage struct {
	encoding.Encoding
	script *unicode.RangeTable // of its letters that are not ASCII; nil for two bytes per character
	lo, hi byte                // first bytes of frequent characters, for two bytes per character
	surely float64             // the score from which it beats an earlier one that fits equally well
}

// namePages lists the encodings. An earlier one wins if two fit equally well. All bytes of frequent
// Korean characters also represent frequent Chinese ones, but few Chinese names of six characters
// are also valid Korean.
var namePages = []namePage{
	{Encoding: charmap.CodePage437, script: unicode.Latin},
	{Encoding: charmap.CodePage850, script: unicode.Latin},
	{Encoding: charmap.CodePage852, script: unicode.Latin},
	{Encoding: charmap.CodePage866, script: unicode.Cyrillic},
	{Encoding: japanese.ShiftJIS, lo: 0x88, hi: 0x97},
	{Encoding: simplifiedchinese.GBK, lo: 0xb0, hi: 0xd7},
	{Encoding: traditionalchinese.Big5, lo: 0xa4, hi: 0xc6},
	{Encoding: korean.EUCKR, lo: 0xb0, hi: 0xc8, surely: 12},
	{Encoding: charmap.Windows1252, script: unicode.Latin},
	{Encoding: charmap.Windows1251, script: unicode.Cyrillic},
	{Encoding: charmap.Windows1250, script: unicode.Latin},
}

// maxNameSample bounds the names that are examined, in bytes.
const maxNameSample = 64 << 10

// guessNames returns the likeliest encoding of names that are not UTF-8, or nil if none fits.
func guessNames(names []string) encoding.Encoding {
	var best encoding.Encoding
	most := 0.0
	for _, page := range namePages {
		score, size := 0.0, 0
		for _, name := range names {
			if size += len(name); size > maxNameSample {
				break
			}
			score += page.score(name)
		}
		if score > most || score == most && page.surely > 0 && score >= page.surely {
			best, most = page.Encoding, score
		}
	}
	return best
}

// score returns how well a name fits: about one point for each byte that is not ASCII.
func (p *namePage) score(name string) (score float64) {
	before := ' ' // the character before
	for at := 0; at < len(name); {
		c, size := p.decode(name[at:])
		after := ' '
		if at+size < len(name) {
			after, _ = p.decode(name[at+size:])
		}

		switch {
		case c == utf8.RuneError:
			return -float64(len(name))
		case c < utf8.RuneSelf:
		case p.script == nil:
			score += p.scoreWide(name[at], size, c, before, after)
		default:
			score += p.scoreLetter(c, before, after)
		}
		before, at = c, at+size
	}
	return score
}

// decode returns the first character of a name, and its size in bytes.
func (p *namePage) decode(name string) (c rune, size int) {
	size = 1
	isHalfKana := p.Encoding == japanese.ShiftJIS && name[0] >= 0xa1 && name[0] <= 0xdf
	switch {
	case name[0] < utf8.RuneSelf:
		return rune(name[0]), size
	case p.script == nil && !isHalfKana:
		size = min(2, len(name))
	}

	text, err := p.NewDecoder().String(name[:size])
	if err != nil || utf8.RuneCountInString(text) != 1 {
		return utf8.RuneError, size
	}
	c, _ = utf8.DecodeRuneInString(text)
	return c, size
}

// scoreLetter scores a character of an encoding with one byte per character: words do not mix
// scripts, and most letters of a Latin word are ASCII.
func (p *namePage) scoreLetter(c, before, after rune) float64 {
	isBesideASCII := isASCIILetter(before) || isASCIILetter(after)
	isBesideOwn := unicode.Is(p.script, before) && before >= utf8.RuneSelf ||
		unicode.Is(p.script, after) && after >= utf8.RuneSelf

	switch {
	case !unicode.Is(p.script, c), unicode.IsUpper(c) && unicode.IsLower(before):
		return -1
	case p.script == unicode.Latin && isBesideASCII, p.script == unicode.Cyrillic && isBesideOwn && !isBesideASCII:
		return 1
	case p.script == unicode.Latin && isBesideOwn, p.script == unicode.Cyrillic && isBesideASCII:
		return -0.5
	}
	return 0.25
}

// scoreWide scores a character of an encoding with two bytes per character, which rarely occurs
// inside a Latin word.
func (p *namePage) scoreWide(first byte, size int, c, before, after rune) float64 {
	score := 0.2
	switch {
	case size == 1:
		score = 0.1
	case unicode.In(c, unicode.Hiragana, unicode.Katakana), first >= p.lo && first <= p.hi:
		score = 2
	}
	for _, beside := range []rune{before, after} {
		if isASCIILetter(beside) {
			score -= 0.5
		}
	}
	return score
}

func isASCIILetter(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// decodeName decodes a name. Without an encoding, or if the name cannot be decoded, bytes that are
// not UTF-8 become %XX, so that names remain distinct.
func decodeName(name string, e encoding.Encoding) string {
	if e != nil {
		if text, err := e.NewDecoder().String(name); err == nil && !strings.ContainsRune(text, utf8.RuneError) {
			return text
		}
	}

	var out strings.Builder
	for len(name) > 0 {
		c, size := utf8.DecodeRuneInString(name)
		if c == utf8.RuneError && size == 1 {
			fmt.Fprintf(&out, "%%%02X", name[0])
		} else {
			out.WriteString(name[:size])
		}
		name = name[size:]
	}
	return out.String()
}

// addUnnamed adds the members whose names are not UTF-8, and a note about them.
func (a *archive) addUnnamed() error {
	if len(a.unnamed) == 0 {
		return nil
	}
	names := make([]string, len(a.unnamed))
	for i := range a.unnamed {
		names[i] = a.unnamed[i].name
	}

	e := guessNames(names)
	waiting := a.unnamed
	a.unnamed = nil
	for i := range waiting {
		if err := a.add(decodeName(waiting[i].name, e), waiting[i].member); err != nil {
			return err
		}
	}

	how := "their other bytes are written as %XX"
	if e != nil {
		how = "decoded from " + nameEncoding(e) + ", a guess"
	}
	a.notes = append(a.notes, quantity.Plural(len(names), "name", "")+" of members not in UTF-8: "+how)
	return nil
}

// unicodePath returns the name in a zip member's field "Info-ZIP Unicode Path" (APPNOTE.TXT,
// 4.6.9), or an empty string if there is no such field or it belongs to another name.
func unicodePath(name string, extra []byte) string {
	const field, header = 0x7075, 4
	for len(extra) >= header {
		id, size := binary.LittleEndian.Uint16(extra), int(binary.LittleEndian.Uint16(extra[2:]))
		if size > len(extra)-header {
			return ""
		}

		data := extra[header : header+size]
		if id == field && size > 5 && data[0] == 1 &&
			binary.LittleEndian.Uint32(data[1:]) == crc32.ChecksumIEEE([]byte(name)) && utf8.Valid(data[5:]) {
			return string(data[5:])
		}
		extra = extra[header+size:]
	}
	return ""
}

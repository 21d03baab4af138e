package inputs

import (
	"fmt"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

// These are Unicode encodings. An encoding with a byte order skips a mark of that order.
var (
	utf16LE = unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	utf16BE = unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	utf32LE = utf32.UTF32(utf32.LittleEndian, utf32.UseBOM)
	utf32BE = utf32.UTF32(utf32.BigEndian, utf32.UseBOM)
)

// encodings contains names that the indexes lack, or resolve differently than Python does.
var encodings = map[string]encoding.Encoding{
	"utf8": unicode.UTF8, "utf8sig": unicode.UTF8BOM, "ascii": charmap.Windows1252,
	"utf16": utf16LE, "utf16le": utf16LE, "utf16be": utf16BE,
	"utf32": utf32LE, "utf32le": utf32LE, "utf32be": utf32BE,
	"latin1": charmap.ISO8859_1, "iso88591": charmap.ISO8859_1, "l1": charmap.ISO8859_1,
	"ansi": charmap.Windows1252, "gb2312": simplifiedchinese.GB18030, "gbk": simplifiedchinese.GB18030,
	"cp936": simplifiedchinese.GB18030, "hzgb2312": simplifiedchinese.HZGB2312,
	"macroman": charmap.Macintosh,
}

// aliases contains names of encodings that have another name in the indexes.
var aliases = map[string]string{
	"sjis": "shift_jis", "shiftjis": "shift_jis", "cp932": "shift_jis", "ms932": "shift_jis",
	"eucjp": "euc-jp", "euckr": "euc-kr", "cp949": "euc-kr", "uhc": "euc-kr", "cp950": "big5",
	"tis620": "windows-874", "cp874": "windows-874", "koi8r": "koi8-r", "koi8u": "koi8-u",
	"maccyrillic": "x-mac-cyrillic", "iso2022jp": "iso-2022-jp", "hz": "hz-gb-2312",
	"big5hkscs": "big5-hkscs", "cp858": "ibm00858", "cp1140": "ibm01140",
}

// findEncoding returns an encoding by the name that IANA, Python or a browser uses.
func findEncoding(name string) (encoding.Encoding, error) {
	plain := strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(name))
	if e, ok := encodings[plain]; ok {
		return e, nil
	}
	known := name
	number, isPage := strings.CutPrefix(plain, "cp")
	part, isISO := strings.CutPrefix(plain, "iso8859")
	switch {
	case aliases[plain] != "":
		known = aliases[plain]
	case isPage && strings.HasPrefix(number, "125"):
		known = "windows-" + number
	case isPage && len(number) == 3:
		known = "ibm" + number
	case isISO && areDigits(part):
		known = "iso-8859-" + part
	case strings.HasPrefix(plain, "ibm"):
		known = plain
	}

	if e, err := ianaindex.IANA.Encoding(known); err == nil && e != nil {
		return e, nil
	}
	if e, err := htmlindex.Get(known); err == nil && e != encoding.Replacement {
		return e, nil
	}
	return nil, fmt.Errorf("unknown encoding %q: give a name such as utf-8, utf-16, windows-1252, "+
		"shift_jis, gb18030 or euc-kr", name)
}

func areDigits(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// nameEncoding returns the usual name of an encoding in lower case.
func nameEncoding(e encoding.Encoding) string {
	switch e {
	case unicode.UTF8, unicode.UTF8BOM:
		return "utf-8"
	case utf16LE:
		return "utf-16-le"
	case utf16BE:
		return "utf-16-be"
	case utf32LE:
		return "utf-32-le"
	case utf32BE:
		return "utf-32-be"
	}
	if name, err := ianaindex.MIME.Name(e); err == nil {
		return strings.ToLower(name)
	}
	if name, err := htmlindex.Name(e); err == nil {
		return name
	}
	return strings.ToLower(fmt.Sprint(e))
}

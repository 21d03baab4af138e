package inputs_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/internal/data/bigtext"
)

const (
	german   = "Die Straße führt über die Brücke, und wir müssen größere Äpfel für Öfen kaufen.\n"
	english  = "He said “hello” – it’s 5 € … fine. The rest is plain English.\n"
	polish   = "Zażółć gęślą jaźń. Dzień dobry, to jest tekst w języku polskim, który ma różne litery.\n"
	turkish  = "Günaydın, bu Türkçe bir metindir. Bugün hava çok güzel, parka gideceğiz. Işık söndü.\n"
	russian  = "Привет, это русский текст. Сегодня хорошая погода, мы пойдём гулять в парк.\n"
	greek    = "Καλημέρα κόσμε, αυτό είναι ένα ελληνικό κείμενο. Ο καιρός είναι καλός σήμερα.\n"
	hebrew   = "שלום עולם, זהו טקסט בעברית. מזג האוויר היום יפה מאוד.\n"
	arabic   = "مرحبا بالعالم، هذا نص باللغة العربية. الطقس اليوم جميل جدا.\n"
	thai     = "สวัสดีชาวโลก นี่คือข้อความภาษาไทย วันนี้อากาศดีมาก\n"
	japan    = "これは日本語のテキストです。東京都の天気は晴れです。カタカナも使います。\n"
	chinese  = "这是一个中文文本文件,北京的天气很好。我们今天去公园散步。\n"
	formosan = "這是一個繁體中文的文字檔案,台北的天氣很好。\n"
	korea    = "안녕하세요 이것은 한국어 텍스트 파일입니다. 오늘 날씨가 좋습니다.\n"
)

func TestEncodingsAreDetected(t *testing.T) {
	for _, c := range []struct {
		text string
		in   encoding.Encoding
		want string
	}{
		{german, charmap.Windows1252, "windows-1252"},
		{german, charmap.ISO8859_1, "windows-1252"},
		{english, charmap.Windows1252, "windows-1252"},
		{"one café\n", charmap.Windows1252, "windows-1252"},
		{polish, charmap.Windows1250, "windows-1250"},
		{polish, charmap.ISO8859_2, "iso-8859-2"},
		{turkish, charmap.Windows1254, "windows-1254"},
		{russian, charmap.Windows1251, "windows-1251"},
		{russian, charmap.KOI8R, "koi8-r"},
		{russian, charmap.CodePage866, "ibm866"},
		{greek, charmap.ISO8859_7, "iso-8859-7"},
		{hebrew, charmap.Windows1255, "windows-1255"},
		{arabic, charmap.Windows1256, "windows-1256"},
		{thai, charmap.Windows874, "windows-874"},
		{japan, japanese.ShiftJIS, "shift_jis"},
		{japan, japanese.EUCJP, "euc-jp"},
		{japan, japanese.ISO2022JP, "iso-2022-jp"},
		{chinese, simplifiedchinese.GB18030, "gb18030"},
		{formosan, traditionalchinese.Big5, "big5"},
		{korea, korean.EUCKR, "euc-kr"},
		{german, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), "utf-16-le"},
		{japan, unicode.UTF16(unicode.BigEndian, unicode.UseBOM), "utf-16-be"},
		{german, unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM), "utf-16-le"},
		{russian, unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM), "utf-16-be"},
		{korea, utf32.UTF32(utf32.LittleEndian, utf32.UseBOM), "utf-32-le"},
		{german, unicode.UTF8, ""},
		{"\uFEFF" + german, unicode.UTF8, ""},
	} {
		t.Run(fmt.Sprintf("%.60s", c.text), func(t *testing.T) {
			late := strings.Repeat("plain ASCII first\n", 9000) + strings.Repeat(c.text, 40)
			if c.want == "iso-2022-jp" { // which is detected only at the beginning
				late = c.text
			}
			for _, text := range []string{c.text, late} {
				data, err := c.in.NewEncoder().Bytes([]byte(text))
				if err != nil {
					t.Fatal(err)
				}
				in, err := read(t, inputs.Options{}, "x", data)
				if err != nil {
					t.Fatal(err)
				}
				got := in.Text.(*bigtext.Text)
				if got.Encoding() != c.want || contentOf(t, got) != text {
					t.Errorf("%s of %q: %q, %.60q", c.want, c.text[:6], got.Encoding(), contentOf(t, got))
				}
				if contentOf(t, got.Original()) != string(data) {
					t.Errorf("%s: the original is lost", c.want)
				}
			}
		})
	}
}

func TestTheEncodingCanBeGiven(t *testing.T) {
	data, err := charmap.CodePage850.NewEncoder().Bytes([]byte(german))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cp850", "CP850", "ibm850", "IBM-850"} {
		t.Run(name, func(t *testing.T) {
			in, err := read(t, inputs.Options{Encoding: name}, "x", data)
			if err != nil {
				t.Fatal(name, err)
			}
			if got := contentOf(t, in.Text); got != german {
				t.Errorf("%s: %q", name, got)
			}
		})
	}

	in, err := read(t, inputs.Options{Encoding: "utf-8"}, "x", data)
	if err != nil || contentOf(t, in.Text) != string(data) {
		t.Errorf("utf-8 leaves the bytes: %v", err)
	}
	in, err = read(t, inputs.Options{Encoding: "shift_jis"}, "x", []byte("a \xfd\xfd b"))
	if err != nil || !strings.Contains(in.Notes[0], "2 characters could not be decoded") {
		t.Errorf("%q %v", in.Notes, err)
	}
}

func TestBytesThatAreNotTextStay(t *testing.T) {
	random := make([]byte, 20_000)
	source := rand.NewChaCha8([32]byte{1})
	_, _ = source.Read(random) // it never fails
	numbers := make([]byte, 0, 8000)
	for i := range 2000 {
		numbers = append(numbers, byte(i*7), byte(i*7>>8), 0, 0)
	}
	for want, data := range map[bigtext.Kind][]byte{
		"png": []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), "pdf": []byte("%PDF-1.4\nall ASCII"),
		"sqlite": []byte("SQLite format 3\x00\x10\x00\x01\x01\x00\x40\x20\x20\x00\x00\x00"),
		"binary": random, "bin": numbers,
	} {
		in, err := read(t, inputs.Options{}, "x", data)
		if err != nil {
			t.Fatal(err)
		}
		text := in.Text.(*bigtext.Text)
		if want == "bin" {
			want = bigtext.KindBinary
		}
		notes := 1
		if want == "sqlite" {
			notes = 2 // the text is also damaged
		}
		if !text.IsBinary() || text.Kind() != want || len(in.Notes) != notes {
			t.Errorf("%s: %v %q, notes %q", want, text.IsBinary(), text.Kind(), in.Notes)
		}
	}

	for _, text := range []string{"BMW fährt\n", "MZ ist kein Programm, schöne Grüße\n"} {
		t.Run(text, func(t *testing.T) {
			data, err := charmap.Windows1252.NewEncoder().String(text)
			if err != nil {
				t.Fatal(err)
			}
			in, err := read(t, inputs.Options{}, "x", []byte(data))
			if err != nil || contentOf(t, in.Text) != text {
				t.Errorf("%q: %v", text, err)
			}
		})
	}
}

// Damaged text in UTF-8 keeps its bytes.
func TestDamagedTextStaysUTF8(t *testing.T) {
	for _, text := range []string{strings.Repeat(russian, 5) + "\xc3\x28\xa0", "filled \xff\xff\xff with nothing"} {
		t.Run(fmt.Sprintf("%.60s", text), func(t *testing.T) {
			in, err := read(t, inputs.Options{}, "x", []byte(text))
			if err != nil || in.Text.(*bigtext.Text).Encoding() != "" || contentOf(t, in.Text) != text {
				t.Errorf("%q: %v %v", text, in.Notes, err)
			}
		})
	}
}

// TestEncodingsHaveTheNamesOfPython checks that each name is the encoding that it names in Python.
func TestEncodingsHaveTheNamesOfPython(t *testing.T) {
	for name, in := range map[string]struct{ bytes, text string }{
		"cp932": {"\x93\xfa", "日"}, "SJIS": {"\x93\xfa", "日"}, "cp949": {"\xb0\xa1", "가"}, "cp950": {"\xa4@", "一"},
		"cp874": {"\xa1", "ก"}, "cp858": {"\xd5", "€"}, "cp437": {"\x81", "ü"}, "cp1252": {"\x80", "€"},
		"iso8859_15": {"\xa4", "€"}, "iso8859-2": {"\xb1", "ą"}, "latin_1": {"\xfc", "ü"}, "hz": {"~{VP~}", "中"},
		"mac_roman": {"\x9f", "ü"}, "big5hkscs": {"\xa4@", "一"}, "utf_16_le": {"-N", "中"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "a.txt")
			if err := os.WriteFile(path, []byte(in.bytes), 0o600); err != nil {
				t.Fatal(err)
			}
			opened, err := inputs.Open(t.Context(), inputs.Options{Encoding: name}, path)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			text := opened.Text.(*bigtext.Text)
			if data, err := text.Raw(0, text.Size()); err != nil || string(data) != in.text {
				t.Errorf("%s: %q, %v; want %q", name, data, err, in.text)
			}
			if err := opened.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	_, err := inputs.Open(t.Context(), inputs.Options{Encoding: "cp999"}, "a.txt")
	if err == nil || !strings.Contains(err.Error(), `"cp999"`) {
		t.Errorf("an unknown name: %v", err)
	}
}

package inputs_test

import (
	"archive/zip"
	"encoding/binary"
	"hash/crc32"
	"maps"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"

	"github.com/rlmhq/rlm/inputs"
)

// readNames returns the names of an archive's members, whose names are bytes, and the notes.
func readNames(t *testing.T, names []string, extra []byte) (decoded []string, notes string) {
	t.Helper()
	in, err := read(t, inputs.Options{}, "a.zip", zipped(t, names, func(h *zip.FileHeader) {
		h.NonUTF8, h.Extra = true, extra
	}))
	if err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(filesOf(t, in))), strings.Join(in.Notes, "; ")
}

func TestNamesOfMembersAreDecoded(t *testing.T) {
	for _, c := range []struct {
		page  encoding.Encoding
		names string
	}{
		{charmap.CodePage437, "résumé.txt"},
		{charmap.CodePage437, "Müller/Größe.csv,Ñandú.txt"},
		{charmap.CodePage437, "ÉTÉ.TXT"},
		{charmap.CodePage850, "Køb Århus.txt,Ação São João.pdf"},
		{charmap.CodePage852, "Łódź.txt,książka żółta.txt"},
		{charmap.CodePage866, "Документ.txt"},
		{charmap.CodePage866, "Отчёт за 2024/Счета.xlsx"},
		{charmap.Windows1251, "Документ.txt,Отчет.csv"},
		{charmap.Windows1252, "résumé.txt,Müller.csv"},
		{japanese.ShiftJIS, "日本語.txt"},
		{japanese.ShiftJIS, "テスト資料.txt,ソース表.csv"},
		{simplifiedchinese.GBK, "中文文件.txt,测试/报告.csv"},
		{traditionalchinese.Big5, "測試文件/報告書.txt,會議記錄.csv"},
		{korean.EUCKR, "한국어 문서.txt,사업 계획서.hwp"},
	} {
		t.Run(c.names, func(t *testing.T) {
			names := strings.Split(c.names, ",")
			raw := make([]string, len(names))
			for i := range names {
				var err error
				if raw[i], err = c.page.NewEncoder().String(names[i]); err != nil {
					t.Fatal(err)
				}
			}
			slices.Sort(names)
			got, notes := readNames(t, raw, nil)
			if !slices.Equal(got, names) || !strings.Contains(notes, "not in UTF-8: decoded from ") {
				t.Errorf("got %q; notes: %s", got, notes)
			}
		})
	}
}

func TestNamesThatAreNoTextStayDifferent(t *testing.T) {
	got, notes := readNames(t, []string{"a\xff\xfe\x81.txt", "a\xff\xfe\x80.txt", "b.txt"}, nil)
	if strings.Join(got, " ") != "a%FF%FE%80.txt a%FF%FE%81.txt b.txt" || !strings.Contains(notes, "%XX") {
		t.Errorf("got %q; notes: %s", got, notes)
	}
}

func TestAMemberMayStateItsNameInUnicode(t *testing.T) {
	const name = "r\x82sum\x82.txt"
	field := func(crc uint32, path string) []byte {
		data := append(binary.LittleEndian.AppendUint32([]byte{1}, crc), path...)
		return append(binary.LittleEndian.AppendUint16([]byte{0x75, 0x70}, uint16(len(data))), data...)
	}

	for want, extra := range map[string][]byte{
		"日本.txt":     append([]byte{1, 0, 2, 0, 9, 9}, field(crc32.ChecksumIEEE([]byte(name)), "日本.txt")...),
		"résumé.txt": field(7, "old.txt"), // belongs to another name
	} {
		if got, _ := readNames(t, []string{name}, extra); len(got) != 1 || got[0] != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

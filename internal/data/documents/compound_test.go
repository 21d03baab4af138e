package documents_test

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/rlmhq/rlm/internal/data/documents"
)

// TestMessagesOfOutlook reads a message with strings in UTF-16, as written by Outlook.
func TestMessagesOfOutlook(t *testing.T) {
	data := makeCompound(map[string][]byte{
		"__properties_version1.0":   nil,
		"__substg1.0_0037001F":      wide("Grüße"),
		"__substg1.0_0C1A001F":      wide("Ada Lovelace"),
		"__substg1.0_0C1F001F":      wide("ada@example.com"),
		"__substg1.0_0E04001F":      wide("Bob"),
		"__substg1.0_1000001F":      wide("The body.\nIts end."),
		"__substg1.0_007D001F":      wide("Received: x\nDate: Mon, 2 Mar 2026 10:00:00 +0100"),
		"__nameid_version1.0 extra": nil,
	})
	text, about, err := convert(t, documents.OLE, data)
	if err != nil {
		t.Fatal(err)
	}
	checkOrder(t, text, []string{
		"Mail of Outlook", "From: Ada Lovelace <ada@example.com>", "To: Bob", "Date: Mon, 2 Mar 2026",
		"Subject: Grüße", "The body.", "Its end.",
	})
	if len(about.Warnings) > 0 {
		t.Errorf("warnings %q", about.Warnings)
	}
}

// TestEncryptedOfficeFiles reads a file that Office wrote with a password: a compound file around
// the encrypted package.
func TestEncryptedOfficeFiles(t *testing.T) {
	data := makeCompound(map[string][]byte{
		"EncryptedPackage": []byte(strings.Repeat("\x5a", 8000)), "EncryptionInfo": []byte("\x04\x00\x04\x00"),
	})
	_, _, err := convert(t, documents.OLE, data)
	problem, ok := errors.AsType[*documents.ProblemError](err)
	if !ok || problem.Kind != documents.Encrypted || !strings.Contains(err.Error(), "password") {
		t.Errorf("%v", err)
	}
}

// wide returns a string in UTF-16.
func wide(text string) (data []byte) {
	for _, unit := range utf16.Encode([]rune(text)) {
		data = binary.LittleEndian.AppendUint16(data, unit)
	}
	return data
}

// These are the sizes and marks in a compound file.
const (
	sector    = 512
	freeEntry = 0xffff_ffff
	endOfRun  = 0xffff_fffe
	tableMark = 0xffff_fffd
	shortest  = 4096 // bytes of the shortest stream with its own sectors
)

// makeCompound returns a compound file with streams of these names. Short streams end with zeros.
func makeCompound(streams map[string][]byte) []byte {
	table := []uint32{tableMark} // the table is the first sector
	directory := appendEntry(nil, "Root Entry", 5, 1, endOfRun, 0)
	var body []byte
	left := len(streams)
	for name, data := range streams {
		left--
		next := uint32(freeEntry)
		if left > 0 {
			next = uint32(len(directory)/128 + 1)
		}
		data = append([]byte(nil), data...)
		for len(data) < shortest || len(data)%sector != 0 {
			data = append(data, 0)
		}
		directory = appendEntry(directory, name, 2, next, uint32(len(table)), uint64(len(data)))
		table = appendRun(table, len(data)/sector)
		body = append(body, data...)
	}

	for len(directory)%sector != 0 {
		directory = append(directory, make([]byte, 128)...)
	}
	first := uint32(len(table))
	table = appendRun(table, len(directory)/sector)
	for len(table) < sector/4 {
		table = append(table, freeEntry)
	}

	out := append([]byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), make([]byte, 16)...)
	for _, n := range []uint16{0x3e, 3, 0xfffe, 9, 6, 0, 0, 0} {
		out = binary.LittleEndian.AppendUint16(out, n)
	}
	for _, n := range []uint32{0, 1, first, 0, shortest, endOfRun, 0, endOfRun, 0, 0} {
		out = binary.LittleEndian.AppendUint32(out, n)
	}
	for len(out) < sector {
		out = append(out, 0xff)
	}
	for _, n := range table {
		out = binary.LittleEndian.AppendUint32(out, n)
	}
	return append(append(out, body...), directory...)
}

// appendRun appends a chain of count consecutive sectors.
func appendRun(table []uint32, count int) []uint32 {
	for range count - 1 {
		table = append(table, uint32(len(table)+1))
	}
	return append(table, endOfRun)
}

// appendEntry appends an entry of the directory. The entries of the root form a list: the first is
// the root's child, and each further entry is the right sibling of the previous one.
func appendEntry(directory []byte, name string, kind byte, next, start uint32, size uint64) []byte {
	entry := make([]byte, 128)
	copy(entry, wide(name))
	binary.LittleEndian.PutUint16(entry[64:], uint16(2*len(name)+2))
	entry[66], entry[67] = kind, 1
	right, child := next, uint32(freeEntry)
	if kind == 5 {
		right, child = freeEntry, next
	}
	binary.LittleEndian.PutUint32(entry[68:], freeEntry)
	binary.LittleEndian.PutUint32(entry[72:], right)
	binary.LittleEndian.PutUint32(entry[76:], child)
	binary.LittleEndian.PutUint32(entry[116:], start)
	binary.LittleEndian.PutUint64(entry[120:], size)
	return append(directory, entry...)
}

package inputs

import (
	"bytes"
	"encoding/binary"
	"strings"

	"github.com/gabriel-vasile/mimetype"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// findKind returns the kind of bytes that are not text, based on their beginning, such as "png" or
// "sqlite". The kind is empty for text and unknown bytes.
func findKind(head []byte) bigtext.Kind {
	if bytes.HasPrefix(head, []byte("%PDF-")) {
		return "pdf" // some are ASCII
	}
	if !looksBinary(head) {
		return "" // a text may begin like a picture, for example with BMW
	}

	if isArrow(head) {
		return kindArrow
	}
	found := mimetype.Detect(head)
	for t := found; t != nil; t = t.Parent() {
		if t.Is("text/plain") {
			return ""
		}
	}
	kind := bigtext.Kind(strings.TrimPrefix(found.Extension(), "."))
	if kind == "xlsx" && binaryPart.Match(head) {
		return "xlsb"
	}
	return kind
}

// binaryPart matches a part that only xlsb files contain. Programs differ in the part that they
// write first.
var binaryPart = lazyregexp.New(`xl/(_rels/workbook|workbook|worksheets/\w+)\.bin`)

// These are the kinds of files that contain a table.
const (
	kindArrow   bigtext.Kind = "arrow"
	kindParquet bigtext.Kind = "parquet"
)

// isArrow reports whether bytes are an Arrow file or stream. A stream begins with the length of
// its schema.
func isArrow(head []byte) bool {
	if bytes.HasPrefix(head, []byte("ARROW1\x00\x00")) {
		return true
	}
	if len(head) < 12 || !bytes.HasPrefix(head, []byte("\xff\xff\xff\xff")) {
		return false
	}
	length, root := binary.LittleEndian.Uint32(head[4:]), binary.LittleEndian.Uint32(head[8:])
	return length%8 == 0 && length <= 64<<20 && root >= 4 && root < length
}

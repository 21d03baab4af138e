package inputs

import (
	"bytes"
	"strings"

	"github.com/gabriel-vasile/mimetype"

	"github.com/rlmhq/rlm/internal/bigtext"
)

// findKind returns the kind of bytes that are no text by their beginning, such as "png" or
// "sqlite"; empty for text and for unknown bytes.
func findKind(head []byte) bigtext.Kind {
	if bytes.HasPrefix(head, []byte("%PDF-")) {
		return "pdf" // some are ASCII
	}
	if !looksBinary(head) {
		return "" // a text may begin as a picture does, such as BMW
	}

	found := mimetype.Detect(head)
	for t := found; t != nil; t = t.Parent() {
		if t.Is("text/plain") {
			return ""
		}
	}
	return bigtext.Kind(strings.TrimPrefix(found.Extension(), "."))
}

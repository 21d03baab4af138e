package inputs

import (
	"bytes"
	"fmt"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/data/tables"
	"github.com/rlmhq/rlm/internal/text/quantity"
)

// describeLayout returns sentences about anything unexpected in the way a CSV text is read. It does
// not report a text that is not a table: a snippet that reads it as a table receives the error.
func describeLayout(text *bigtext.Text) ([]string, error) {
	data, err := text.Raw(0, text.Size())
	if err != nil {
		return nil, err
	}

	var notes []string
	err = bigtext.Guard(text, func() {
		if layout, err := tables.FindLayout(data, 0, text.CSV()); err == nil {
			notes = layout.Notes
		}
		if n := bytes.Count(data[:min(len(data), headSize)], []byte{0}); n > 0 {
			notes = append(notes, fmt.Sprintf("its beginning has %s, which values keep", quantity.Plural(n, "NUL", "")))
		}
	})
	for i := range notes {
		notes[i] = "as a table: " + notes[i]
	}
	return notes, err
}

package inputs

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/text/quantity"
)

// These bounds apply to the search for content that sheets do not show.
const (
	mostSearchedSheets = 100
	mostSearchedBytes  = 64 << 20 // unpacked, of all sheets
)

// lastColumn is the number of Excel's last column.
const lastColumn = 1 << 14

// unseen counts content that a reader of sheets does not receive.
type unseen struct {
	formulas int // without a saved value
	rows     int // hidden
	columns  int // hidden
}

// describeSheets returns sentences about the sheets of an xlsx file: about formulas without a saved
// value, which programs such as openpyxl write, and about hidden rows and columns. It ignores
// errors, because the readers of the sheets report them.
func describeSheets(ctx context.Context, file *bigtext.Text) (notes []string) {
	archive, err := zip.NewReader(file, file.Size())
	if err != nil {
		return nil
	}

	var all unseen
	sheets, left := 0, int64(mostSearchedBytes)
	for _, part := range archive.File {
		isSheet := strings.HasPrefix(part.Name, "xl/worksheets/") && strings.HasSuffix(part.Name, ".xml")
		if !isSheet || sheets == mostSearchedSheets || left <= 0 || ctx.Err() != nil {
			continue
		}
		sheets++
		sheet, err := part.Open()
		if err != nil {
			continue
		}
		limited := &io.LimitedReader{R: sheet, N: left}
		all.add(limited)
		left = limited.N
		_ = sheet.Close() // it was only read
	}

	if all.formulas > 0 {
		notes = append(notes, quantity.Plural(all.formulas, "formula", "")+" without a saved value: "+
			"sums, arithmetic and references are computed here, other cells are empty in rows; "+
			"open the file in a spreadsheet program and save it")
	}
	if all.rows > 0 {
		notes = append(notes, "the text and the rows include "+quantity.Plural(all.rows, "hidden row", ""))
	}
	if all.columns > 0 {
		notes = append(notes, "the text and the rows include "+quantity.Plural(all.columns, "hidden column", ""))
	}
	return notes
}

// add counts such content in a sheet in XML.
func (u *unseen) add(sheet io.Reader) {
	r := bufio.NewReaderSize(sheet, 64<<10)
	hasFormula, hasValue := false, false
	for {
		piece, err := r.ReadSlice('>') // text, and the tag after it
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
		text, tag, _ := bytes.Cut(piece, []byte{'<'})
		name := tag[:len(tag)-len(bytes.TrimLeft(tag, "/abcdefghijklmnopqrstuvwxyz"))]

		switch string(name) {
		case "row":
			if isHidden(tag) {
				u.rows++
			}
		case "col":
			// A range up to Excel's last column hides only the end of the sheet.
			first, last := attribute(tag, "min"), attribute(tag, "max")
			if isHidden(tag) && first > 0 && first <= last && last < lastColumn {
				u.columns += last - first + 1
			}
		case "c":
			hasFormula = false
			hasValue = bytes.Contains(tag, []byte(`t="str"`)) // an empty string is a value, too
		case "f", "f/":
			hasFormula = true
		case "/v":
			hasValue = hasValue || len(bytes.TrimSpace(text)) > 0
		case "is":
			hasValue = true
		case "/c":
			if hasFormula && !hasValue {
				u.formulas++
			}
		}
	}
}

func isHidden(tag []byte) bool {
	return bytes.Contains(tag, []byte(` hidden="1"`)) || bytes.Contains(tag, []byte(` hidden="true"`))
}

// attribute returns the number of an attribute in a tag, or 0 if there is none.
func attribute(tag []byte, name string) int {
	_, rest, _ := bytes.Cut(tag, []byte(" "+name+`="`))
	digits, _, _ := bytes.Cut(rest, []byte{'"'})
	number, err := strconv.Atoi(string(digits))
	if err != nil {
		return 0
	}
	return number
}

package bigtext

import (
	"context"
	"errors"
	"os"

	"github.com/rlmhq/rlm/internal/data/tables"
)

// Handed is the information about a text that another process of this program needs in addition to
// the bytes.
type Handed struct {
	Name     string        `json:"name"`
	Kind     Kind          `json:"kind"`
	Binary   bool          `json:"binary,omitempty"`
	Encoding string        `json:"encoding,omitempty"`
	Sections []Section     `json:"sections,omitempty"`
	Tables   []HandedTable `json:"tables,omitempty"`
	Pages    bool          `json:"pages,omitempty"` // whether they can be drawn

	CSV tables.Options `json:"csv,omitzero"`
}

// HandedTable is a Table without its rows.
type HandedTable struct {
	Name    string   `json:"name"`
	Columns []Column `json:"columns"`
	Rows    int64    `json:"rows"`
}

// HandOver describes the text for Receive in another process.
func (t *Text) HandOver() Handed {
	h := Handed{t.name, t.kind, t.binary, t.encoding, t.sections, nil, t.HasPages(), t.csv}
	for _, table := range t.Tables() {
		h.Tables = append(h.Tables, HandedTable{table.Name, table.Columns, table.Rows})
	}
	return h
}

// Receive returns the text with the bytes of a file that no process writes to, and takes ownership
// of the file. The original is the text that it was decoded from, or nil; Receive takes ownership
// of it as well. read returns the rows of a table, and draw the picture of a page.
func Receive(
	h Handed, file *os.File, original *Text, read func(ctx context.Context, table int) (*Text, error),
	draw PageDrawer,
) (*Text, error) {
	t, err := fromFile(h.Name, file)
	if err != nil {
		if original != nil {
			err = errors.Join(err, original.Close())
		}
		return nil, err
	}

	if original != nil {
		t.OwnOriginal(original)
	}
	t.kind, t.binary, t.encoding, t.sections = h.Kind, h.Binary, h.Encoding, h.Sections
	t.csv = h.CSV
	if h.Pages {
		t.draw = draw
	}
	var list []Table
	for i, table := range h.Tables {
		list = append(list, Table{
			Name: table.Name, Columns: table.Columns, Rows: table.Rows,
			Read: func(ctx context.Context) (*Text, error) { return read(ctx, i) },
		})
	}
	if len(list) > 0 {
		t.MarkTables(list)
	}
	return t, nil
}

// opener is a directory whose files are already texts, so they need no copy.
type opener interface {
	OpenText(ctx context.Context, name string) (*Text, error)
}

// KeepCopiesIn makes this process store all copies in files that makeFile returns, such as files in
// memory: a locked-down process has no folder for temporary files. Call it before the first copy.
func KeepCopiesIn(makeFile func() (*os.File, error)) { makeCopy = makeFile }

// makeCopy creates the file of a copy. If it is nil, the file is created in the folder for
// temporary files.
var makeCopy func() (*os.File, error)

// nameless returns a new file without a name. After its Close, no file remains.
func nameless() (f *os.File, remove func() error, err error) {
	if makeCopy == nil {
		return tempFile()
	}
	f, err = makeCopy()
	return f, func() error { return nil }, err
}

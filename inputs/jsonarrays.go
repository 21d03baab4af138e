package inputs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/data/tablefiles"
	"github.com/rlmhq/rlm/internal/data/tables"
)

// jsonArray is a JSON list of objects, which are the rows of a table.
type jsonArray struct{}

// errNoRows reports a list whose first values are not objects.
var errNoRows = errors.New("the list has no objects")

// These bounds apply to a list: the number of rows whose keys become columns, and the sizes of rows
// in bytes.
const (
	arrayRows   = 10_000
	arraySample = 16 << 20
	arrayRow    = 8 << 20
)

// arrayRead is the number of bytes that the decoder may read for one row. It reads ahead by up to
// twice the longest row, and keeps what it has read.
const arrayRead = 4 * arrayRow

// rowReader fails after left bytes, so that decoding a row is bounded.
type rowReader struct {
	io.Reader

	left int
}

// Read implements [io.Reader].
func (r *rowReader) Read(p []byte) (int, error) {
	if r.left <= 0 {
		return 0, fmt.Errorf("%w: a row has more than %d bytes", tablefiles.ErrUnreadable, arrayRow)
	}
	n, err := r.Reader.Read(p[:min(len(p), r.left)])
	r.left -= n
	return n, err
}

// startsArray reports whether a text begins like a list of objects.
func startsArray(text *bigtext.Text) bool {
	head := make([]byte, min(text.Size(), 1<<10))
	n, _ := text.ReadAt(head, 0) // as much as there is
	head = bytes.TrimLeft(bytes.TrimPrefix(head[:n], []byte("\uFEFF")), " \t\r\n")
	if len(head) == 0 || head[0] != '[' {
		return false
	}
	head = bytes.TrimLeft(head[1:], " \t\r\n")
	return len(head) > 0 && head[0] == '{'
}

func (jsonArray) list(ctx context.Context, file *bigtext.Text) ([]bigtext.Table, error) {
	table := bigtext.Table{Rows: -1}
	places := map[string]int{}
	var read int
	err := eachObject(ctx, file, func(row int, line []byte) error {
		tables.Members(line, func(key, value []byte) {
			name, isText := tables.String(key)
			if !isText {
				return
			}
			place, isKnown := places[string(name)]
			if !isKnown {
				place = len(table.Columns)
				places[string(name)] = place
				table.Columns = append(table.Columns, bigtext.Column{Name: string(name)})
			}
			if _, err := strconv.ParseUint(string(value), 10, 64); err == nil && len(value) >= 19 {
				table.Columns[place].Type = "uint64" // SQL keeps it exact
			}
		})
		if read += len(line); row+1 == arrayRows || read > arraySample {
			return io.EOF
		}
		return nil
	})
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return []bigtext.Table{table}, err
}

func (jsonArray) write(ctx context.Context, file *bigtext.Text, _ int, _ string, out io.Writer) error {
	buffered := bufio.NewWriterSize(out, 64<<10)
	err := eachObject(ctx, file, func(_ int, line []byte) error {
		_, err := buffered.Write(append(line, '\n'))
		return err
	})
	if errors.Is(err, errNoRows) {
		err = fmt.Errorf("%w: %w", tablefiles.ErrUnreadable, err)
	}
	return errors.Join(err, buffered.Flush())
}

// eachObject calls use with each object of a list, on one line, until use returns an error.
func eachObject(ctx context.Context, file *bigtext.Text, use func(row int, line []byte) error) error {
	var source io.Reader = io.NewSectionReader(file, 0, file.Size())
	head := make([]byte, 3)
	if n, _ := file.ReadAt(head, 0); bytes.Equal(head[:n], []byte("\uFEFF")) {
		source = io.NewSectionReader(file, 3, file.Size()-3)
	}
	bounded := &rowReader{source, arrayRead}
	decoder := json.NewDecoder(bounded)
	if _, err := decoder.Token(); err != nil {
		return fmt.Errorf("%w: %w", errNoRows, err)
	}

	var line bytes.Buffer
	var value json.RawMessage
	for row := 0; decoder.More(); row++ {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		bounded.left = arrayRead
		if err := decoder.Decode(&value); err != nil {
			return fmt.Errorf("%w: %w", tablefiles.ErrUnreadable, err)
		}
		line.Reset()
		if err := json.Compact(&line, value); err != nil {
			return fmt.Errorf("%w: %w", tablefiles.ErrUnreadable, err)
		}
		if line.Len() > arrayRow {
			return fmt.Errorf("%w: row %d has more than %d bytes", tablefiles.ErrUnreadable, row+1, arrayRow)
		}
		if line.Bytes()[0] != '{' {
			return fmt.Errorf("%w: value %d is not an object", errNoRows, row+1)
		}
		if err := use(row, line.Bytes()); err != nil {
			return err
		}
	}
	if _, err := decoder.Token(); err != nil {
		return fmt.Errorf("%w: %w", tablefiles.ErrUnreadable, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: more follows the list", tablefiles.ErrUnreadable)
	}
	return nil
}

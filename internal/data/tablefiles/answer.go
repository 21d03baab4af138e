package tablefiles

import (
	"fmt"
	"math"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/machine/rustmodule"
)

// These bounds apply to an answer.
const (
	maxText    = 1 << 10 // bytes
	maxTables  = 10_000
	maxColumns = 100_000 // in all tables
)

// decode decodes the tables of a file. The module is not trusted: decode allocates no more than a
// few times the length of the answer.
func decode(answer []byte) ([]bigtext.Table, error) {
	a, err := begin(answer)
	if err != nil {
		return nil, err
	}

	var tables []bigtext.Table
	left := uint64(maxColumns)
	for range a.Count(maxTables) {
		table := bigtext.Table{Name: a.Text(maxText), Rows: -1}
		if rows := a.Number(); rows > 0 && rows <= math.MaxInt64 {
			table.Rows = int64(rows - 1)
		}
		count := a.Count(left)
		left -= count
		for range count {
			table.Columns = append(table.Columns, bigtext.Column{Name: a.Text(maxText), Type: a.Text(maxText)})
		}
		tables = append(tables, table)
	}
	return tables, a.End()
}

func decodeEmpty(answer []byte) error {
	a, err := begin(answer)
	if err != nil {
		return err
	}
	return a.End()
}

// begin checks an answer's first byte, which is 0, or 1 followed by the module's reason, and
// returns the rest.
func begin(answer []byte) (*rustmodule.Answer, error) {
	a := rustmodule.NewAnswer(answer)
	switch a.Byte() {
	case 0:
		return a, nil
	case 1:
		reason := a.Text(maxText)
		if err := a.End(); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %q", ErrUnreadable, reason)
	}
	return nil, rustmodule.ErrMalformed
}

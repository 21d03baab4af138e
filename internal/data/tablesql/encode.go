package tablesql

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/dustin/go-humanize"
	"github.com/ncruces/go-sqlite3"
)

// encodeRows runs a statement and returns its rows.
func (t *Tables) encodeRows(stmt *sqlite3.Stmt) (json.RawMessage, error) {
	keys := encodeKeys(stmt)
	out := []byte{'['}
	for rows := 0; stmt.Step(); rows++ {
		if rows == t.limits.Rows {
			return nil, fmt.Errorf("the query has more than %d rows: count, group or LIMIT them", rows)
		}
		if rows > 0 {
			out = append(out, ',')
		}
		out = append(out, '{')

		for i, key := range keys {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, key...)

			var err error
			if out, err = appendValue(out, stmt, i); err != nil {
				return nil, err
			}
			if len(out) > t.limits.Bytes {
				return nil, fmt.Errorf("the rows have more than %s: select fewer of them, or fewer columns",
					humanize.IBytes(uint64(t.limits.Bytes))) //nolint:gosec // positive
			}
		}
		out = append(out, '}')
	}
	if err := stmt.Err(); err != nil {
		return nil, err
	}
	return append(out, ']'), nil
}

// encodeKeys returns the names of the columns as keys of an object.
func encodeKeys(stmt *sqlite3.Stmt) [][]byte {
	keys := make([][]byte, stmt.ColumnCount())
	taken := map[string]bool{}
	for i := range keys {
		keys[i] = append(appendString(nil, []byte(makeUnique(stmt.ColumnName(i), taken))), ':')
	}
	return keys
}

func appendValue(out []byte, stmt *sqlite3.Stmt, i int) ([]byte, error) {
	switch stmt.ColumnType(i) {
	case sqlite3.INTEGER:
		return strconv.AppendInt(out, stmt.ColumnInt64(i), 10), nil
	case sqlite3.FLOAT:
		return appendFloat(out, stmt.ColumnFloat(i)), nil
	case sqlite3.TEXT:
		return appendString(out, stmt.ColumnRawText(i)), nil
	case sqlite3.BLOB:
		return nil, fmt.Errorf("column %q has bytes: select hex(%s)", stmt.ColumnName(i), stmt.ColumnName(i))
	case sqlite3.NULL:
	}
	return append(out, "null"...), nil
}

// appendFloat appends a number that Python reads as a float.
func appendFloat(out []byte, f float64) []byte {
	switch {
	case math.IsInf(f, 1):
		return append(out, "1e999"...)
	case math.IsInf(f, -1):
		return append(out, "-1e999"...)
	case f == math.Trunc(f) && math.Abs(f) < 1e15:
		return strconv.AppendFloat(out, f, 'f', 1, 64)
	case math.Abs(f) >= 1e-5 && math.Abs(f) < 1e15:
		return strconv.AppendFloat(out, f, 'f', -1, 64)
	}
	return strconv.AppendFloat(out, f, 'e', -1, 64)
}

// appendString appends a JSON string. A byte that is not UTF-8 becomes a lone surrogate, as in the
// texts that snippets see.
func appendString(out, text []byte) []byte {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			out = append(out, `\udc`...)
			out = append(out, hex[text[0]>>4], hex[text[0]&15])
		case r == '"' || r == '\\':
			out = append(out, '\\', byte(r))
		case r < ' ':
			out = append(out, `\u00`...)
			out = append(out, hex[r>>4], hex[r&15])
		default:
			out = append(out, text[:size]...)
		}
		text = text[size:]
	}
	return append(out, '"')
}

// bind sets the parameters of a statement.
func bind(stmt *sqlite3.Stmt, params json.RawMessage) error {
	var given any
	if len(params) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(params))
		decoder.UseNumber()
		if err := decoder.Decode(&given); err != nil {
			return err
		}
	}

	list, isList := given.([]any)
	named, isNamed := given.(map[string]any)
	if given != nil && !isList && !isNamed {
		return errors.New("params must be a list for ?, or a dict for :name")
	}

	if n := stmt.BindCount(); named == nil && n != len(list) {
		return fmt.Errorf("the query has %d parameters, but %d were given", n, len(list))
	}
	for i := 1; i <= stmt.BindCount(); i++ {
		var value any
		if named == nil {
			value = list[i-1]
		} else if name := stmt.BindName(i); name != "" {
			var isGiven bool
			if value, isGiven = named[name[1:]]; !isGiven {
				return fmt.Errorf("params lacks %q", name[1:])
			}
		} else {
			return errors.New("params is a dict, so the query must name its parameters: :name")
		}
		if err := bindOne(stmt, i, value); err != nil {
			return err
		}
	}
	return nil
}

func bindOne(stmt *sqlite3.Stmt, i int, value any) error {
	switch v := value.(type) {
	case nil:
		return stmt.BindNull(i)
	case bool:
		return stmt.BindBool(i, v)
	case string:
		return stmt.BindText(i, v)
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return stmt.BindInt64(i, n)
		}
		f, err := v.Float64()
		if err != nil {
			return fmt.Errorf("parameter %d is too large", i)
		}

		return stmt.BindFloat(i, f)
	}
	return fmt.Errorf("parameter %d must be a number, a str, a bool or None", i)
}

package tablesql

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/ncruces/go-sqlite3"

	"github.com/rlmhq/rlm/internal/text/quantity"
)

// encodeRows runs a statement and returns its rows, whose columns have these names. With bigs, text
// in a column without a type may be an integer of more than 64 bits.
func (t *Tables) encodeRows(stmt *sqlite3.Stmt, names []string, asked *question, bigs bool) (json.RawMessage, error) {
	keys := encodeKeys(names)
	first := asked.nullsFirst(names)
	mayBeBig := make([]bool, len(keys))
	for i := range keys {
		kind := stmt.ColumnDeclType(i)
		mayBeBig[i] = bigs && (kind == "" || kind == typeBig)
	}
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

			if len(first) > i && first[i] && stmt.ColumnType(i) == sqlite3.NULL {
				asked.tellNull(names[i])
			}
			var err error
			if mayBeBig[i] && isBigText(stmt, i) {
				out = append(out, stmt.ColumnRawText(i)...)
			} else if out, err = appendValue(out, stmt, i); err != nil {
				return nil, err
			}
			if len(out) > t.limits.Bytes {
				return nil, fmt.Errorf("the rows have more than %s: select fewer of them, or fewer columns",
					quantity.IBytes(t.limits.Bytes))
			}
		}
		out = append(out, '}')
	}
	if err := stmt.Err(); err != nil {
		return nil, err
	}
	return append(out, ']'), nil
}

// columnNames returns the names of the columns of a statement.
func columnNames(stmt *sqlite3.Stmt) []string {
	names := make([]string, stmt.ColumnCount())
	for i := range names {
		names[i] = stmt.ColumnName(i)
	}
	return names
}

// encodeKeys returns the names of columns as keys of an object.
func encodeKeys(names []string) [][]byte {
	keys := make([][]byte, len(names))
	taken := map[string]bool{}
	for i, name := range names {
		keys[i] = append(appendString(nil, []byte(makeUnique(name, taken))), ':')
	}
	return keys
}

// isBigText reports whether a value is the text of an integer of more than 64 bits.
func isBigText(stmt *sqlite3.Stmt, i int) bool {
	if stmt.ColumnType(i) != sqlite3.TEXT {
		return false
	}
	text := stmt.ColumnRawText(i)
	return areDigits(text) && kindOf(text) == kindBig
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
// texts that snippets receive.
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

// readParameters decodes the parameters of a query.
func readParameters(params json.RawMessage) (given any, err error) {
	if len(params) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(params))
		decoder.UseNumber()
		err = decoder.Decode(&given)
	}
	return given, err
}

// bind sets the parameters of a statement. With bigs, an integer of more than 64 bits is bound as
// text.
func bind(stmt *sqlite3.Stmt, given any, bigs bool) error {
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
		if err := bindOne(stmt, i, value, bigs); err != nil {
			return err
		}
	}
	return nil
}

func bindOne(stmt *sqlite3.Stmt, i int, value any, bigs bool) error {
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
		if bigs && kindOf([]byte(v)) == kindBig {
			return stmt.BindText(i, v.String())
		}
		f, err := v.Float64()
		if err != nil {
			return fmt.Errorf("parameter %d is too large", i)
		}

		return stmt.BindFloat(i, f)
	}
	return fmt.Errorf("parameter %d must be a number, a str, a bool or None", i)
}

package tablesql

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/ncruces/go-sqlite3"
)

// replaceFunctions replaces functions of SQLite whose time grows with the square of their
// arguments, and which no limit of time ends.
func replaceFunctions(db *sqlite3.Conn) error {
	const flags = sqlite3.DETERMINISTIC | sqlite3.INNOCUOUS
	for _, f := range []struct {
		name      string
		arguments int
		function  sqlite3.ScalarFunction
	}{
		{"instr", 2, instr},
		{"replace", 3, replace},
		{"trim", 2, trimmer(strings.TrimFunc)},
		{"ltrim", 2, trimmer(strings.TrimLeftFunc)},
		{"rtrim", 2, trimmer(strings.TrimRightFunc)},
	} {
		if err := db.CreateFunction(f.name, f.arguments, flags, f.function); err != nil {
			return err
		}
	}
	return nil
}

func hasNull(args []sqlite3.Value) bool {
	for _, arg := range args {
		if arg.Type() == sqlite3.NULL {
			return true
		}
	}
	return false
}

// instr returns the place of the first occurrence, from 1, or 0. It counts characters, in blobs
// bytes.
func instr(ctx sqlite3.Context, args ...sqlite3.Value) {
	if hasNull(args) {
		return
	}
	if args[0].Type() == sqlite3.BLOB && args[1].Type() == sqlite3.BLOB {
		ctx.ResultInt(bytes.Index(args[0].RawBlob(), args[1].RawBlob()) + 1)
		return
	}

	text := args[0].Text()
	i := strings.Index(text, args[1].Text())
	if i >= 0 {
		i = utf8.RuneCountInString(text[:i])
	}
	ctx.ResultInt(i + 1)
}

func replace(ctx sqlite3.Context, args ...sqlite3.Value) {
	if hasNull(args) {
		return
	}
	text, old, with := args[0].Text(), args[1].Text(), args[2].Text()
	if old == "" {
		ctx.ResultText(text)
		return
	}

	size := len(text) + strings.Count(text, old)*(len(with)-len(old))
	if size > bounds[sqlite3.LIMIT_LENGTH] {
		ctx.ResultError(sqlite3.TOOBIG)
		return
	}
	ctx.ResultText(strings.ReplaceAll(text, old, with))
}

// trimmer removes characters that are in the second argument.
func trimmer(trim func(string, func(rune) bool) string) sqlite3.ScalarFunction {
	return func(ctx sqlite3.Context, args ...sqlite3.Value) {
		if hasNull(args) {
			return
		}

		set := map[rune]bool{}
		for _, r := range args[1].Text() {
			set[r] = true
		}
		ctx.ResultText(trim(args[0].Text(), func(r rune) bool { return set[r] }))
	}
}

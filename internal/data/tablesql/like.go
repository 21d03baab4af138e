package tablesql

import (
	"bytes"
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/ncruces/go-sqlite3"
)

// likePattern is a pattern of LIKE: its characters unchanged, and in lower case.
type likePattern struct {
	text         string
	exact, lower []rune
}

// These are the wildcards of a pattern.
const (
	anyOne  rune = -1 // _
	anyText rune = -2 // %
)

// compileLike reads a pattern, and the arguments of LIKE: the pattern, the text, and the escape
// character, if given.
func compileLike(text string, args []sqlite3.Value, fold *folding) (*likePattern, error) {
	if len(text) > bounds[sqlite3.LIMIT_LIKE_PATTERN_LENGTH] {
		return nil, errors.New("LIKE or GLOB pattern too complex")
	}
	escape := anyText
	if len(args) > 2 {
		r, size := utf8.DecodeRune(args[2].RawText())
		if size == 0 || size < len(args[2].RawText()) {
			return nil, errors.New("ESCAPE expression must be a single character")
		}
		escape = r
	}

	p, isEscaped := &likePattern{text: text}, false
	for _, r := range text {
		switch {
		case isEscaped:
			isEscaped = false
		case r == escape:
			isEscaped = true
			continue
		case r == '%':
			r = anyText
		case r == '_':
			r = anyOne
		}
		p.exact = append(p.exact, r)
		p.lower = append(p.lower, fold.of(r))
	}
	if isEscaped { // in this case, SQLite matches nothing
		return &likePattern{text: text, exact: []rune{unicode.MaxRune + 1}, lower: []rune{unicode.MaxRune + 1}}, nil
	}
	return p, nil
}

// like calls use with the pattern after the mark and the text of LIKE, unless one of them is NULL.
func like(
	ctx sqlite3.Context, args []sqlite3.Value, mark string, fold *folding,
	use func(p *likePattern, text []byte) bool,
) {
	kind := args[1].Type()
	if kind == sqlite3.NULL {
		return
	}
	p, isKnown := ctx.GetAuxData(0).(*likePattern)
	if !isKnown {
		if hasNull(args) {
			return
		}
		var err error
		if p, err = compileLike(strings.TrimPrefix(args[0].Text(), mark), args, fold); err != nil {
			ctx.ResultError(err)
			return
		}
		if len(args) == 2 {
			ctx.SetAuxData(0, p)
		}
	}
	ctx.ResultBool(kind != sqlite3.BLOB && use(p, args[1].RawText()))
}

// matchLike implements LIKE, as in SQLite. It adds a note if a text matches only because LIKE
// ignores case.
func (q *question) matchLike(ctx sqlite3.Context, args ...sqlite3.Value) {
	like(ctx, args, "", foldASCII, func(p *likePattern, text []byte) bool {
		if !matchRunes(p.lower, text, foldASCII) {
			return false
		}
		if !q.told["like"] && !matchRunes(p.exact, text, foldNone) {
			q.tell("like", "LIKE %s matches %q here: SQLite ignores the case of ASCII letters; GLOB, with * and ?, "+
				"distinguishes it, and ILIKE ignores it without this note",
				sqlite3.Quote(p.text), strings.ToValidUTF8(string(text[:min(len(text), longestShown)]), ""))
		}
		return true
	})
}

// withIlike implements REGEXP in queries with ILIKE, which ignores the case of all letters: see
// replaceIlike.
func withIlike(ctx sqlite3.Context, args ...sqlite3.Value) {
	_, isIlike := ctx.GetAuxData(0).(*likePattern)
	switch {
	case isIlike || bytes.HasPrefix(args[0].RawText(), []byte(ilikeMark)):
		like(ctx, args, ilikeMark, foldAll, func(p *likePattern, text []byte) bool {
			return matchRunes(p.lower, text, foldAll)
		})
	case len(args) == 2:
		matchRegexp(ctx, args...)
	case !hasNull(args):
		ctx.ResultError(errors.New("REGEXP has no ESCAPE"))
	}
}

// folding maps characters that a pattern does not distinguish to the same character.
type folding struct {
	ascii  [utf8.RuneSelf]rune
	others func(rune) rune
}

var (
	foldNone  = newFolding(func(r rune) rune { return r }, func(r rune) rune { return r })
	foldASCII = newFolding(unicode.ToLower, func(r rune) rune { return r })
	foldAll   = newFolding(unicode.ToLower, unicode.ToLower)
)

func newFolding(ascii, others func(rune) rune) *folding {
	f := &folding{others: others}
	for i := range f.ascii {
		f.ascii[i] = ascii(rune(i))
	}
	return f
}

func (f *folding) of(r rune) rune {
	if 0 <= r && r < utf8.RuneSelf {
		return f.ascii[r]
	}
	return f.others(r)
}

// matchRunes reports whether a text matches a pattern after each of its characters was folded. Only
// the last % is tried again, because the earlier ones need no other match.
func matchRunes(pattern []rune, text []byte, fold *folding) bool {
	at, i := 0, 0
	again, from := -1, 0 // after the last %: in the pattern and in the text

	for at < len(text) {
		if i < len(pattern) && pattern[i] == anyText {
			i++
			again, from = i, at
			if i == len(pattern) {
				return true
			}
			continue
		}

		r, size := rune(text[at]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(text[at:])
		}
		switch {
		case i < len(pattern) && (pattern[i] == anyOne || pattern[i] == fold.of(r)):
			at, i = at+size, i+1
		case again < 0:
			return false
		default:
			_, size = utf8.DecodeRune(text[from:])
			from += size
			at, i = from, again
		}
	}
	for i < len(pattern) && pattern[i] == anyText {
		i++
	}
	return i == len(pattern)
}

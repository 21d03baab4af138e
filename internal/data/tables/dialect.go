package tables

import (
	"bytes"
	"slices"
)

// chooseDialect returns the dialect with which most rows of the sample have the same number of
// fields, and at least two.
func (f *finder) chooseDialect() Dialect {
	base := Dialect{
		Delimiter: ',', Quote: '"', Escape: f.Escape, Comment: f.Comment, Limit: maxRow,
	}
	if f.Quote != 0 {
		base.Quote = f.Quote
	}
	if base.Escape == base.Quote {
		base.Escape = 0 // doubled quotes
	}

	delimiters := []byte(",\t;|")
	if f.Delimiter != 0 {
		delimiters = []byte{f.Delimiter}
	}
	var best shape
	for i, delimiter := range delimiters {
		base.Delimiter = delimiter
		if s := f.lookQuoted(base); i == 0 || s.isBetter(&best) {
			best = s
		}
	}
	if best.Escape != f.Escape && best.Escape == '\\' {
		f.note(`a backslash escapes quotes (escape=\)`)
	}
	if best.torn > 0 {
		f.note("in %d of the first rows, text follows a closing quote, so values may be cut in the "+
			"wrong place: the options quote and escape say how they are quoted", best.torn)
	}
	if best.Comment != f.Comment {
		f.note("lines that begin with # are comments (comment=#)")
	}
	if best.SkipSpace {
		f.note("the spaces after each delimiter are not part of the values")
	}
	return best.Dialect
}

// lookQuoted reads the sample in each way in which text with this delimiter may be quoted, and
// returns the best result.
func (f *finder) lookQuoted(d Dialect) shape {
	if f.Comment == 0 && f.hasComments(d) {
		d.Comment = '#'
	}
	d.SkipSpace = d.Delimiter != ' ' && f.hasSpaces(d)
	plain := f.look(d)
	isClean := plain.torn == 0 && !plain.isOpen && plain.same == len(plain.counts)
	if f.Escape != 0 || isClean || !f.hasBackslash() {
		return plain
	}

	d.Escape = '\\'
	escaped := f.look(d)
	if !escaped.isOpen && escaped.torn <= plain.torn && escaped.share() >= plain.share() &&
		(escaped.torn < plain.torn || plain.isOpen || escaped.share() > plain.share()) {
		return escaped
	}
	return plain
}

// hasComments reports whether the text begins with lines of comments, and no row of the sample that
// has all fields begins like them. A header may begin like them, too.
func (f *finder) hasComments(d Dialect) bool {
	r := f.newReader(d)
	var isComment []bool
	var counts []int
	for r.next() {
		isComment = append(isComment, len(r.fields[0]) > 0 && r.fields[0][0] == '#')
		counts = append(counts, len(r.fields))
	}
	rest := slices.Index(isComment, false)
	if rest < 1 {
		return false
	}
	width := counts[rest]
	for i, is := range isComment {
		if is && counts[i] == width && width > 1 {
			return false
		}
	}
	return true
}

// hasSpaces reports whether a space follows each delimiter, or precedes a quote.
func (f *finder) hasSpaces(d Dialect) bool {
	r := f.newReader(d)
	spaced, rows := 0, 0
	for r.next() {
		rows++
		for _, field := range r.fields[1:] {
			switch {
			case bytes.HasPrefix(bytes.TrimLeft(field, " "), []byte{d.Quote}) && field[0] == ' ':
				return true
			case len(field) > 0 && field[0] != ' ':
				return false
			case len(field) > 0:
				spaced++
			}
		}
	}
	return rows > 1 && spaced >= rows
}

// specials is the length of a string from [Dialect.Special]. In this string, absent means that the
// dialect does not use the character.
const (
	specials = 4
	absent   = ' '
)

// Special returns a dialect without its delimiter and limit, as four characters of ASCII.
func (d Dialect) Special() []byte {
	out := []byte{d.Quote, d.Escape, d.Comment, absent}
	if d.SkipSpace {
		out[3] = 's'
	}
	for i, c := range out {
		if c == 0 {
			out[i] = absent
		}
	}
	return out
}

// WithSpecial returns the dialect with the characters that Special wrote at the beginning of text,
// and the rest of text.
func (d Dialect) WithSpecial(text []byte) (changed Dialect, rest []byte, isValid bool) {
	if len(text) < specials {
		return d, text, false
	}
	d.Quote = text[0]
	for i, place := range []*byte{&d.Escape, &d.Comment} {
		if *place = text[1+i]; *place == absent {
			*place = 0
		}
	}
	d.SkipSpace = text[3] == 's'
	return d, text[specials:], true
}

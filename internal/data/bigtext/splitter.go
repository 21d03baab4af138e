package bigtext

import (
	"context"
	"encoding/binary"
	"fmt"
)

// Splitter defines how a text is divided into parts. It is a value of [Sep], [Lines], [Newlines] or
// [Fields], and comparable.
type Splitter struct {
	kind   splitKind
	greedy bool // the separators must be found one after the other
	sep    string
}

type splitKind uint8

const (
	splitSep splitKind = iota
	splitLines
	splitNewlines
	splitFields
)

// Sep splits at each sep like str.split(sep): n separators make n+1 parts. The methods return an
// error for an empty sep.
func Sep(sep []byte) Splitter {
	// A separator longer than a block cannot be found block by block either.
	s := search{needle: sep}
	return Splitter{splitSep, len(sep) > defaultSplitBlock || s.overlaps(), string(sep)}
}

// Lines splits like str.splitlines(): at \n, \r, \r\n, \v, \f, \x1c, \x1d, \x1e, \x85, \u2028 and
// \u2029, without an empty part at the end.
func Lines() Splitter { return Splitter{kind: splitLines} }

// Newlines splits at \n and \r\n only, without an empty part at the end.
func Newlines() Splitter { return Splitter{kind: splitNewlines} }

// Fields splits like str.split(): the parts are the runs of characters that are not whitespace by
// str.isspace().
func Fields() Splitter { return Splitter{kind: splitFields} }

// String returns the splitter in Python's notation.
func (s Splitter) String() string {
	switch s.kind {
	case splitLines:
		return "splitlines()"
	case splitNewlines:
		return `split("\n")`
	case splitFields:
		return "split()"
	default:
		return fmt.Sprintf("split(%q)", s.sep)
	}
}

// scanner finds the events of a splitter in the text.
type scanner interface {
	// next returns the first event in [p,hi) and where to look for the following one, or -1 and hi
	// if there is none.
	next(p, hi int64) (at, after int64)
	// separator returns the byte range of the separator for the event at a position.
	separator(at int64) span
}

// scanner returns the scanner of s for t, which reads bytes from data.
func (s Splitter) scanner(ctx context.Context, t *Text, data []byte) scanner {
	switch s.kind {
	case splitLines:
		return lineScanner(data)
	case splitNewlines:
		return newlineScanner(data)
	case splitFields:
		return fieldScanner(data)
	default:
		find := newSearch(t, []byte(s.sep))
		find.data = data
		return sepScanner{find, ctx}
	}
}

// sepScanner's events are the first bytes of the separators. Blocks are short, so the context
// matters only for a very long separator.
type sepScanner struct {
	s   *search
	ctx context.Context
}

func (s sepScanner) next(p, hi int64) (at, after int64) {
	at, err := s.s.next(s.ctx, p, hi)
	if err != nil || at < 0 {
		return -1, hi
	}
	return at, at + int64(len(s.s.needle))
}

func (s sepScanner) separator(at int64) span { return span{at, at + int64(len(s.s.needle))} }

// lineScanner's events are the first bytes of the line ends of str.splitlines.
type lineScanner []byte

func (d lineScanner) next(p, hi int64) (at, after int64) {
	for p < hi {
		// Eight bytes from 0x20 to 0x7F contain no event: none borrows or has its high bit set.
		for ; p+8 <= hi; p += 8 {
			x := binary.LittleEndian.Uint64(d[p:])
			if (x|(x-0x20*lowBits))&highBits != 0 {
				break
			}
		}

		for end := min(p+8, hi); p < end; p++ {
			if mayEndLine[d[p]] {
				if w := d.width(p); w > 0 {
					return p, p + w
				}
			}
		}
	}

	return -1, hi
}

// mayEndLine contains the first bytes of all line ends.
var mayEndLine = [256]bool{
	'\n': true, '\v': true, '\f': true, '\r': true, 0x1c: true, 0x1d: true, 0x1e: true, 0xc2: true,
	0xe2: true,
}

// width returns the length in bytes of the line end at p, or 0.
func (d lineScanner) width(p int64) int64 {
	switch c := d[p]; {
	case c == '\r':
		return 1 + b2i(d.has(p+1, "\n"))
	case c == '\n':
		return 1 - b2i(p > 0 && d[p-1] == '\r')
	case c >= '\n' && c <= '\f', c >= 0x1c && c <= 0x1e:
		return 1
	case c == 0xc2:
		return 2 * b2i(d.has(p+1, "\x85"))
	case c == 0xe2:
		return 3 * b2i(d.has(p+1, "\x80\xa8") || d.has(p+1, "\x80\xa9"))
	}
	return 0
}

func (d lineScanner) has(p int64, s string) bool {
	return p+int64(len(s)) <= int64(len(d)) && string(d[p:p+int64(len(s))]) == s
}

func (d lineScanner) separator(at int64) span { return span{at, at + max(1, d.width(at))} }

func b2i(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// newlineScanner's events are the \n bytes.
type newlineScanner []byte

func (d newlineScanner) next(p, hi int64) (at, after int64) {
	if p < hi {
		if at = indexByte(d[p:hi], '\n'); at >= 0 {
			return p + at, p + at + 1
		}
	}
	return -1, hi
}

func (d newlineScanner) separator(at int64) span {
	return span{at - b2i(at > 0 && d[at-1] == '\r'), at + 1}
}

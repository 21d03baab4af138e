package bigtext

import "context"

// EachPart calls yield with each part of data by the splitter, and with the offset of the next
// part, or -1 for the last one, until yield returns false or the context ends. The parts share
// data's memory: if that is in a mapping, call EachPart within [Guard]. The separator of [Sep] must
// be valid UTF-8: otherwise it could match within a character.
func (s Splitter) EachPart(ctx context.Context, data []byte, yield func(part []byte, next int64) bool) {
	switch s.kind {
	case splitFields:
		eachField(data, yield)
	case splitSep:
		eachSeparated(ctx, data, newNeedle([]byte(s.sep)), yield)
	case splitLines:
		eachLine(data, lineScanner(data), yield)
	case splitNewlines:
		eachLine(data, newlineScanner(data), yield)
	}
}

func eachField(data []byte, yield func(part []byte, next int64) bool) {
	fields, hi := fieldScanner(data), int64(len(data))
	for at := fields.skipSpace(0, hi); at < hi; {
		end := fields.space(at, hi)
		next := fields.skipSpace(end, hi)
		part := data[at:end]
		if at = next; next == hi {
			next = -1
		}
		if !yield(part, next) {
			return
		}
	}
}

// skipSpace returns the position of the first character at or after p that is not whitespace, or
// hi.
func (d fieldScanner) skipSpace(p, hi int64) int64 {
	for p < hi {
		w := spaceWidth(d, p)
		if w == 0 {
			return p
		}
		p += w
	}
	return hi
}

func eachSeparated(
	ctx context.Context, data []byte, sep *needle, yield func(part []byte, next int64) bool,
) {
	for at := 0; ; {
		i, err := sep.index(ctx, data[at:])
		if err != nil {
			return
		}
		if i < 0 {
			yield(data[at:], -1)
			return
		}
		part := data[at : at+i]
		at += i + len(sep.text)
		if !yield(part, int64(at)) {
			return
		}
	}
}

func eachLine(data []byte, lines scanner, yield func(part []byte, next int64) bool) {
	hi := int64(len(data))
	for at := int64(0); at < hi; {
		end, next := hi, hi
		if found, _ := lines.next(at, hi); found >= 0 {
			sep := lines.separator(found)
			end, next = max(at, sep.lo), sep.hi
		}
		part := data[at:end]
		if at = next; next == hi {
			next = -1 // no empty line at the end
		}
		if !yield(part, next) {
			return
		}
	}
}

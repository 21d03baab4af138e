package dbfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// These are the kinds of b-tree pages: https://sqlite.org/fileformat2.html#b_tree_pages.
const (
	indexInner = 2
	tableInner = 5
	indexLeaf  = 10
	tableLeaf  = 13

	leafHead  = 8 // bytes
	innerHead = 12
)

// These bounds apply to the data read from a damaged database.
const (
	maxRow     = 128 << 20 // bytes
	maxColumns = 100
)

// cell is an entry of a page: a row or an index entry.
type cell struct {
	rowid  int64 // the row's rowid
	values []any // nil, int64, float64, string or []byte
	// isCut means that only the first values are available: the page with the rest is damaged.
	isCut bool
}

var errCell = errors.New("an entry of the page is out of bounds")

// treeHead returns the kind of a page, and the offset of its header. On the first page, the header
// of the database comes before it.
func treeHead(page []byte, n int64) (kind byte, at int) {
	if n == 1 {
		at = headerSize
	}
	return page[at], at
}

// cellPlaces returns the offsets of the cells of a page.
func cellPlaces(page []byte, at, headSize int) ([]int, error) {
	count := int(binary.BigEndian.Uint16(page[at+3:]))
	if at+headSize+2*count > len(page) {
		return nil, errCell
	}
	places := make([]int, count)
	for i := range places {
		places[i] = int(binary.BigEndian.Uint16(page[at+headSize+2*i:]))
		if places[i] < at+headSize || places[i] >= len(page)-3 {
			return nil, errCell
		}
	}
	return places, nil
}

// cells calls take with the entries of a leaf, or of an interior page of an index.
func (p *pages) cells(page []byte, n int64, take func(cell)) error {
	kind, at := treeHead(page, n)
	headSize := leafHead
	if kind == indexInner {
		headSize = innerHead
	}

	places, err := cellPlaces(page, at, headSize)
	if err != nil {
		return err
	}

	for _, place := range places {
		if kind == indexInner {
			place += 4 // the page number of the left child
		}
		c, err := p.cell(page, place, kind == tableLeaf)
		if err != nil {
			return err
		}
		take(c)
	}
	return nil
}

// cell decodes an entry.
func (p *pages) cell(page []byte, at int, isRow bool) (c cell, err error) {
	size, at, err := varint(page, at)
	if err == nil && isRow {
		c.rowid, at, err = varint(page, at)
	}
	if err != nil || size < 1 || size > maxRow {
		return c, errors.Join(errCell, err)
	}

	local := p.local(size, isRow)
	if at+local > p.usableSize() {
		return c, errCell
	}
	payload := page[at : at+local : at+local]
	if int64(local) < size {
		if at+local+4 > p.usableSize() {
			return c, errCell
		}
		rest, err := p.overflow(int64(binary.BigEndian.Uint32(page[at+local:])), size-int64(local))
		c.isCut = err != nil
		payload = append(payload, rest...)
	}

	c.values, err = decodeRecord(payload, c.isCut)
	return c, err
}

// local returns the number of bytes of an entry that are in the page itself.
func (p *pages) local(size int64, isRow bool) int {
	u := int64(p.usableSize())
	most, least := (u-12)*64/255-23, (u-12)*32/255-23
	if isRow {
		most = u - 35
	}

	if size <= most {
		return int(size)
	}
	if n := least + (size-least)%(u-4); n <= most {
		return int(n)
	}
	return int(least)
}

// overflow reads the rest of an entry, which is stored in a list of pages.
func (p *pages) overflow(n, size int64) (rest []byte, err error) {
	for size > 0 {
		if p.chained[n] {
			return rest, fmt.Errorf("%w: page %d belongs to two entries", errCell, n)
		}
		p.used[n], p.chained[n] = true, true
		page, err := p.page(n)
		if err != nil {
			return rest, err
		}
		part := page[4:p.usableSize()]
		part = part[:min(int64(len(part)), size)]
		rest = append(rest, part...)
		size -= int64(len(part))
		n = int64(binary.BigEndian.Uint32(page))
	}
	return rest, nil
}

// varint decodes a number of one to nine bytes, and returns the offset of the next byte.
func varint(data []byte, at int) (n int64, next int, err error) {
	var u uint64
	for i := range 9 {
		if at+i >= len(data) || at < 0 {
			return 0, at, errCell
		}
		b := data[at+i]
		if i == 8 {
			return int64(u<<8 | uint64(b)), at + 9, nil //nolint:gosec // the bits are those of a signed number
		}
		u = u<<7 | uint64(b&0x7f)
		if b < 0x80 {
			return int64(u), at + i + 1, nil //nolint:gosec // it has 56 bits at most
		}
	}
	return 0, at, errCell
}

// decodeRecord decodes the values of an entry. If the entry is cut, it returns the values that are
// complete.
func decodeRecord(data []byte, isCut bool) (values []any, err error) {
	headSize, at, err := varint(data, 0)
	if err != nil || headSize < int64(at) || headSize > int64(len(data)) {
		return nil, errors.Join(errCell, err)
	}
	head, body := data[:headSize], data[headSize:]
	for at < len(head) {
		var kind int64
		if kind, at, err = varint(head, at); err != nil || len(values) == maxColumns {
			return nil, errors.Join(errCell, err)
		}
		size := sizeOf(kind)
		if size < 0 || size > int64(len(body)) {
			if isCut {
				return values, nil
			}
			return nil, errCell
		}
		values = append(values, decodeValue(kind, body[:size]))
		body = body[size:]
	}

	if len(body) > 0 {
		return nil, fmt.Errorf("%w: %d bytes are left", errCell, len(body))
	}
	return values, nil
}

// sizeOf returns the size of a value of a kind, in bytes, or -1 for an unknown kind.
func sizeOf(kind int64) int64 {
	switch {
	case kind < 0 || kind == 10 || kind == 11:
		return -1
	case kind >= 12:
		return (kind - 12) / 2
	}
	return []int64{0, 1, 2, 3, 4, 6, 8, 8, 0, 0}[kind]
}

func decodeValue(kind int64, data []byte) any {
	switch {
	case kind == 0:
		return nil
	case kind == 7:
		return math.Float64frombits(binary.BigEndian.Uint64(data))
	case kind == 8 || kind == 9:
		return kind - 8
	case kind >= 12 && kind%2 == 0:
		return append([]byte{}, data...)
	case kind >= 13:
		return string(data)
	}

	n := int64(int8(data[0])) //nolint:gosec // it is signed
	for _, b := range data[1:] {
		n = n<<8 | int64(b)
	}
	return n
}

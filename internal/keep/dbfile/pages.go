package dbfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"os"
)

// The header of a database is at the start of its first page.
const (
	magic      = "SQLite format 3\x00"
	headerSize = 100
	sizeAt     = 16 // position of the page size
	reservedAt = 20 // bytes at the end of each page, unused by SQLite
	countAt    = 28 // position of the number of pages
)

// maxPages bounds the pages of a database to check: 16 TiB.
const maxPages = 1 << 32

// pages reads the pages of a database and its log, as of the last readable transaction.
type pages struct {
	file    *os.File
	log     *os.File
	hasSums bool
	// inFile is the number of whole pages in the file, and count the number of pages in the
	// database.
	inFile, count int64
	logged        map[int64]int64 // offsets of pages in the log; see [writeLog.places]
	// isAllKnown means that the log has no change of an unknown page.
	isAllKnown bool
	// used contains the pages referred to by anything that could be read, and chained the pages of
	// long entries.
	used, chained map[int64]bool
}

// openPages opens the pages of a database. Missing files are treated as empty.
func openPages(path string) (p *pages, log *writeLog, err error) {
	p = &pages{used: map[int64]bool{}, chained: map[int64]bool{}}
	defer func() {
		if err != nil {
			p.close()
		}
	}()
	if p.file, err = openIfThere(path); err != nil {
		return nil, nil, err
	}

	if p.log, err = openIfThere(path + logSuffix); err != nil {
		return nil, nil, err
	}
	if p.file != nil {
		info, err := p.file.Stat()
		if err != nil {
			return nil, nil, err
		}
		p.inFile = min(info.Size()/pageSize, maxPages)
		if info.Size()%pageSize != 0 { // a partial page is treated as damaged
			p.inFile++
		}
	}

	if log, err = readLog(p.log, path+indexSuffix); err != nil {
		return nil, nil, err
	}
	p.logged, p.count, p.isAllKnown = log.places()
	p.measure()
	return p, log, nil
}

// measure determines the number of pages, and whether they have checksums.
func (p *pages) measure() {
	p.hasSums = p.looksSummed()
	if p.count > 0 {
		return
	}
	p.count = p.inFile
	if head, ok := p.head(); ok && binary.BigEndian.Uint32(head[24:]) == binary.BigEndian.Uint32(head[92:]) {
		p.count = int64(binary.BigEndian.Uint32(head[countAt:]))
	}

	if !p.hasSums { // the number cannot be determined
		p.count = min(p.count, p.inFile+maxCut)
	}
}

// maxCut bounds the number of pages to read after the end of a database without checksums.
const maxCut = 1 << 20

// looksSummed decides from a few pages whether pages have checksums: the first page, which records
// this, may be damaged.
func (p *pages) looksSummed() bool {
	page, err := p.raw(1)
	if err == nil && bytes.HasPrefix(page, []byte(magic)) && page[reservedAt] == sumSize {
		return true
	}
	page = make([]byte, pageSize)
	for n := int64(1); n <= min(p.inFile, 1_000); n++ {
		_, err := p.file.ReadAt(page, (n-1)*pageSize)
		if err == nil && sumOf(page) != 0 && hasSum(page, n) {
			return true
		}
	}
	return false
}

// head returns the header in the first page, if that page is intact.
func (p *pages) head() ([]byte, bool) {
	page, err := p.page(1)
	if err != nil || !bytes.HasPrefix(page, []byte(magic)) {
		return nil, false
	}
	return page[:headerSize], true
}

func openIfThere(path string) (*os.File, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // documented: no header
	}
	return file, err
}

func (p *pages) close() {
	for _, f := range []*os.File{p.file, p.log} {
		if f != nil {
			_ = f.Close() // only read from
		}
	}
}

// errNoPage reports a missing page.
var errNoPage = errors.New("the page is missing")

// errSum reports a page that differs from what was written.
var errSum = errors.New("the checksum of the page does not match")

// errFrame reports that the last change of a page was in a broken frame of the log.
var errFrame = errors.New("the log has a broken frame in place of the page")

// raw returns a page without checking its checksum.
func (p *pages) raw(n int64) ([]byte, error) {
	page := make([]byte, pageSize)
	from, at := p.file, (n-1)*pageSize
	if place, is := p.logged[n]; is {
		if place == lostFrame {
			return nil, errFrame
		}
		from, at = p.log, place
	}

	if from == nil || n < 1 || from == p.file && n > p.inFile {
		return nil, errNoPage
	}
	if _, err := from.ReadAt(page, at); err != nil {
		if errors.Is(err, io.EOF) {
			err = errNoPage
		}
		return nil, err
	}
	return page, nil
}

// page returns an intact page.
func (p *pages) page(n int64) ([]byte, error) {
	page, err := p.raw(n)
	if err != nil {
		return nil, err
	}
	if _, inLog := p.logged[n]; !inLog && p.hasSums && !hasSum(page, n) { // a frame has its own checksum
		return nil, errSum
	}
	return page, nil
}

// old returns a page as stored in the file, regardless of the log, and whether it is intact.
func (p *pages) old(n int64) ([]byte, bool) {
	page := make([]byte, pageSize)
	if p.file == nil || n < 1 || n > p.inFile {
		return nil, false
	}
	_, err := p.file.ReadAt(page, (n-1)*pageSize)
	return page, err == nil && (!p.hasSums || hasSum(page, n))
}

// usableSize returns the size of a page's content, in bytes.
func (p *pages) usableSize() int {
	if p.hasSums {
		return usable
	}
	return pageSize
}

// hasSum reports whether a page of the file matches its checksum.
func hasSum(page []byte, n int64) bool {
	var sum [pageSize]byte
	copy(sum[usable:], page[usable:])
	number(sum[:], n)
	return binary.LittleEndian.Uint64(sum[usable:]) == sumOf(page)
}

// sumOf computes the checksum of a page's content as SQLite does.
func sumOf(page []byte) uint64 {
	var a, b uint32
	for content := page[:usable]; len(content) >= 8; content = content[8:] {
		a += binary.LittleEndian.Uint32(content) + b
		b += binary.LittleEndian.Uint32(content[4:]) + a
	}
	return uint64(b)<<32 | uint64(a)
}

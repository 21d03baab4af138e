package dbfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// The format of a write-ahead log is described at https://sqlite.org/fileformat2.html#walformat.
const (
	logHeader   = 32
	logMagic    = 0x377f0682 // the last bit is the byte order of checksums
	frameHeader = 24
	frameSize   = frameHeader + pageSize
	maxFrames   = 1 << 24 // 64 GiB
)

// frame is a page in the log.
type frame struct {
	place int64 // the position of the page's content in the log
	page  int64
	count int64 // pages in the database, in the last frame of a transaction; 0 in the others
	// isBroken means that the content differs from what was written. isOurs means that, by its
	// header, the frame belongs to this log.
	isBroken, isOurs bool
}

// writeLog is the readable content of a write-ahead log.
type writeLog struct {
	index  logIndex
	frames []frame
	// taken is the number of frames that SQLite would accept: those before the first broken frame,
	// up to the end of a transaction.
	taken int
	// last is the number of frames written, up to the end of the last transaction.
	last int
}

// readLog reads a log and its index. The file is nil if there is no log.
func readLog(file *os.File, indexPath string) (l *writeLog, err error) {
	l = &writeLog{}
	if l.index, err = readIndex(indexPath); err != nil || file == nil {
		l.last = l.index.frames
		return l, err
	}

	head := make([]byte, logHeader)
	if _, err := io.ReadFull(file, head); isEnd(err) {
		l.last = l.index.frames
		return l, nil
	} else if err != nil {
		return nil, err
	}

	isHead := isLogHead(head)
	salt := head[16:24]
	if isHead && !bytes.Equal(salt, l.index.salt) {
		l.index = logIndex{} // belongs to another log: the power failed
	}

	if l.index.frames > 0 {
		salt = l.index.salt
	}
	if err := l.readFrames(file, head, salt, isHead); err != nil {
		return nil, err
	}

	l.findLast()
	return l, nil
}

// isLogHead reports whether a log starts with a valid header.
func isLogHead(head []byte) bool {
	s := newSum(head)
	s.add(head[:24])
	return binary.BigEndian.Uint32(head)&^1 == logMagic && binary.BigEndian.Uint32(head[8:]) == pageSize &&
		s.is(head[24:])
}

func isEnd(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// sum is the running checksum of a log.
type sum struct {
	a, b  uint32
	order binary.ByteOrder
}

func newSum(head []byte) sum {
	if binary.BigEndian.Uint32(head) == logMagic|1 {
		return sum{order: binary.BigEndian}
	}
	return sum{order: binary.LittleEndian}
}

func (s *sum) add(data []byte) {
	for ; len(data) >= 8; data = data[8:] {
		s.a += s.order.Uint32(data) + s.b
		s.b += s.order.Uint32(data[4:]) + s.a
	}
}

// addFrame adds a frame without its salt and checksum.
func (s *sum) addFrame(data []byte) {
	s.add(data[:8])
	s.add(data[frameHeader:])
}

func (s *sum) is(stored []byte) bool {
	return s.a == binary.BigEndian.Uint32(stored) && s.b == binary.BigEndian.Uint32(stored[4:])
}

// from returns the checksum stored in a frame or header.
func (s *sum) from(stored []byte) sum {
	return sum{binary.BigEndian.Uint32(stored), binary.BigEndian.Uint32(stored[4:]), s.order}
}

// readFrames reads the frames of a log. It checks the frame after a broken one with the checksum
// that the broken frame has, or should have, so that one broken frame does not end the search.
func (l *writeLog) readFrames(file io.Reader, head, salt []byte, isHead bool) error {
	computed := newSum(head)
	computed.add(head[:24])
	before := []sum{computed, computed.from(head[24:])}
	isWhole := isHead // so far
	known := 0        // frames that certainly belong to this log
	data := make([]byte, frameSize)

	for place := int64(logHeader); len(l.frames) < maxFrames; place += frameSize {
		n, err := io.ReadFull(file, data)
		if err != nil && !isEnd(err) {
			return err
		}
		isOurs := n >= frameHeader && bytes.Equal(data[8:16], salt)
		if err != nil { // the end of the log, or a part of a frame
			if isOurs {
				l.frames = append(l.frames, newFrame(place, data, true, true))
				known = len(l.frames)
			}
			break
		}

		after, from := checkFrame(data, before)
		if from > 0 && !isOurs {
			from = -1 // a frame of an older log after another such frame
		}
		isWhole = isWhole && isOurs && from == 0
		if from < 0 && isOurs {
			after, from = repairHead(data, before)
		}
		l.frames = append(l.frames, newFrame(place, data, isOurs, from < 0))
		if from >= 0 || isOurs {
			known = len(l.frames)
		}

		if from == 0 && len(before) > 1 && known > 1 { // only the checksum of the previous frame is broken
			l.frames[known-2].isBroken = false
		}
		if from >= 0 {
			before = []sum{after}
		} else {
			wrong := before[0]
			wrong.addFrame(data)
			before = []sum{wrong, wrong.from(data[16:24])}
		}
		if isWhole && binary.BigEndian.Uint32(data[4:]) > 0 {
			l.taken = len(l.frames)
		}
	}

	l.frames = l.frames[:known] // the rest belongs to an older log
	return nil
}

func newFrame(place int64, data []byte, isOurs, isBroken bool) frame {
	return frame{
		place: place + frameHeader, isOurs: isOurs, isBroken: isBroken,
		page: int64(binary.BigEndian.Uint32(data)), count: int64(binary.BigEndian.Uint32(data[4:])),
	}
}

// checkFrame finds the previous checksum in before with which a frame's own checksum is correct. It
// returns the checksum after the frame and the index in the list, or -1 if none fits.
func checkFrame(data []byte, before []sum) (after sum, from int) {
	for i, s := range before {
		if s.addFrame(data); s.is(data[16:24]) {
			return s, i
		}
	}
	return sum{}, -1
}

// repairHead finds the changed byte in the header of a frame, and restores it. It returns the
// results of checkFrame.
func repairHead(data []byte, before []sum) (after sum, from int) {
	for at := range 8 {
		was := data[at]
		for change := 1; change < 256; change++ {
			data[at] = was ^ byte(change)
			if after, from = checkFrame(data, before); from >= 0 {
				return after, from
			}
		}
		data[at] = was
	}
	return sum{}, -1
}

// findLast finds the end of the last transaction, which the index records. Without an index, the
// machine may have been writing a broken frame when its power failed, unless another transaction
// started after the frame.
func (l *writeLog) findLast() {
	l.last = max(l.taken, l.index.frames)
	if l.index.frames > 0 {
		return
	}
	ends := 0
	for i := l.taken; i < len(l.frames); i++ {
		if f := l.frames[i]; !f.isBroken && f.count > 0 {
			if ends++; ends > 1 {
				l.last = i + 1
			}
		}
	}
}

// isDamaged reports whether SQLite would miss committed changes.
func (l *writeLog) isDamaged() bool {
	isGone := len(l.frames) == 0 && l.taken == 0
	if isGone && l.index.copied >= l.index.frames {
		return false // the database has every frame
	}
	return l.taken < l.last
}

// lost returns the number of committed frames that are unreadable and not in the database either.
func (l *writeLog) lost() (n int) {
	for i := l.index.copied; i < l.last; i++ {
		if i >= len(l.frames) || l.frames[i].isBroken {
			n++
		}
	}
	return n
}

// lostFrame is the offset of a page whose last change was in an unreadable frame.
const lostFrame = -1

// places returns the offsets of the pages in the log, and the resulting number of pages in the
// database, or 0 if the log does not record it. The result all reports whether every changed page
// is known.
func (l *writeLog) places() (places map[int64]int64, count int64, all bool) {
	places, all = map[int64]int64{}, true
	for i := range l.last {
		f := frame{isBroken: true}
		if i < len(l.frames) {
			f = l.frames[i]
		}
		if f.isBroken && i < len(l.index.pages) {
			f.page, f.isOurs = l.index.pages[i], true
		}
		if f.count > 0 && !f.isBroken {
			count = f.count
		}
		switch {
		case f.isBroken && i < l.index.copied:
			delete(places, f.page) // already in the database
		case f.isBroken && (f.page == 0 || !f.isOurs): // could be any page
			all = false
		case f.isBroken:
			places[f.page] = lostFrame
		default:
			places[f.page] = f.place
		}
	}
	return places, max(count, l.index.count), all
}

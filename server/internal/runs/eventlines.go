package runs

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"

	"github.com/rlmhq/rlm/repl/ledger"
)

// The file of a run's events has one line per event, which contains a checksum of the event and its
// number. The first line contains the number of events, so that a missing end is noticed. In a log
// of an earlier version, each line is only an event.
const (
	headFormat = `{"rlm_events":1,"count":"%012d","sum":"%08x"}` + "\n"
	lineFormat = `{"sum":"%08x","event":%s}` + "\n"
	lineBegin  = `{"sum":"`
	lineMiddle = `","event":`
	lineEnd    = "}\n"
	sumLength  = 8
	headLength = len(`{"rlm_events":1,"count":"000000000000","sum":"00000000"}` + "\n")
	maxLine    = 256 << 20 // bytes
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumOfEvent returns the checksum of an event and its number.
func sumOfEvent(n int64, event []byte) uint32 {
	return addNumber(crc32.Checksum(event, castagnoli), n)
}

func addNumber(sum uint32, n int64) uint32 {
	return crc32.Update(sum, castagnoli, strconv.AppendInt(make([]byte, 0, 20), n, 10))
}

func encodeHead(count int64) []byte {
	return fmt.Appendf(nil, headFormat, count, sumOfEvent(count, nil))
}

// decodeHead decodes the number of events from the first line.
func decodeHead(line []byte) (count int64, ok bool) {
	if len(line) != headLength {
		return 0, false
	}
	at := bytes.Index(line, []byte(`"count":"`)) + len(`"count":"`)
	count, err := strconv.ParseInt(string(line[at:at+12]), 10, 64)
	return count, err == nil && count >= 0 && bytes.Equal(line, encodeHead(count))
}

func encodeLine(n int64, event []byte) []byte {
	return fmt.Appendf(nil, lineFormat, sumOfEvent(n, event), event)
}

// decodeLine returns the event and the checksum in a line.
func decodeLine(line []byte) (event []byte, sum uint32, ok bool) {
	begin := len(lineBegin) + sumLength + len(lineMiddle)
	if len(line) < begin+len(lineEnd) || !bytes.HasPrefix(line, []byte(lineBegin)) ||
		string(line[len(lineBegin)+sumLength:begin]) != lineMiddle || !bytes.HasSuffix(line, []byte(lineEnd)) {
		return nil, 0, false
	}
	n, err := strconv.ParseUint(string(line[len(lineBegin):len(lineBegin)+sumLength]), 16, 32)
	return line[begin : len(line)-len(lineEnd)], uint32(n), err == nil
}

// eventScan is the state of a search for events in the lines of a log.
type eventScan struct {
	last    int64 // number of the last event that was found
	isBegun bool
	isOld   bool  // without checksums
	isHead  bool  // the first line is intact
	count   int64 // number of events in the first line
}

// maxGap bounds the search for events after damaged ones.
const maxGap = 100_000

// take processes a line, and calls emit with its event and number. Damaged events before it are
// reported as one event.
func (s *eventScan) take(line []byte, emit func(n int64, event []byte) error) error {
	if !s.isBegun {
		s.isBegun = true
		if s.count, s.isHead = decodeHead(line); s.isHead {
			return nil
		}
		s.isOld = isOldEvent(line)
	}

	if s.isOld {
		s.last++
		if event := bytes.TrimSuffix(line, []byte{'\n'}); json.Valid(event) {
			return emit(s.last, event)
		}
		return emit(s.last, damagedEvents(s.last, s.last))
	}

	event, sum, ok := decodeLine(line)
	plain := crc32.Checksum(event, castagnoli)
	for n := s.last + 1; ok && n <= s.last+maxGap; n++ {
		if addNumber(plain, n) != sum {
			continue
		}
		if err := s.skipTo(n-1, emit); err != nil {
			return err
		}
		s.last = n
		return emit(n, event)
	}
	return nil // a damaged line, whose number will be missing
}

// isOldEvent reports whether a line is an event of an earlier version.
func isOldEvent(line []byte) bool {
	var e struct {
		Kind ledger.EventKind `json:"kind"`
		Sum  string           `json:"sum"`
	}
	return json.Unmarshal(line, &e) == nil && e.Kind != "" && e.Sum == ""
}

// skipTo reports the missing events up to n as damaged.
func (s *eventScan) skipTo(n int64, emit func(n int64, event []byte) error) error {
	if n <= s.last {
		return nil
	}
	first := s.last + 1
	s.last = n
	return emit(n, damagedEvents(first, n))
}

// finish reports missing events after the last line as damaged. Count is the number of events, if
// the caller knows it.
func (s *eventScan) finish(count int64, emit func(n int64, event []byte) error) error {
	switch {
	case count >= 0:
		return s.skipTo(count, emit)
	case s.isHead:
		return s.skipTo(s.count, emit)
	case s.isOld:
		return nil
	}

	s.last++
	return emit(s.last, newWarning(fmt.Sprintf("The log of this run's events is damaged on the server's disk. "+
		"Events behind event %d may be missing.", s.last-1)))
}

// damagedEvents returns an event that replaces a range of damaged events.
func damagedEvents(first, last int64) []byte {
	if first == last {
		return newWarning(fmt.Sprintf("Event %d of this run is damaged on the server's disk.", first))
	}
	return newWarning(fmt.Sprintf("Events %d to %d of this run are damaged on the server's disk.", first, last))
}

// IsDamaged reports whether an event replaces damaged events: see [Event].
func IsDamaged(event []byte) bool { return bytes.HasSuffix(event, []byte(`,"damaged":true}`)) }

func newWarning(text string) []byte {
	event, err := json.Marshal(Event{
		Event: ledger.Event{Kind: ledger.EventWarning, Node: "0", Text: text}, Damaged: true,
	})
	if err != nil {
		return []byte("{}") // cannot happen: strings can always be encoded
	}
	return event
}

// readLine reads a line with its line end, or an incomplete last line. If the line is too long, it
// returns the first bytes.
func readLine(r *bufio.Reader) (line []byte, size int64, err error) {
	for {
		part, err := r.ReadSlice('\n')
		size += int64(len(part))
		if len(line) < maxLine {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, size, err
		}
	}
}

// scanEvents calls emit with all events of a log, and returns its findings.
func scanEvents(r io.Reader, emit func(n int64, event []byte) error) (s eventScan, size int64, err error) {
	s.count = -1
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, n, err := readLine(lines)
		if errors.Is(err, io.EOF) { // an incomplete line is ignored
			return s, size, nil
		}
		if err != nil {
			return s, size, err
		}
		size += n
		if err := s.take(line, emit); err != nil {
			return s, size, err
		}
	}
}

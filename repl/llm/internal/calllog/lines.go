package calllog

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds one line of a call log, in bytes.
const maxLine = 64 << 20

// readLines checks the header of a call log and passes on each finished line after it. It
// returns the number of bytes in the finished lines.
func readLines(r io.Reader, each func(line []byte) error) (whole int64, err error) {
	lines := bufio.NewReaderSize(r, 64<<10)
	for number := 1; ; number++ {
		line, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			return whole, nil
		}

		if err == nil && number == 1 {
			err = checkHeader(line)
		} else if err == nil {
			err = each(line)
		}

		if err != nil {
			return whole, fmt.Errorf("line %d: %w", number, err)
		}
		whole += int64(len(line)) + 1
	}
}

// readLine returns the next finished line without its line end. At an unfinished line it returns
// io.EOF.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, fmt.Errorf("the line has more than %d bytes", maxLine)
		case err == nil:
			return line[:len(line)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// checkHeader checks the first line of a call log.
func checkHeader(line []byte) error {
	var h header
	if err := decodeStrictly(line, &h); err != nil {
		return fmt.Errorf("not a record of model calls: %w", err)
	}
	if h != currentHeader {
		return fmt.Errorf(
			"unsupported record of format %q, version %d: this program reads %q, version %d",
			h.Format,
			h.Version,
			currentHeader.Format,
			currentHeader.Version,
		)
	}
	return nil
}

// decodeStrictly decodes one JSON value and rejects unknown fields.
func decodeStrictly(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the line has more than one value")
	}
	return nil
}

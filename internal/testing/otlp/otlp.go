// Package otlp reads the requests of OpenTelemetry's exporters, for tests of these exporters. It
// reads OTLP over HTTP, with the few fields of a span that tests check.
package otlp

import (
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
)

// Request is one request of an exporter.
type Request struct {
	Resource map[string]string // its attributes
	Spans    []*Span
	Raw      string // the bytes of the message
}

// Span is a span as the exporter sent it.
type Span struct {
	TraceID, ID, ParentID string // bytes; a root has no ParentID
	Name                  string
	Kind                  int    // 3 is a client; see OpenTelemetry's trace.proto
	Start, End            uint64 // nanoseconds since 1970
	Attributes            map[string]string
	Events                []string // names
	Failed                bool
	Message               string // of the status
	Size                  int    // bytes
}

// KindClient is the kind of a span that waits for another service.
const KindClient = 3

// failed is the code of a status.
const failed = 2

var errDamaged = errors.New("the message is not valid protobuf")

// Read reads a request, which may be compressed by gzip.
func Read(r *http.Request) (*Request, error) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(r.Body); err != nil {
			return nil, err
		}
	}

	data, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}

	request := &Request{Resource: map[string]string{}, Raw: string(data)}
	err = each(data, func(resources field) error {
		return each(resources.bytes, func(f field) error {
			switch f.number {
			case 1: // the resource
				return each(f.bytes, func(a field) error { return addAttribute(request.Resource, a) })
			case 2: // the spans of a scope
				return each(f.bytes, request.addSpan)
			}
			return nil
		})
	})
	return request, err
}

// addSpan adds a span if a field of a scope contains one.
func (r *Request) addSpan(f field) error {
	if f.number != 2 {
		return nil
	}

	s := &Span{Attributes: map[string]string{}, Size: len(f.bytes)}
	r.Spans = append(r.Spans, s)
	return each(f.bytes, s.set)
}

func (s *Span) set(f field) error {
	switch f.number {
	case 1:
		s.TraceID = string(f.bytes)
	case 2:
		s.ID = string(f.bytes)
	case 4:
		s.ParentID = string(f.bytes)
	case 5:
		s.Name = string(f.bytes)
	case 6:
		s.Kind = int(f.value) //nolint:gosec // a small number
	case 7:
		s.Start = f.value
	case 8:
		s.End = f.value
	case 9:
		return addAttribute(s.Attributes, f)
	case 11:
		return each(f.bytes, func(event field) error {
			if event.number == 2 {
				s.Events = append(s.Events, string(event.bytes))
			}
			return nil
		})
	case 15:
		return each(f.bytes, func(status field) error {
			if status.number == 2 {
				s.Message = string(status.bytes)
			}
			s.Failed = s.Failed || status.number == 3 && status.value == failed
			return nil
		})
	}
	return nil
}

// addAttribute adds a key and its value.
func addAttribute(to map[string]string, attribute field) error {
	key, value := "", ""
	err := each(attribute.bytes, func(f field) (err error) {
		switch f.number {
		case 1:
			key = string(f.bytes)
		case 2:
			value, err = readValue(f.bytes)
		}
		return err
	})

	to[key] = value
	return err
}

// readValue returns a value as a string. The values of a list are separated by commas.
func readValue(data []byte) (text string, err error) {
	err = each(data, func(f field) error {
		switch f.number {
		case 1:
			text = string(f.bytes)
		case 2:
			text = strconv.FormatBool(f.value != 0)
		case 3:
			text = strconv.FormatInt(int64(f.value), 10) //nolint:gosec // its sign is in the upper half
		case 4:
			text = strconv.FormatFloat(math.Float64frombits(f.value), 'g', -1, 64)
		case 5:
			var all []string
			err := each(f.bytes, func(item field) error {
				one, err := readValue(item.bytes)
				all = append(all, one)
				return err
			})

			text = strings.Join(all, ",")
			return err
		default:
			return fmt.Errorf("no test has attributes of type %d yet", f.number)
		}
		return nil
	})
	return text, err
}

// field is a field of a protobuf message: a number, or bytes.
type field struct {
	number int
	value  uint64
	bytes  []byte
}

// each passes the fields of a message to a function.
func each(data []byte, use func(field) error) error {
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		if n <= 0 || tag > math.MaxInt32 {
			return errDamaged
		}

		data = data[n:]
		f, size := field{number: int(tag >> 3)}, 0
		switch kind := tag & 7; kind {
		case 0:
			f.value, size = binary.Uvarint(data)
		case 1:
			if size = 8; len(data) >= size {
				f.value = binary.LittleEndian.Uint64(data)
			}
		case 2:
			length, n := binary.Uvarint(data)
			if n <= 0 || length > uint64(len(data)-n) {
				return errDamaged
			}

			size = n + int(length) //nolint:gosec // bounded by the data
			f.bytes = data[n:size]
		case 5:
			if size = 4; len(data) >= size {
				f.value = uint64(binary.LittleEndian.Uint32(data))
			}
		}
		if size <= 0 || size > len(data) {
			return errDamaged
		}

		data = data[size:]
		if err := use(f); err != nil {
			return err
		}
	}
	return nil
}

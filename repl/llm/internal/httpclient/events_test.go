package httpclient

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// read returns the events of a stream.
func read(body io.Reader) (events []string, err error) {
	err = ReadEvents(body, func(data string) error {
		events = append(events, data)
		return nil
	})
	return events, err
}

func TestEventsAreReadHoweverServersWriteThem(t *testing.T) {
	half := strings.Repeat("x", maxEvent/2)
	for name, c := range map[string]struct {
		stream string
		want   []string
		err    error
	}{
		"LF":                     {"data: a\n\ndata: b\n\n", []string{"a", "b"}, nil},
		"CRLF":                   {"data: a\r\n\r\ndata: b\r\n\r\n", []string{"a", "b"}, nil},
		"CR":                     {"data: a\r\rdata: b\r\r", []string{"a", "b"}, nil},
		"mixed ends":             {"data: a\r\n\rdata: b\n\r\ndata: c\r\n\n", []string{"a", "b", "c"}, nil},
		"a byte order mark":      {"\ufeffdata: a\n\n", []string{"a"}, nil},
		"a mark is data later":   {"data: a\n\n\ufeffdata: b\n\n", []string{"a"}, nil},
		"blank lines":            {"\n\n\ndata: a\n\n\n\r\n\ndata: b\n\n", []string{"a", "b"}, nil},
		"no space, two spaces":   {"data:a\n\ndata:  b\n\n", []string{"a", " b"}, nil},
		"several lines":          {"data: a\ndata\ndata: b\n\n", []string{"a\n\nb"}, nil},
		"an empty first line":    {"data:\ndata: b\n\n", []string{"\nb"}, nil},
		"other fields":           {"event: x\nid: 1\nretry: 5\n: note\nnew: 3\ndata: a\n\n", []string{"a"}, nil},
		"signs of life":          {": ping\n\nevent: ping\n\ndata:\n\ndata: a\n\n", []string{"a"}, nil},
		"no blank line at last":  {"data: a\n\ndata: b\n", []string{"a", "b"}, nil},
		"the end mark":           {"data: a\n\ndata: [DONE]\n\n", []string{"a", "[DONE]"}, nil},
		"the end mark, no end":   {"data: a\n\ndata: [DONE]", []string{"a", "[DONE]"}, nil},
		"cut in a line":          {"data: a\n\ndata: b", []string{"a"}, kind.ErrCut},
		"a whole value, no end":  {"data: a\n\ndata: {}", []string{"a", "{}"}, nil},
		"half a value, no end":   {"data: a\n\ndata: {\"b\":", []string{"a"}, kind.ErrCut},
		"no blank line between":  {"data: {\"a\":1}\ndata: {}\n", []string{`{"a":1}`, "{}"}, nil},
		"JSON without a name":    {": ping\n\n{\"a\":1}\n{}\n", []string{`{"a":1}`, "{}"}, nil},
		"cut in a name":          {"data: a\n\nda", []string{"a"}, kind.ErrCut},
		"nothing":                {"", nil, nil},
		"a long event":           {"data: " + strings.Repeat("x", maxEvent) + "\n\n", nil, kind.ErrMalformed},
		"a long event of lines":  {strings.Repeat("data: "+half[:1<<10]+"\n", 1<<10), nil, kind.ErrMalformed},
		"long, but in its bound": {"data: " + half + "\n\n", []string{half}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := read(strings.NewReader(c.stream))
			if !slices.Equal(got, c.want) || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
				t.Errorf("got %.100q, %v; want %.100q, %v", got, err, c.want, c.err)
			}
		})
	}
}

// TestAnEventIsGivenBeforeTheNextByte checks that an event is passed on immediately, whatever its
// line ends, because a server may pause after it.
func TestAnEventIsGivenBeforeTheNextByte(t *testing.T) {
	for _, event := range []string{"data: a\n\n", "data: a\r\r", "data: a\r\n\r\n"} {
		from, to := io.Pipe()
		given, ended := make(chan string), make(chan error, 1)
		go func() {
			ended <- ReadEvents(from, func(data string) error {
				given <- data
				return ErrDone
			})
		}()
		if _, err := io.WriteString(to, event); err != nil {
			t.Fatal(err)
		}
		if got := <-given; got != "a" {
			t.Errorf("%q: %q", event, got)
		}
		if err := <-ended; err != nil {
			t.Errorf("%q: %v", event, err)
		}
	}
}

func TestAReaderEndsAStream(t *testing.T) {
	wrong := errors.New("wrong")
	for give, want := range map[error]error{ErrDone: nil, wrong: wrong} {
		count := 0
		err := ReadEvents(strings.NewReader("data: a\n\ndata: b\n\n"), func(string) error { count++; return give })
		if !errors.Is(err, want) || count != 1 {
			t.Errorf("%v after %d events", err, count)
		}
	}
}

// FuzzReadEvents checks that a stream yields the same events if it arrives whole or byte by byte,
// and with each kind of line end.
func FuzzReadEvents(f *testing.F) {
	f.Add("\ufeffdata: a\r\n\r\nevent: x\rdata: b\rdata\r\rdata: [DONE]")
	f.Add("data: a\n\n: ping\n\n\n\ndata:  b\ndata: c\n\nda")
	f.Fuzz(func(t *testing.T, stream string) {
		want, wantErr := read(strings.NewReader(stream))
		unix := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(stream)
		for name, body := range map[string]io.Reader{
			"slow": iotest.OneByteReader(strings.NewReader(stream)),
			"LF":   strings.NewReader(unix),
			"CRLF": strings.NewReader(strings.ReplaceAll(unix, "\n", "\r\n")),
			"CR":   iotest.HalfReader(strings.NewReader(strings.ReplaceAll(unix, "\n", "\r"))),
		} {
			got, err := read(body)
			if !slices.Equal(got, want) || (err == nil) != (wantErr == nil) {
				t.Errorf("%s: %q, %v; want %q, %v", name, got, err, want, wantErr)
			}
		}
		for _, event := range want {
			if event == "" || len(event) > maxEvent {
				t.Errorf("an event has %d bytes", len(event))
			}
		}
	})
}

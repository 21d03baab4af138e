package chat

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/rlmhq/rlm/repl/internal/usage"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/httpclient"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// errUnfinished is the cause of an error about a stream that ended normally, but without marking
// the end of the reply.
var errUnfinished = errors.New("the stream ended without a finish reason")

// Read reads a reply, which may be one JSON value or a stream of events, whichever was requested.
// If give is not nil, it receives the text as it arrives. An empty piece means that the text starts
// again. The error of a broken stream carries an estimate of its usage.
func Read(body io.Reader, reader Reader, r llm.Request, give func(string)) error {
	if give == nil {
		give = func(string) {}
	}
	in := bufio.NewReader(body)
	isStream, err := skipToReply(in)
	if err != nil {
		return err
	}

	if isStream {
		ender, _ := body.(httpclient.Ender)
		s := stream{reader: reader, give: give, ender: ender}
		err = s.read(in)
	} else {
		err = readValue(in, reader, give)
	}

	var failure *llm.Error
	if text := reader.Reply().Text; err != nil && text != "" && errors.As(err, &failure) {
		failure.Usage = usage.Or(llm.Usage{}, r, text)
	}
	return err
}

// streamBegins holds the possible beginnings of event streams, after comments.
var streamBegins = []string{"data", "event", "id:", "retry"}

// skipToReply skips blanks, comments and a byte order mark before a reply, with which servers keep
// a connection alive, and reports whether the reply is a stream.
func skipToReply(in *bufio.Reader) (isStream bool, err error) {
	for {
		c, _, err := in.ReadRune()
		switch {
		case errors.Is(err, io.EOF):
			return false, nil
		case err != nil:
			return false, err
		case strings.ContainsRune(" \t\r\n\ufeff", c):
			continue
		case c == ':':
			if _, err := in.ReadString('\n'); err != nil && !errors.Is(err, io.EOF) {
				return false, err
			}
			continue
		}
		if err := in.UnreadRune(); err != nil {
			return false, err
		}
		break
	}

	for _, begin := range streamBegins {
		if text, _ := in.Peek(len(begin)); string(text) == begin {
			return true, nil
		}
	}
	return false, nil
}

// readValue reads a reply that is a JSON value. Some servers stream one value per line.
func readValue(in io.Reader, reader Reader, give func(string)) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	if first, rest, _ := bytes.Cut(text, []byte("\n")); len(first) > 0 && first[0] == '{' &&
		bytes.HasPrefix(bytes.TrimSpace(rest), []byte("{")) && json.Valid(first) {
		s := stream{reader: reader, give: give}
		return s.read(bytes.NewReader(text))
	}

	if err := reader.ReadWhole(bytes.NewReader(text)); err != nil {
		return err
	}
	if text := reader.Reply().Text; text != "" {
		give(text)
	}
	return nil
}

// stream reads the events of a reply.
type stream struct {
	reader Reader
	give   func(string)
	ender  httpclient.Ender // may be nil

	given  string // the text that was passed on
	text   string // the text up to now
	isDone bool   // the server has marked the end of the stream
	isLate bool   // text came after the finish reason
}

// read reads all events. A stream must mark the end of the reply, by its last event or by a finish
// reason.
func (s *stream) read(in io.Reader) error {
	err := httpclient.ReadEvents(in, s.readEvent)
	reply := s.reader.Reply()
	isFinished := reply.Finish != ""
	switch {
	case err != nil && isFinished && !s.isLate && errors.Is(err, kind.ErrCut):
		// only data after the reply is missing
	case err != nil:
		return err
	case !isFinished && (!s.isDone || reply.Text+reply.Refusal == ""):
		return &llm.Error{Kind: kind.ErrCut, Err: errUnfinished}
	}

	if reply.Unclear {
		return &llm.Error{
			Kind:    kind.ErrMalformed,
			Message: "the pieces of the stream contradict each other, so that its text is unclear",
		}
	}
	s.pass(reply.Text)
	return nil
}

// pass passes on the new part of a text. If the text has another beginning, it starts again.
func (s *stream) pass(text string) {
	if rest, grows := strings.CutPrefix(text, s.given); !grows {
		s.give("")
		s.give(text)
	} else if rest != "" {
		s.give(rest)
	}
	s.given = text
}

// readEvent reads an event and passes on its text.
func (s *stream) readEvent(data string) error {
	if httpclient.IsLast(data) {
		s.isDone = true
		return httpclient.ErrDone
	}
	wasFinished := s.reader.Reply().Finish != ""
	err := s.reader.ReadEvent([]byte(data))
	s.isDone = errors.Is(err, httpclient.ErrDone)

	reply := s.reader.Reply()
	// A caller cannot take back pieces that it has passed on, so it receives only settled text.
	if len(reply.Settled) > len(s.given) {
		s.pass(reply.Settled)
	}
	s.isLate = s.isLate || wasFinished && reply.Text != s.text
	s.text = reply.Text

	if s.ender != nil {
		s.ender.SetEnded(reply.Finish != "" && !s.isLate)
	}
	return err
}

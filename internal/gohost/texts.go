package gohost

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/rlmhq/rlm/internal/bigtext"
	"github.com/rlmhq/rlm/internal/gorun"
	"github.com/rlmhq/rlm/tiers"
)

// ErrProtocol is what a guest gets that sent what it may not send.
var ErrProtocol = errors.New("the guest sent what it may not send")

// sentWhole is up to how many bytes a text is given to a guest as a string.
const sentWhole = 64 << 10

// Input describes an input to a guest. A directory has no form in Go: then the
// kind is empty.
func Input(ctx context.Context, in tiers.Input) (gorun.Input, error) {
	switch {
	case in.Value != nil:
		return gorun.Input{Kind: gorun.InputIsValue, Value: in.Value}, nil
	case in.Text == nil:
		return gorun.Input{}, nil
	}
	length, err := in.Text.Len(ctx)
	if err != nil {
		return gorun.Input{}, err
	}
	invalid, err := in.Text.Invalid(ctx)
	if err != nil {
		return gorun.Input{}, err
	}
	if in.Text.Bytes() > sentWhole || invalid > 0 {
		return gorun.Input{Kind: gorun.InputIsLazy, Length: length}, nil
	}
	data, err := slice(ctx, in.Text, 0, length)
	return gorun.Input{Kind: gorun.InputIsText, Text: string(data)}, err
}

// mostText bounds the part of a text that is handed over at a time.
const mostText = 16 << 20

// text answers a question about a lazy text. The numbers in it are hostile;
// package bigtext checks ranges.
func (s *Session) text(ctx context.Context, q gorun.Question) ([]byte, error) {
	if q.Input < 0 || q.Input >= len(s.Config.Inputs) || s.Config.Inputs[q.Input].Text == nil {
		return nil, fmt.Errorf("input %d is no text", q.Input)
	}
	text := s.Config.Inputs[q.Input].Text
	var n int64
	var err error
	switch q.Op {
	case gorun.OpSlice:
		return slice(ctx, text, q.A, q.B)
	case gorun.OpFind:
		n, err = text.Find(ctx, []byte(q.Needle), q.A, q.B)
	case gorun.OpRFind:
		n, err = text.RFind(ctx, []byte(q.Needle), q.A, q.B)
	case gorun.OpCount:
		n, err = text.Count(ctx, []byte(q.Needle), q.A, q.B)
	case gorun.OpLines:
		n, err = text.Parts(ctx, bigtext.Newlines(), q.A, q.B)
	case gorun.OpLine:
		return lines(ctx, text, q.A, q.B)
	default:
		return nil, ErrProtocol
	}
	return strconv.AppendInt(nil, n, 10), err
}

func slice(ctx context.Context, text *bigtext.Text, a, b int64) ([]byte, error) {
	data, _, err := text.Slice(ctx, a, b)
	if err != nil {
		return nil, err
	}
	if len(data) > mostText {
		return nil, fmt.Errorf("%d bytes are too many for one string, take %d at a time", len(data), mostText)
	}
	var own []byte
	err = bigtext.Guard(text, func() { own = append([]byte{}, data...) })
	return own, err
}

// lines returns the lines a to b-1, each with a line feed at its end.
func lines(ctx context.Context, text *bigtext.Text, a, b int64) ([]byte, error) {
	length, err := text.Len(ctx)
	if err != nil {
		return nil, err
	}
	count, err := text.Parts(ctx, bigtext.Newlines(), 0, length)
	if err != nil {
		return nil, err
	}
	if b = min(b, count); a >= b {
		return nil, nil
	}
	start, end, err := text.PartsRange(ctx, bigtext.Newlines(), 0, length, a, b)
	if err != nil {
		return nil, err
	}
	data, err := slice(ctx, text, start, end)
	return append(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), '\n'), err
}

// Changed returns an error that names a file which has changed since the session
// was opened.
func (s *Session) Changed() error {
	for _, in := range s.Config.Inputs {
		if in.Text == nil {
			continue
		}
		if err := in.Text.Changed(); err != nil {
			return err
		}
	}
	return nil
}

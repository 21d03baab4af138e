package gohost

import (
	"bytes"
	"crypto/sha256"
	"io"

	"github.com/rlmhq/rlm/tiers"
)

// Output keeps what a snippet writes, up to a limit of bytes. It has one writer.
type Output struct {
	Limit int64
	// Sinks, where set, are written to as well: standard output and error.
	Sinks [2]io.Writer

	total   int64
	streams [2]bytes.Buffer
}

// Write takes a part of stream 0, standard output, or 1, standard error.
func (o *Output) Write(stream int, text []byte) {
	room := max(0, o.Limit-o.total)
	o.total += int64(len(text))
	if int64(len(text)) > room {
		text = text[:room]
	}
	if len(text) == 0 {
		return
	}
	o.streams[stream].Write(text)
	if sink := o.Sinks[stream]; sink != nil {
		_, _ = sink.Write(text) // the caller's sink; the snippet cannot mend it
	}
}

// Text is what was kept of a stream.
func (o *Output) Text(stream int) string { return o.streams[stream].String() }

// Hash is of all that was kept, and more, as canonical, if not nil, leaves it.
func (o *Output) Hash(more string, canonical func([]byte) []byte) [sha256.Size]byte {
	text := bytes.Join([][]byte{o.streams[0].Bytes(), o.streams[1].Bytes(), []byte(more)}, []byte{0})
	if canonical != nil {
		text = canonical(text)
	}
	return sha256.Sum256(text)
}

// Report fills in what a result says of a turn that is over: output, host calls,
// time, the answer, and the limit that fired without ending the snippet.
func Report(r *tiers.Result, o *Output, c *Calls, m *Meter) {
	r.Stdout, r.Stderr, r.Dropped = o.Text(0), o.Text(1), max(0, o.total-o.Limit)
	r.Final, r.Usage = c.Final, m.Usage()
	r.Usage.HostCalls, r.Usage.OutputBytes = min(c.made, c.limits.HostCalls), o.total
	switch {
	case r.Limit != "":
	case c.refused:
		r.Limit = tiers.LimitHostCalls
	case r.Dropped > 0:
		r.Limit = tiers.LimitOutput
	}
}

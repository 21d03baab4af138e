package pykernel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/rlmhq/rlm/internal/bigtext"
)

// The guest's requests. The first byte names the operation; operands are
// decimal numbers with commas between them, and a last operand may be arbitrary
// bytes. Offsets count characters.
//
//	o<fd><bytes>                         write to stdout (1) or stderr (2)
//	c<name>\0<json>                      call a host function: [args, named] -> value
//	s<name>\0<json>                      start one -> its number
//	w<ms>                                wait for started calls, -1 without end -> [[number, ok, value], ...]
//	x<number>                            cancel a started call
//	z<microseconds>                      sleep
//	f<json>                              FINAL: {"value", "name"}
//	e<json>                              the exception that left the snippet
//	v<json>                              the snippets' variables: [[name, kind], ...]
//	i                                    the session's inputs and functions
//	j<input>                             a JSON input
//	dl<input>                            a directory's [[path, size], ...]
//	do<input>,<path>                     open a file of it -> a text's description
//	ts<text>,<a>,<b>                     characters [a, b)
//	tb<text>,<a>,<b>                     bytes [a, b), by byte offset
//	tf|tr|tc<text>,<a>,<b>,<needle>      find, rfind, count in [a, b)
//	tp<text>,<a>,<b>,<kind>,<sep>        number of parts
//	tl<text>,<a>,<b>,<kind>,<i>,<j>,<sep>  where the parts i to j-1 lie
//	tx<text>,<a>,<b>,<from>,<n>,<re2>    up to n matches -> [next, [[start, end, ...], ...]]
//	ti<text>                             a text's description
//	tg<text>,<a>,<b>,<from>,<n>,<re2>    up to n runs of lines with matches -> [next, [[start, end], ...]]
//	r<what>                              the tier lacks what the snippet needs -> 1: stop
//	p<state>, g, l<json>                 give and take a state: see state.go
//	n                                    the next variable of a state begins
//	n!                                   it was interrupted -> why it is left behind, "" to give the move up
const maxRequest = 256 << 20

// Reply is the answer to one request.
type Reply struct {
	// Data is the answer, the error's text if Failed.
	Data   []byte
	Failed bool
	// ASCII is set when Data is known to be ASCII.
	ASCII bool
	// text is what Data is a part of, if it aliases a mapping.
	text *bigtext.Text
}

// CopyTo copies the answer to dst, which is as long as Data. Data may lie in a
// mapped file that has just been truncated; then an error comes back.
func (r Reply) CopyTo(dst []byte) error {
	if r.text == nil {
		copy(dst, r.Data)
		return nil
	}
	return bigtext.Guard(r.text, func() { copy(dst, r.Data) })
}

func ok(s string) Reply { return Reply{Data: []byte(s), ASCII: true} }

func okInt(n int64) Reply { return Reply{Data: strconv.AppendInt(nil, n, 10), ASCII: true} }

func okJSON(v any) Reply {
	data, err := json.Marshal(v)
	if err != nil {
		return fail(fmt.Errorf("cannot encode an answer: %w", err))
	}
	return Reply{Data: data, ASCII: isASCII(data)}
}

func fail(err error) Reply { return Reply{Data: []byte(err.Error()), Failed: true} }

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

var errRequest = errors.New("cannot understand the request to the host")

// operands cuts n leading decimal operands from b; more says that another
// operand follows the last of them.
func operands(b []byte, n int, more bool) (nums []int64, rest []byte, err error) {
	nums = make([]int64, 0, n)
	for i := range n {
		field, after, found := bytes.Cut(b, comma)
		if !found && (more || i < n-1) {
			return nil, nil, errRequest
		}
		if found && !more && i == n-1 {
			return nil, nil, errRequest
		}
		num, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return nil, nil, errRequest
		}
		nums, b = append(nums, num), after
	}
	return nums, b, nil
}

var comma = []byte{','}

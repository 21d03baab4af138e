package distill

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/rlmhq/rlm/schema"
)

// Bounds of a trace file, which is untrusted.
const (
	maxLine   = 1 << 20  // bytes of one trace
	maxBytes  = 64 << 20 // of all
	maxTraces = 100_000
)

// Failure is the trace of one run that failed.
type Failure struct {
	// ID is the name in the trace, or "line N".
	ID string
	// Component is the failed component, empty if the trace does not name one.
	Component string
	// Type is the type of the error, such as TimeoutError, empty if the trace names none.
	Type string
	// Error is the error text of the trace, with its type.
	Error string
	// Trace is the whole trace, one JSON object.
	Trace json.RawMessage
}

// Corpus is the content of a trace file.
type Corpus struct {
	Failures []Failure
	// Passed counts the traces that show no failure.
	Passed int
}

var lineContract = sync.OnceValues(func() (*schema.Contract, error) {
	return schema.Compile(json.RawMessage(`{"type": "object"}`))
})

// Parse reads traces as JSON Lines, as a list of objects, or as one object on several lines:
// at most 100,000 objects of at most 1 MiB each, 64 MiB in all; empty lines are skipped, and
// bytes that are not UTF-8 are replaced.
//
// A trace is a failure if its success is false; else, unless its success is true or its
// status or outcome is a word for success, if it has a status, an outcome or an error.
// Its error is error, exception, failure, traceback or reason, the first that is not
// empty; its name is id, trace_id or run_id; its component is component, agent, tool or
// name. Trace keeps all other members. The error names the wrong line.
func Parse(r io.Reader) (Corpus, error) {
	c, err := parseAll(r)
	if err != nil {
		return Corpus{}, fmt.Errorf("cannot read the traces: %w", err)
	}
	return c, nil
}

var errTooMany = fmt.Errorf("there are more than %d traces or %d bytes: give fewer traces",
	maxTraces, maxBytes)

func parseAll(r io.Reader) (c Corpus, err error) {
	data, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return c, err
	}
	if len(data) > maxBytes {
		return c, errTooMany
	}
	whole, err := splitWhole(data)
	if err != nil {
		return c, err
	}

	what, n, traces := "line", 0, 0
	items := bytes.SplitSeq(data, []byte{'\n'})
	if whole != nil {
		what, items = "trace", slices.Values(whole)
	}
	for item := range items {
		n++
		if item = bytes.TrimSpace(item); len(item) == 0 {
			continue
		}
		if traces++; traces > maxTraces {
			return c, errTooMany
		}
		if len(item) > maxLine {
			return c, fmt.Errorf("%s %d has more than %d bytes", what, n, maxLine)
		}

		at := fmt.Sprintf("%s %d", what, n)
		failure, failed, err := parseTrace(bytes.ToValidUTF8(item, []byte("\uFFFD")), at)
		if err != nil {
			return c, fmt.Errorf("%s: %w", at, err)
		}
		if !failed {
			c.Passed++
			continue
		}
		c.Failures = append(c.Failures, failure)
	}

	if traces == 0 {
		return c, errors.New("the file has no traces")
	}
	return c, nil
}

// splitWhole returns the traces in data that is one list, or one object on several lines. It
// returns nil for lines.
func splitWhole(data []byte) ([][]byte, error) {
	data = bytes.TrimSpace(data)
	first, _, several := bytes.Cut(data, []byte{'\n'})
	switch {
	case len(data) == 0:
		return nil, nil
	case data[0] == '[':
		var items []json.RawMessage
		if err := json.Unmarshal(data, &items); err != nil {
			return nil, fmt.Errorf("the list: %w", err)
		}
		whole := make([][]byte, len(items))
		for i, item := range items {
			whole[i] = item
		}
		return whole, nil
	case several && data[0] == '{' && !json.Valid(first) && json.Valid(data):
		return [][]byte{data}, nil
	}
	return nil, nil
}

// parseTrace reads one trace, which stands at a place, and reports whether its run failed.
func parseTrace(line []byte, at string) (f Failure, failed bool, err error) {
	contract, err := lineContract()
	if err != nil {
		return f, false, err
	}
	value, violations, err := contract.Check(line)
	if err == nil && len(violations) > 0 {
		err = errors.New(violations[0].String())
	}
	if err != nil {
		return f, false, err
	}

	var members map[string]json.RawMessage
	if err := json.Unmarshal(value, &members); err != nil {
		return f, false, err
	}
	kind, message := errorOf(members)
	f = Failure{
		ID: firstMember(members, idMembers...), Component: firstMember(members, componentMembers...),
		Type: kind, Error: joinError(kind, message),
		Trace: append(json.RawMessage(nil), value...),
	}
	if f.ID == "" {
		f.ID = at
	}
	if f.Error == "" {
		f.Error = strings.TrimSpace("no error is recorded " + strings.ToLower(statusOf(members)))
	}

	return f, hasFailed(members, message+kind), nil
}

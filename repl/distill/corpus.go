package distill

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

// Parse reads traces as JSON Lines: at most 100,000 objects of at most 1 MiB each, 64
// MiB in all; empty lines are skipped, and bytes that are not UTF-8 are replaced.
//
// A trace is a failure if its success is false; else, unless its success is true or its
// status or outcome is a word for success, if it has a status, an outcome or an error.
// Its error is error, exception, failure, traceback or reason, the first that is not
// empty; its name is id, trace_id or run_id; its component is component, agent, tool or
// name. Trace keeps all other members. The error names the wrong line.
func Parse(r io.Reader) (Corpus, error) {
	var c Corpus
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	total, n, traces := 0, 0, 0
	for lines.Scan() {
		n++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		traces++
		if total += len(line); total > maxBytes || traces > maxTraces {
			return Corpus{}, fmt.Errorf(
				"cannot read the traces: there are more than %d traces or %d bytes: give fewer traces",
				maxTraces, maxBytes,
			)
		}

		failure, failed, err := parseTrace(bytes.ToValidUTF8(line, []byte("\uFFFD")), n)
		if err != nil {
			return Corpus{}, fmt.Errorf("cannot read the traces: line %d: %w", n, err)
		}
		if !failed {
			c.Passed++
			continue
		}
		c.Failures = append(c.Failures, failure)
	}

	if err := lines.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("line %d has more than %d bytes", n+1, maxLine)
		}
		return Corpus{}, fmt.Errorf("cannot read the traces: %w", err)
	}
	if traces == 0 {
		return Corpus{}, errors.New("cannot read the traces: the file has no traces")
	}

	return c, nil
}

// parseTrace reads one trace and reports whether its run failed.
func parseTrace(line []byte, n int) (f Failure, failed bool, err error) {
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
		f.ID = fmt.Sprintf("line %d", n)
	}
	if f.Error == "" {
		f.Error = strings.TrimSpace("no error is recorded " + strings.ToLower(statusOf(members)))
	}

	return f, hasFailed(members, message+kind), nil
}

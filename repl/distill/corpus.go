package distill

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/rlmhq/rlm/repl/internal/agenttrace"
	"github.com/rlmhq/rlm/schema"
)

// Bounds of a trace file, which is untrusted.
const (
	maxLine   = 1 << 20  // bytes of one trace
	maxBytes  = 64 << 20 // bytes of all traces
	maxTraces = 100_000
)

// Failure is the trace of one run that failed.
type Failure struct {
	// ID is the name in the trace, or "line N".
	ID string
	// Component is the component that failed, or empty if the trace does not name one.
	Component string
	// Type is the type of the error, such as TimeoutError, or empty if the trace names none.
	Type string
	// Error is the error message in the trace, including the error's type.
	Error string
	// Trace is the whole trace as one JSON object.
	Trace json.RawMessage
}

// Corpus is the content of a trace file.
type Corpus struct {
	Failures []Failure
	// Passed counts the traces that show no failure. Unmarked counts those among them that do
	// not state whether their run succeeded.
	Passed, Unmarked int
	// Formats counts the traces by format, as named in package reflect. Objects of an unknown
	// format are counted as "object".
	Formats map[string]int
	// Note describes the omitted part, which is the last line of a log if it is truncated. It is
	// often empty.
	Note string
}

// add adds a trace.
func (c *Corpus) add(format string, f Failure, failed, marked bool) {
	if c.Formats == nil {
		c.Formats = map[string]int{}
	}
	c.Formats[format]++
	switch {
	case failed:
		c.Failures = append(c.Failures, f)
	case marked:
		c.Passed++
	default:
		c.Passed++
		c.Unmarked++
	}
}

var lineContract = sync.OnceValues(func() (*schema.Contract, error) {
	return schema.Compile(json.RawMessage(`{"type": "object"}`))
})

// Parse reads the traces in a source of at most 64 MiB. Format is a format of package reflect, or
// "auto" to detect it. A log, a list of messages, and the spans of one trace are each one run.
//
// With "auto", other JSON Lines, a list of objects, and one object on several lines are traces
// as well: at most 100,000 objects of at most 1 MiB each. Empty lines are skipped, and bytes
// that are not UTF-8 are replaced.
//
// A trace is a failure if its success is false. Otherwise, unless its success is true or its
// status or outcome is a word for success, it is a failure if it has a status, an outcome or an
// error. The error is the first nonempty member of error, exception, failure, traceback and
// reason; the name is id, trace_id or run_id; the component is component, agent, tool or name.
// Without these members, the format decides: by an exit status, a reward, or the failure of the
// outermost span. Trace keeps all other members. The error names the wrong line.
func Parse(r io.Reader, format string) (Corpus, error) {
	c, err := parseAll(r, format)
	if err != nil {
		return Corpus{}, fmt.Errorf("cannot read the traces: %w", err)
	}
	return c, nil
}

var errTooMany = fmt.Errorf("there are more than %d traces or %d bytes: give fewer traces",
	maxTraces, maxBytes)

func parseAll(r io.Reader, format string) (c Corpus, err error) {
	data, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return c, err
	}
	if len(data) > maxBytes {
		return c, errTooMany
	}
	if c, known, err := parseForm(data, format); known {
		return c, err
	}
	return parseObjects(data)
}

// parseForm reads traces of a known format.
func parseForm(data []byte, format string) (c Corpus, known bool, err error) {
	runs, note, known, err := agenttrace.ParseEach(data, format)
	if err != nil || !known {
		return c, known, err
	}
	for i := range runs {
		r := &runs[i]
		failure, failed, marked, err := judgeRun(r, i, len(runs))
		if err != nil {
			return c, true, err
		}
		c.add(r.Format, failure, failed, marked)
	}
	c.Note = note
	return c, true, nil
}

// judgeRun returns the failure of a run of a known format. Members of the run that state whether
// it failed take precedence over its format.
func judgeRun(r *agenttrace.Run, i, n int) (f Failure, failed, marked bool, err error) {
	members := asObject(r.Object)
	kind, message := errorOf(members)
	failed, marked = hasFailed(members, message+kind)
	if !marked && r.Known {
		failed, marked = r.Failed, true
	}
	if message == "" && kind == "" {
		kind, message = splitError(r.Failure)
	}

	f = Failure{
		ID: cmp.Or(firstMember(members, idMembers...), r.Name), Type: kind, Error: joinError(kind, message),
		Component: cmp.Or(r.Component, firstMember(members, componentMembers...)), Trace: r.Object,
	}
	if f.ID == "" && n > 1 {
		f.ID = fmt.Sprintf("trace %d", i+1)
	}
	f.complete(members, cmp.Or(f.ID, "trace 1"))
	if failed && (f.Trace == nil || len(f.Trace) > maxLine) {
		f.Trace, err = r.Canonical(maxLine)
	}
	return f, failed, marked, err
}

// complete fills in a missing name or error.
func (f *Failure) complete(members map[string]json.RawMessage, name string) {
	f.ID = cmp.Or(f.ID, name)
	if f.Error == "" {
		f.Error = strings.TrimSpace("no error is recorded " + strings.ToLower(statusOf(members)))
	}
}

// parseObjects reads traces that are arbitrary objects.
func parseObjects(data []byte) (c Corpus, err error) {
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
		failure, failed, marked, err := parseTrace(bytes.ToValidUTF8(item, []byte("\uFFFD")), at)
		if err != nil {
			return c, fmt.Errorf("%s: %w", at, err)
		}
		c.add(formatObject, failure, failed, marked)
	}

	if traces == 0 {
		return c, errors.New("the file has no traces")
	}
	return c, nil
}

// splitWhole returns the traces in data that is a single list, or one object on several lines.
// For JSON Lines it returns nil.
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

// formatObject is the format of a trace that is an object of an unknown format.
const formatObject = "object"

// parseTrace reads one trace; at is its position, for errors. It reports whether the run failed,
// and whether the trace states that.
func parseTrace(line []byte, at string) (f Failure, failed, marked bool, err error) {
	contract, err := lineContract()
	if err != nil {
		return f, false, false, err
	}
	value, violations, err := contract.Check(line)
	if err == nil && len(violations) > 0 {
		err = errors.New(violations[0].String())
	}
	if err != nil {
		return f, false, false, err
	}

	var members map[string]json.RawMessage
	if err := json.Unmarshal(value, &members); err != nil {
		return f, false, false, err
	}
	kind, message := errorOf(members)
	f = Failure{
		ID: firstMember(members, idMembers...), Component: firstMember(members, componentMembers...),
		Type: kind, Error: joinError(kind, message),
		Trace: append(json.RawMessage(nil), value...),
	}
	f.complete(members, at)
	failed, marked = hasFailed(members, message+kind)
	return f, failed, marked, nil
}

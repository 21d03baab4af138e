package answers

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/rlmhq/rlm/internal/snippet/protocol"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/tiers"
)

// Lacks counts the records without which the code of a tree of loops continues. The zero value is
// ready to use; it is safe for concurrent use.
type Lacks struct {
	mu   sync.Mutex
	list map[string]lack
}

// lack holds how many records of a result have no value, and how many there are.
type lack struct{ missing, records int64 }

func (l lack) String() string {
	return fmt.Sprintf("the code continued without %s of %s records, because no model gave a value for them",
		quantity.Comma(l.missing), quantity.Comma(l.records))
}

// Limits of the reports about records without a value.
const (
	maxLacks   = 1_000 // results; all further results are counted as one
	maxLackKey = 64    // bytes
)

// put stores a report. Of several reports about one result, it keeps the largest, because the
// answer may use values from the first attempt.
func (l *Lacks) put(key string, report lack) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.list == nil {
		l.list = map[string]lack{}
	}
	before, known := l.list[key]
	switch {
	case !known && len(l.list) >= maxLacks:
		rest := l.list[""]
		l.list[""] = lack{rest.missing + report.missing, rest.records + report.records}
	case report.missing > before.missing:
		l.list[key] = report
	}
}

// String describes the missing values of an answer; it is empty if nothing is missing.
func (l *Lacks) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var sum lack
	for _, report := range l.list {
		sum.missing += report.missing
		sum.records += report.records
	}

	if sum.missing == 0 {
		return ""
	}
	return sum.String()
}

// Lack stores a report and emits it as a warning.
func (a *Answers) Lack(key string, missing, records int64) {
	report := lack{missing, records}
	if a.Lacks != nil {
		a.Lacks.put(key, report)
	}
	e := ledger.Event{
		Kind: ledger.EventWarning, Node: a.Node, Depth: a.Depth, Purpose: "coverage",
		Error: report.String(),
	}
	if a.Turn != nil {
		e.Turn = int(a.Turn.Load())
	}
	a.Caller.Tell(e)
}

// lack answers the guest's report: the key of a result, how many of its records have no
// value, and how many there are.
func (p dialects) lack(_ context.Context, call tiers.Call) (tiers.Value, error) {
	a, err := accept(call, "key", "missing", "records")
	if err != nil {
		return nil, err
	}
	key, err := a.text("key")
	if err != nil || key == "" || len(key) > maxLackKey {
		return nil, fmt.Errorf("%s: the key is not one of a result: %s", protocol.Lack, clip(a.values["key"]))
	}
	var counts [2]int64
	for i, name := range []string{"missing", "records"} {
		value := a.values[name]
		if json.Unmarshal(value, &counts[i]) != nil || counts[i] < 1 || counts[i] > maxList {
			return nil, fmt.Errorf("%s: %s is not a number of records: %s", protocol.Lack, name, clip(value))
		}
	}

	p.Lack(key, counts[0], counts[1])
	return tiers.Value("null"), nil
}

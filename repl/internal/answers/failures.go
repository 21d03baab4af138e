package answers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/rlmhq/rlm/internal/text/texts"
)

// failures records the failed sub-calls of a loop. A snippet may continue with their slots or catch
// their exceptions, so its answer may hide the failures.
type failures struct {
	mu     sync.Mutex
	calls  int              // calls in this turn
	failed map[query]string // reasons of calls of this turn that failed and did not succeed later
	signs  []string         // lower-case beginnings of the strings for failed calls, in all turns
}

// query identifies a query in any dialect.
type query [sha256.Size]byte

func (q *Query) identity() query {
	return sha256.Sum256(bytes.Join([][]byte{q.Prompt, q.Context, q.Schema}, []byte{0}))
}

// Limits of the record of failures.
const (
	maxSigns = 100 // signs
	maxSign  = 40  // maximum length in characters
	minSign  = 24  // minimum length of an error's message alone, in characters
)

// note records the outcome of a query. It ignores a call that ended early because its snippet
// ended.
func (f *failures) note(ctx context.Context, q *Query, err error) {
	if ctx.Err() != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if !q.Covered {
		f.count(q, err)
	}

	if err == nil {
		return
	}
	if text := err.Error(); len(text) >= minSign {
		f.addSign(text)
	} else {
		f.addSign(formatFailure(err))
	}
}

// count records the outcome of a query in this turn.
func (f *failures) count(q *Query, err error) {
	f.calls++
	if err == nil {
		delete(f.failed, q.identity())
		return
	}
	if f.failed == nil {
		f.failed = map[query]string{}
	}
	f.failed[q.identity()] = formatFailure(err)
}

// addSign records the beginning of a string that represents a failed call.
func (f *failures) addSign(text string) {
	runes := []rune(text)
	sign := strings.ToLower(string(runes[:min(len(runes), maxSign)]))
	if len(f.signs) < maxSigns && !slices.Contains(f.signs, sign) {
		f.signs = append(f.signs, sign)
	}
}

// formatFailure returns the string in a failed slot.
func formatFailure(err error) string { return "Error: " + err.Error() }

// The only member of the JSON object that represents a failed call, for a query without and with a
// type. The guest turns the object into a SubCallError, a str that begins with "Error: ". The
// SubCallError of a query with a type raises if it is used as a value.
const (
	failedKey      = "__rlm_failed__"
	failedTypedKey = "__rlm_error__"
)

// encodeFailure returns the value that a snippet receives instead of an answer.
func encodeFailure(typed bool, err error) (json.RawMessage, error) {
	key := failedKey
	if typed {
		key = failedTypedKey
	}
	return json.Marshal(map[string]string{key: formatFailure(err)})
}

// Failed are sub-calls that failed.
type Failed struct {
	Count, Of int // Of counts all sub-calls of the turn
	// Reasons holds the messages of at most a few failures, each once.
	Reasons []string
}

// maxReasons bounds the reasons shown to a model.
const maxReasons = 3

// String describes the failures to the model.
func (f Failed) String() string {
	return fmt.Sprintf("%d of %d sub-calls failed: %s", f.Count, f.Of, strings.Join(f.Reasons, "; "))
}

// TakeFailed returns the sub-calls that failed since the last TakeFailed.
func (a *Answers) TakeFailed() Failed {
	f := &a.failures
	f.mu.Lock()
	defer f.mu.Unlock()

	out := Failed{Count: len(f.failed), Of: f.calls}
	for _, reason := range f.failed {
		reason = texts.Truncate(reason, 300)
		if !slices.Contains(out.Reasons, reason) {
			out.Reasons = append(out.Reasons, reason)
		}
	}
	slices.Sort(out.Reasons)
	out.Reasons = out.Reasons[:min(len(out.Reasons), maxReasons)]
	f.failed, f.calls = nil, 0
	return out
}

// FindFailure returns the beginning of a failed sub-call's string that an answer contains, or "".
func (a *Answers) FindFailure(answer json.RawMessage) string {
	f := &a.failures
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.signs) == 0 {
		return ""
	}

	decoder := json.NewDecoder(bytes.NewReader(answer))
	for {
		token, err := decoder.Token()
		if err != nil {
			return "" // the end of the answer
		}
		text, _ := token.(string)
		text = strings.ToLower(text)
		for _, sign := range f.signs {
			if strings.Contains(text, sign) {
				return sign
			}
		}
	}
}

// Memory is the state that the answers of a loop keep between turns.
type Memory struct {
	// Warned reports that a call received the notice that the budget is used up.
	Warned bool `json:"warned,omitempty"`
	// Signs are the beginnings of the strings that replaced the answers of failed calls.
	Signs []string `json:"signs,omitempty"`
}

// Memory returns the state of the answers.
func (a *Answers) Memory() Memory {
	a.failures.mu.Lock()
	defer a.failures.mu.Unlock()
	return Memory{Warned: a.warned.Load(), Signs: slices.Clone(a.failures.signs)}
}

// Restore adopts the state of other answers.
func (a *Answers) Restore(m Memory) {
	a.failures.mu.Lock()
	defer a.failures.mu.Unlock()
	a.warned.Store(m.Warned)
	a.failures.signs = m.Signs
}

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

// failures are the failed sub-calls of a loop. A snippet may continue with their slots or catch
// their exceptions, so an answer would hide them.
type failures struct {
	mu     sync.Mutex
	calls  int              // calls in this turn
	failed map[query]string // why calls of this turn failed and were not repeated successfully
	signs  []string         // how texts for failed calls begin, in all turns, in lower case
}

// query identifies a query in any dialect.
type query [sha256.Size]byte

func (q *Query) identity() query {
	return sha256.Sum256(bytes.Join([][]byte{q.Prompt, q.Context, q.Schema}, []byte{0}))
}

// Limits of what is kept about failures.
const (
	maxSigns = 100 // texts
	maxSign  = 40  // maximum length in characters
	minSign  = 24  // minimum length of an error's message alone, in characters
)

// note records the outcome of a query. It ignores a call that the end of its snippet cut short.
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

// addSign records the beginning of a text that stands for a failed call.
func (f *failures) addSign(text string) {
	runes := []rune(text)
	sign := strings.ToLower(string(runes[:min(len(runes), maxSign)]))
	if len(f.signs) < maxSigns && !slices.Contains(f.signs, sign) {
		f.signs = append(f.signs, sign)
	}
}

// formatFailure returns the text of a failed slot.
func formatFailure(err error) string { return "Error: " + err.Error() }

// The single member of the JSON object that stands for a failed call, of a query for a text and
// of a query with a type. The guest turns the object into a SubCallError, a text that begins
// with "Error: ". One with a type refuses to be used as a value.
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
	// Reasons are the texts of the failures, each once, at most a few.
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

// FindFailure returns the text of a failed sub-call contained in an answer, or "".
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
			return "" // the end
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
	// Signs are the beginnings of the texts that replaced the answers of failed calls.
	Signs []string `json:"signs,omitempty"`
}

// Memory returns what the answers remember.
func (a *Answers) Memory() Memory {
	a.failures.mu.Lock()
	defer a.failures.mu.Unlock()
	return Memory{Warned: a.warned.Load(), Signs: slices.Clone(a.failures.signs)}
}

// Restore adopts the memory of other answers.
func (a *Answers) Restore(m Memory) {
	a.failures.mu.Lock()
	defer a.failures.mu.Unlock()
	a.warned.Store(m.Warned)
	a.failures.signs = m.Signs
}

package calls

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/repl/internal/usage"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
)

// windows stores the context windows that servers stated when they rejected a prompt. Nil stores
// none.
type windows struct {
	mu     sync.Mutex
	tokens map[string]int64 // by model
}

// get returns the stored window, or 0.
func (w *windows) get(model string) int64 {
	if w == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tokens[model]
}

// set records a window, unless a smaller one is known.
func (w *windows) set(model string, tokens int64) (isNew bool) {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if old := w.tokens[model]; old > 0 && old <= tokens {
		return false
	}

	if w.tokens == nil {
		w.tokens = map[string]int64{}
	}
	w.tokens[model] = tokens
	return true
}

// resolve returns a model with the window that the run has learned.
func (c *Caller) resolve(name string) (llm.Model, error) {
	m, err := c.Models.Resolve(name)
	if err != nil {
		return m, err
	}
	if told := c.windows.get(name); told > 0 && (m.Facts.Window == 0 || told < m.Facts.Window) {
		m.Facts.Window = told
	}
	return m, nil
}

// learnWindow reads the window from the message with which a server rejected a prompt. It
// reports whether the same prompt fits with less room for the reply.
func (c *Caller) learnWindow(a *Ask, err error) bool {
	var refused *llm.Error
	if !errors.Is(err, llm.ErrContextLength) || !errors.As(err, &refused) {
		return false
	}
	told := readWindow(refused.Message)
	before, err := c.resolve(a.Model)
	if err != nil || told == 0 || before.Facts.Window > 0 && before.Facts.Window <= told ||
		!c.windows.set(a.Model, told) {
		return false
	}

	c.emit(*a, ledger.Event{Kind: ledger.EventWarning, Error: fmt.Sprintf(
		"the window of %s has %d tokens, according to its server; give it with --window", a.Model, told)})
	after, err := c.resolve(a.Model)
	if err != nil {
		return false
	}
	r := c.makeRequest(a, &after)
	return r.MaxTokens < c.makeRequest(a, &before).MaxTokens &&
		usage.EstimateInput(r)+int64(r.MaxTokens) <= told
}

// Servers state their window in messages such as these:
//
//	This model's maximum context length is 8192 tokens. However, you requested …
//	request (9031 tokens) exceeds the available context size (2048 tokens)
//	prompt is too long: 215000 tokens > 200000 maximum
var windowWords = lazyregexp.New(
	`(?i)(?:context (?:length|size|window)|model length|tokens allowed)[^\d.;]{0,20}([\d,]+)|> ([\d,]+)`)

// leastWindow is smaller than any useful window, in tokens.
const leastWindow = 256

// readWindow returns the window that a server's message states, or 0.
func readWindow(words string) int64 {
	found := windowWords.FindStringSubmatch(words)
	if found == nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(found[1]+found[2], ",", ""), 10, 64)
	if err != nil || n < leastWindow {
		return 0
	}
	return n
}

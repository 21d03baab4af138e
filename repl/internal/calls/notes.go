package calls

import (
	"fmt"
	"sync"
	"time"

	"github.com/rlmhq/rlm/repl/internal/callnotes"
	"github.com/rlmhq/rlm/repl/ledger"
)

// waitPause is the minimum time between two events about waiting for one model. In an outage,
// many calls wait for the same reason.
const waitPause = 10 * time.Second

// waits stores when an event about each model was last emitted.
type waits struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// isNews reports whether a wait for a model is worth an event.
func (w *waits) isNews(model string) bool {
	if w == nil {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.last[model]) < waitPause {
		return false
	}

	if w.last == nil {
		w.last = map[string]time.Time{}
	}
	w.last[model] = time.Now()
	return true
}

// callNotes turns the notes of one call into events.
type callNotes struct {
	caller *Caller
	ask    Ask
	asked  *callnotes.Asked // the last attempt's request
}

// NoteAsked implements [callnotes.Receiver].
func (n callNotes) NoteAsked(a callnotes.Asked) { *n.asked = a }

// NoteWait implements [callnotes.Receiver].
func (n callNotes) NoteWait(w callnotes.Wait) {
	if n.caller.waits.isNews(n.ask.Model) {
		n.caller.emit(n.ask, ledger.Event{
			Kind: ledger.EventWaiting, Error: w.Reason, Elapsed: w.Waited, Limit: w.Limit,
		})
	}
}

// NoteDropped implements [callnotes.Receiver]. It is called once for each model and part.
func (n callNotes) NoteDropped(part string) {
	n.caller.emit(n.ask, ledger.Event{
		Kind:  ledger.EventWarning,
		Error: fmt.Sprintf("%s rejects the setting %s; later requests omit it", n.ask.Model, part),
	})
}

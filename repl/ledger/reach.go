package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rlmhq/rlm/repl/internal/callnotes"
	"github.com/rlmhq/rlm/repl/internal/fanout"
	"github.com/rlmhq/rlm/repl/llm"
)

// CheckModels asks the server of each model, concurrently, whether it can serve the model. This
// costs no tokens. It ignores empty names and fails if no other name is given. While it waits
// for a server that is down, progress receives events; it may be nil. The error names every
// model that cannot be used.
func CheckModels(
	ctx context.Context, models Models, progress func(Event), names ...string,
) error {
	if models == nil {
		return errors.New("no registry of models: set Models")
	}
	names = slices.Clone(names)
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
	if len(names) == 0 {
		return errors.New("no model: name one, such as openai/gpt-5")
	}

	slots := fanout.Run(
		ctx,
		len(names),
		len(names),
		func(ctx context.Context, i int) (struct{}, error) {
			model, err := models.Resolve(names[i])
			if err != nil {
				return struct{}{}, err
			}
			if progress != nil {
				ctx = callnotes.With(ctx, &checkNotes{model: names[i], tell: progress})
			}
			return struct{}{}, llm.Check(ctx, model.Provider, model.ID)
		},
	)

	var errs []error
	for i, slot := range slots {
		if slot.Err != nil {
			errs = append(errs, fmt.Errorf("cannot use model %s: %w", names[i], slot.Err))
		}
	}

	return errors.Join(errs...)
}

// checkNotes turns the notes of a check into events.
type checkNotes struct {
	model string
	tell  func(Event)
}

// NoteWait implements [callnotes.Receiver].
func (n *checkNotes) NoteWait(w callnotes.Wait) {
	n.tell(Event{
		Time: time.Now(), Kind: EventWaiting, Node: "0", Purpose: "check", Model: n.model,
		Error: w.Reason, Elapsed: w.Waited, Limit: w.Limit,
	})
}

// NoteDropped implements [callnotes.Receiver]. A check has no sampling.
func (n *checkNotes) NoteDropped(string) {}

// NoteAsked implements [callnotes.Receiver]. A check sends no question.
func (n *checkNotes) NoteAsked(callnotes.Asked) {}

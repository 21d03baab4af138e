package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/server/internal/runs"
	"github.com/rlmhq/rlm/server/internal/sse"
)

// teller reports the progress of a response: it produces the events of the stream in order, and
// updates the resource. The same progress produces the same events, so that a client can continue a
// stream after any event.
type teller struct {
	resource
	seq  int64
	send func(e sse.Event, n int64) error // nil without a stream
	keep func(r *resource) error          // stores how the response ended; nil if it is not stored
}

// fields are the members of an event.
type fields map[string]any

// tell makes and sends an event.
func (t *teller) tell(kind string, f fields) error {
	n := t.seq
	t.seq++
	if t.send == nil {
		return nil
	}

	f["type"], f["sequence_number"] = kind, n
	data, err := marshal(f)
	if err != nil {
		return err
	}
	return t.send(sse.Event{Name: kind, Data: data}, n)
}

// begin reports that the response exists.
func (t *teller) begin() error {
	if err := t.tell("response.created", fields{"response": t.resource}); err != nil {
		return err
	}
	t.Status = "in_progress"
	return t.tell("response.in_progress", fields{"response": t.resource})
}

// addItem reports the start of an item, and returns the members that identify it.
func (t *teller) addItem(one item) (func(further ...any) fields, error) {
	at := len(t.Output)
	t.Output = append(t.Output, one)
	named := func(further ...any) fields {
		f := fields{"item_id": one.ID, "output_index": at}
		for i := 0; i+1 < len(further); i += 2 {
			f[further[i].(string)] = further[i+1] //nolint:forcetypeassert // names are constants
		}
		return f
	}

	return named, t.tell("response.output_item.added", fields{"output_index": at, "item": one})
}

// closeItem reports that the last item is done. The text of an incomplete response is incomplete.
func (t *teller) closeItem() error {
	at := len(t.Output) - 1
	t.Output[at].Status = "completed"
	if t.Status == "incomplete" {
		t.Output[at].Status = "incomplete"
	}
	return t.tell("response.output_item.done", fields{"output_index": at, "item": t.Output[at]})
}

// code reports a turn of the root in which a snippet ran.
func (t *teller) code(e *runs.Event, run string) error {
	one := item{
		ID: fmt.Sprintf("ci_%s_%d", strings.TrimPrefix(run, "run_"), len(t.Output)), Type: kindCode,
		Status: "in_progress", Run: run,
	}

	named, err := t.addItem(one)
	const prefix = "response.code_interpreter_call"
	for _, step := range []struct {
		kind string
		f    fields
	}{
		{prefix + ".in_progress", named()},
		{prefix + "_code.delta", named("delta", e.Code)},
		{prefix + "_code.done", named("code", e.Code)},
		{prefix + ".interpreting", named()},
		{prefix + ".completed", named()},
	} {
		if err == nil {
			err = t.tell(step.kind, step.f)
		}
	}
	if err != nil {
		return err
	}

	last := &t.Output[len(t.Output)-1]
	last.Code, last.Logs = e.Code, e.Stdout+e.Stderr
	if e.Error != "" {
		last.Logs += e.Error + "\n"
	}
	return t.closeItem()
}

// itemID returns the ID of the item of a call.
func (c *call) itemID() string {
	id := strings.TrimPrefix(c.ID, "call_")
	if c.kind == kindCustom {
		return "ctc_" + id
	}
	return "fc_" + id
}

// turn returns the call as a message of a conversation.
func (c *call) turn() turn {
	one := &earlierCall{kindCall, c.ID, c.Name, c.Arguments}
	if c.kind == kindCustom {
		one.Type = kindCustomCall
	}
	return turn{Role: llm.RoleAssistant, Call: one}
}

// call reports a call of a client's function.
func (t *teller) call(c call) error {
	one := item{
		ID: c.itemID(), Type: kindCall, Status: "in_progress", Call: call{ID: c.ID, Name: c.Name, kind: c.kind},
	}
	kind, done := "response.function_call_arguments", []any{"name", c.Name, "arguments", c.Arguments}
	if c.kind == kindCustom {
		one.Type, kind, done = kindCustomCall, "response.custom_tool_call_input", []any{"input", c.Arguments}
	}

	named, err := t.addItem(one)
	if err == nil {
		err = t.tell(kind+".delta", named("delta", c.Arguments))
	}
	if err == nil {
		err = t.tell(kind+".done", named(done...))
	}
	if err != nil {
		return err
	}
	t.Output[len(t.Output)-1].Call = c
	return t.closeItem()
}

// beginText reports the start of the answer's message, unless it was reported before.
func (t *teller) beginText() error {
	if n := len(t.Output); n > 0 && t.Output[n-1].Type == kindMessage {
		return nil
	}

	one := item{ID: "msg_" + strings.TrimPrefix(t.ID, "resp_"), Type: kindMessage, Status: "in_progress"}
	named, err := t.addItem(one)
	if err != nil {
		return err
	}
	empty := ""
	t.Output[len(t.Output)-1].Text = &empty
	return t.tell("response.content_part.added", named("content_index", 0, "part", newText("")))
}

// add reports a piece of the answer's text.
func (t *teller) add(text string) error {
	if err := t.beginText(); err != nil {
		return err
	}
	at := len(t.Output) - 1
	whole := *t.Output[at].Text + text
	t.Output[at].Text = &whole
	return t.tell("response.output_text.delta", fields{
		"item_id": t.Output[at].ID, "output_index": at, "content_index": 0, "delta": text, "logprobs": []struct{}{},
	})
}

// end reports how the response ended.
func (t *teller) end(got *answered, failed error, at int64) error {
	t.finish(got, failed, at)
	isWhole := t.Status == "completed"
	if got.text != "" && (isWhole || t.Status == "incomplete") || isWhole && len(got.calls) == 0 {
		if err := t.endText(got.text); err != nil {
			return err
		}
	}
	for _, c := range got.calls {
		if err := t.call(c); err != nil {
			return err
		}
	}

	if t.keep != nil && t.keep(&t.resource) != nil {
		t.Store = false // the answer is paid for, so the client receives it
	}
	kind := "response." + t.Status
	if t.Status == "cancelled" { // the protocol has no event for this
		kind = "response.incomplete"
	}
	return t.tell(kind, fields{"response": t.resource})
}

// split extracts the calls of the client's functions from an answer.
func (t *teller) split(got *answered) error {
	f, err := t.functions()
	if err == nil {
		err = f.split(got)
	}
	t.nameCalls(got.calls)
	return err
}

// endText reports that the text is complete.
func (t *teller) endText(text string) error {
	if n := len(t.Output); n == 0 || t.Output[n-1].Type != kindMessage {
		if err := t.add(text); err != nil {
			return err
		}
	}
	at := len(t.Output) - 1
	t.Output[at].Text = &text
	place := func(further string, value any) fields {
		return fields{"item_id": t.Output[at].ID, "output_index": at, "content_index": 0, further: value}
	}

	done := place("text", text)
	done["logprobs"] = []struct{}{}
	if err := t.tell("response.output_text.done", done); err != nil {
		return err
	}
	if err := t.tell("response.content_part.done", place("part", newText(text))); err != nil {
		return err
	}
	return t.closeItem()
}

// errNow ends a report at the current progress.
var errNow = errors.New("that is all for now")

// errPaused means that the report continues after the next start of the server.
var errPaused = errors.New("the server stops")

// tellRun reports the progress of a run. It calls idle when there are no new events.
func (a *API) tellRun(ctx context.Context, t *teller, tenant, run string, idle func() error) error {
	if err := t.begin(); err != nil {
		return err
	}
	err := a.Runs.Follow(ctx, tenant, run, 0, func(_ int64, line []byte) error {
		isDamaged := runs.IsDamaged(line)
		if !isDamaged && !isRootSnippet(line) {
			return nil
		}
		var e runs.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if isDamaged { // it may have been a snippet
			return t.code(&runs.Event{Event: ledger.Event{Error: e.Text}}, run)
		}
		if e.Node != "0" || e.Kind != ledger.EventSnippet {
			return nil
		}
		return t.code(&e, run)
	}, idle)
	if errors.Is(err, errNow) {
		return a.describeNow(ctx, t, tenant, run)
	}
	if err != nil {
		return err
	}

	record, err := a.Runs.Wait(ctx, tenant, run)
	if err != nil {
		return err
	}

	if record.Status == runs.StatusInterrupted && record.Background {
		return errPaused
	}
	got, failed := outcome(&record)
	if failed == nil {
		failed = t.split(&got)
	}
	return t.end(&got, failed, record.Ended.Unix())
}

// isRootSnippet reports whether a line may be a snippet of the root, so that most lines need not be
// decoded.
func isRootSnippet(line []byte) bool {
	return strings.Contains(string(line[:min(len(line), 200)]), `"kind":"snippet","node":"0"`)
}

// describeNow sets the status of an active run.
func (a *API) describeNow(ctx context.Context, t *teller, tenant, run string) error {
	record, err := a.Runs.Get(ctx, tenant, run)
	if err != nil {
		return err
	}
	if record.Status == runs.StatusQueued {
		t.Status = "queued"
	}
	return nil
}

// beginAgain reports the beginning of a direct answer that may have ended.
func (t *teller) beginAgain(known *resource) error {
	t.resource = *known
	t.Output, t.Usage, t.CompletedAt, t.Error, t.IncompleteDetails = []item{}, nil, nil, nil, nil
	t.Status, t.RLM = "queued", nil
	return t.begin()
}

// tellRest reports the rest of a direct answer that has ended, after its beginning.
func (t *teller) tellRest(known *resource) error {
	if text := known.text(); text != "" {
		if err := t.endText(text); err != nil {
			return err
		}
	}
	for _, c := range known.calls() {
		if err := t.call(c); err != nil {
			return err
		}
	}
	t.resource = *known
	kind := known.Status
	if kind == "cancelled" {
		kind = "incomplete"
	}
	return t.tell("response."+kind, fields{"response": t.resource})
}

func unixNow() int64 { return time.Now().Unix() }

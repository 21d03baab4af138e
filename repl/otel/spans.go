package otel

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/internal/record"
	"github.com/rlmhq/rlm/repl/ledger"
)

// loop is a running loop with its iteration.
type loop struct {
	kind *kind
	span trace.Span
	ctx  context.Context //nolint:containedctx // it holds the span that children belong to

	turn     trace.Span // nil before the first iteration
	turnCtx  context.Context
	snippets int // snippets in the turn
	// read is the turn's code, and wrote its output.
	read, wrote string
	about       string // the loop's question

	iterations int
	calls      int // sub-calls
	records    []callRecord
}

// callRecord describes a sub-call in the metadata of a run.
type callRecord struct {
	CallNumber     int    `json:"call_number"`
	Question       string `json:"question"`
	ContextLength  int    `json:"context_length"`
	ResponseLength int    `json:"response_length"`
	Mode           string `json:"mode"`
}

const (
	// maxRecords bounds the sub-calls in the metadata. Each also has a span.
	maxRecords = 100
	// maxRecordText bounds the question of a sub-call, in characters.
	maxRecordText = 300
	// maxSnippets bounds the snippets of an iteration that have attributes. A span has at most 128
	// attributes.
	maxSnippets = 16
)

// Event records an event of a run. It does not wait for a server.
func (o *Observer) Event(e ledger.Event) {
	if o == nil || e.Kind == ledger.EventDelta {
		return
	}
	if e.Time.IsZero() {
		e.Time = time.Now()
	}

	o.mu.Lock()
	defer o.mu.Unlock()
	switch e.Kind {
	case ledger.EventRunStarted:
		o.begin(context.Background(), e, o.root)
	case ledger.EventLoopStarted:
		parent, kind := o.parent(e.Node)
		o.begin(parent, e, kind)
	default:
		if l := o.loops[e.Node]; l != nil { // otherwise the event belongs to no run
			o.within(l, e)
		}
	}
}

// within records an event of a running loop.
func (o *Observer) within(l *loop, e ledger.Event) {
	switch e.Kind {
	case ledger.EventTurnStarted:
		o.iteration(l, e)
	case ledger.EventReply, ledger.EventCall:
		o.call(l, e)
	case ledger.EventSnippet:
		o.snippet(l, e)
	case ledger.EventAnswer:
		l.current().SetAttributes(o.named([]attribute.KeyValue{
			attribute.Bool(terminated, true), o.text(outputValue, e.Text),
		})...)
	case ledger.EventRetry,
		ledger.EventForesight, ledger.EventCompaction, ledger.EventRefusal, ledger.EventWarning,
		ledger.EventWaiting, ledger.EventVerdict, ledger.EventTool:
		l.current().AddEvent(
			string(e.Kind), trace.WithTimestamp(e.Time), trace.WithAttributes(o.named(o.happened(e))...),
		)
	case ledger.EventLoopEnded, ledger.EventRunEnded:
		o.end(l, e)
	default: // later events are more informative
	}
}

// parent returns the context of a sub-loop's parent, such as "0" for "0.2", and the kind of the
// sub-loop.
func (o *Observer) parent(node string) (context.Context, *kind) {
	if at := strings.LastIndexByte(node, '.'); at >= 0 {
		if l := o.loops[node[:at]]; l != nil {
			return l.place(), l.kind.subKind()
		}
	}
	return context.Background(), o.root.subKind()
}

// current returns the span of the iteration, or of the loop before its first iteration.
func (l *loop) current() trace.Span {
	if l.turn != nil {
		return l.turn
	}
	return l.span
}

func (l *loop) place() context.Context {
	if l.turn != nil {
		return l.turnCtx
	}
	return l.ctx
}

// begin starts the span of a run or a sub-loop. It first ends an earlier run that is still open.
func (o *Observer) begin(parent context.Context, e ledger.Event, kind *kind) {
	if old := o.loops[e.Node]; old != nil {
		o.end(old, ledger.Event{Time: e.Time, Node: e.Node})
	}
	l := &loop{kind: kind, about: e.Text}
	attributes := []attribute.KeyValue{
		attribute.String(genOperation, operationAgent), attribute.String(loopNode, e.Node),
		attribute.String(genAgent, o.name(cmp.Or(e.Agent, kind.run))), o.text(inputValue, e.Text),
	}
	if provider, model := splitModel(e); model != "" { // nodes of workflows have no model
		attributes = append(attributes, attribute.String(genModel, o.name(model)),
			attribute.String(genProvider, o.name(provider)))
	}

	attributes = append(append(attributes, o.conversation()...), o.labels(e)...)
	l.ctx, l.span = o.tracer.Start(
		parent, kind.run, trace.WithTimestamp(e.Time), trace.WithAttributes(o.named(attributes)...),
	)
	o.loops[e.Node] = l
}

// iteration starts the span of a turn and ends the previous one.
func (o *Observer) iteration(l *loop, e ledger.Event) {
	l.endTurn(e.Time)
	l.iterations++
	l.snippets, l.read, l.wrote = 0, "", ""
	number := e.Turn - 1 + l.kind.first // events count turns from 1
	l.turnCtx, l.turn = o.tracer.Start(
		l.ctx,
		l.kind.iteration+strconv.Itoa(number),
		trace.WithTimestamp(e.Time),
		trace.WithAttributes(o.named(append([]attribute.KeyValue{
			attribute.Int(iterationNumber, number), attribute.Bool(terminated, false),
			o.text(inputValue, l.about), // until a snippet runs
		}, o.labels(e)...))...),
	)
}

// labels returns the labels of the run's task as attributes.
func (o *Observer) labels(e ledger.Event) []attribute.KeyValue {
	all := make([]attribute.KeyValue, 0, len(e.Labels))
	for _, name := range slices.Sorted(maps.Keys(e.Labels)) {
		all = append(all, attribute.String(label+name, o.name(e.Labels[name])))
	}
	return all
}

func (l *loop) endTurn(at time.Time) {
	if l.turn != nil {
		l.turn.End(trace.WithTimestamp(at))
		l.turn = nil
	}
}

// snippet adds a snippet's attributes to the span of its iteration.
func (o *Observer) snippet(l *loop, e ledger.Event) {
	suffix := ""
	if l.snippets > 0 {
		suffix = "." + strconv.Itoa(l.snippets)
	}
	if l.snippets++; l.snippets > maxSnippets {
		return
	}

	attributes := []attribute.KeyValue{
		attribute.String(snippetTier+suffix, e.Tier),
		attribute.String(snippetStatus+suffix, e.Status),
	}
	code, stdout, stderr := e.Text, "", ""
	if e.Ran != nil {
		ran := *e.Ran
		ran.Calls = nil // they have separate spans
		block := record.BlockOf(&ran, nil)
		code, stdout, stderr = block.Code, block.Result.Stdout, block.Result.Stderr
	}

	attributes = append(attributes, o.text(snippetCode+suffix, code),
		o.text(snippetStdout+suffix, stdout), o.text(snippetStderr+suffix, stderr))
	l.read, l.wrote = join(l.read, code), join(l.wrote, stdout+stderr)
	if l.turn != nil { // the values that viewers show for an iteration
		attributes = append(attributes, o.text(inputValue, l.read), o.text(outputValue, l.wrote))
	}
	l.current().SetAttributes(o.named(attributes)...)
}

// join joins the code or the output of two snippets.
func join(before, text string) string {
	if before == "" || text == "" {
		return before + text
	}
	return before + "\n" + text
}

// happened returns the attributes of an event that is added to a span.
func (o *Observer) happened(e ledger.Event) []attribute.KeyValue {
	var all []attribute.KeyValue
	for _, part := range []struct{ key, text string }{
		{errorText, e.Error},
		{purpose, e.Purpose},
		{loopStatus, e.Status},
		{outputValue, e.Text},
	} {
		if part.text != "" {
			all = append(all, o.text(part.key, part.text))
		}
	}

	return append(all, o.used(e.Used)...)
}

// failed marks a span as failed if there is an error. Kind is one of a few words.
func (o *Observer) failed(span trace.Span, text, kind string) {
	if text != "" {
		span.SetStatus(codes.Error, texts.Truncate(o.clean(text), o.cfg.MaxText))
		span.SetAttributes(attribute.String(errorType, o.name(kind)))
	}
}

// broken holds the statuses that mark a span as failed. Runs with another status may also have a
// reason.
var broken = []string{"failed", "canceled", "broken"}

// end ends a loop. The end of the root ends all open spans.
func (o *Observer) end(l *loop, e ledger.Event) {
	delete(o.loops, e.Node)
	if e.Kind == ledger.EventRunEnded {
		o.endOpen(e.Time)
	}
	l.endTurn(e.Time)
	attributes := []attribute.KeyValue{
		attribute.Int(totalIterations, l.iterations),
		attribute.String(loopStatus, e.Status),
		o.text(outputValue, e.Text),
	}

	if l.calls > 0 {
		attributes = append(
			attributes, attribute.Int(subagentCallCount, l.calls), jsonOf(subagentCalls, l.records),
		)
	}
	if e.Spent != nil { // separate names: viewers add up the attributes of calls
		attributes = append(
			attributes, attribute.Int64(totalInputTokens, e.Spent.InputTokens),
			attribute.Int64(totalOutputTokens, e.Spent.OutputTokens),
			attribute.Float64(totalUSD, e.Spent.USD),
		)
	}

	switch {
	case e.Error == "":
	case e.Kind == ledger.EventRunEnded && !slices.Contains(broken, e.Status):
		attributes = append(attributes, o.text(reason, e.Error))
	default:
		o.failed(l.span, e.Error, cmp.Or(e.Status, otherError))
	}
	l.span.SetAttributes(o.named(attributes)...)

	l.span.End(trace.WithTimestamp(e.Time))
}

// endAll ends all open spans.
func (o *Observer) endAll(at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.endOpen(at)
}

// endOpen ends the open spans, children before parents.
func (o *Observer) endOpen(at time.Time) {
	nodes := slices.Sorted(maps.Keys(o.loops))
	slices.Reverse(nodes)
	for _, node := range nodes {
		if l := o.loops[node]; l != nil {
			o.end(l, ledger.Event{Time: at, Node: node})
		}
	}
}

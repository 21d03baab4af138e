package otel

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
)

// content selects the messages of model calls that are exported.
type content int

const (
	ownContent content = iota // questions of snippets, and replies
	allContent                // whole conversations and system instructions, too
	noContent
)

// captured returns the selection requested by the conventions' variable.
func (c *Config) captured() content {
	const name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
	switch value := c.Env(name); {
	case isOneOf(value, "true", "1", "yes", "on", "span_only", "span_and_event"):
		return allContent
	case isOneOf(value, "false", "0", "no", "off", "no_content", "event_only"):
		return noContent
	}
	return ownContent
}

// maxMessages bounds the messages of a conversation on a span. Earlier messages are only
// counted.
const maxMessages = 40

// message is a message as the conventions define it.
type message struct {
	Role   string `json:"role"`
	Parts  []part `json:"parts"`
	Finish string `json:"finish_reason,omitempty"` // why a reply ended
}

// part is a part of a message.
type part struct {
	Type    string `json:"type"`
	Content string `json:"content"`
}

// part returns a string as a part of a message.
func (o *Observer) part(text string) part {
	return part{"text", texts.Truncate(o.clean(text), o.cfg.MaxText)}
}

// call records the span of a finished model call.
func (o *Observer) call(l *loop, e ledger.Event) {
	provider, model := splitModel(e)
	attributes := []attribute.KeyValue{
		attribute.String(genOperation, operationChat), attribute.String(genModel, o.name(model)),
		attribute.String(purpose, o.name(e.Purpose)),
	}
	if provider != "" {
		attributes = append(attributes, attribute.String(genProvider, o.name(provider)))
	}
	if o.cfg.To == Opik { // which does not support the newer name yet
		attributes = append(attributes, attribute.String(genSystem, o.name(provider)))
	}
	if e.Agent != "" {
		attributes = append(attributes, attribute.String(genAgent, o.name(e.Agent)))
	}

	attributes = append(attributes, o.conversation()...)
	attributes = append(attributes, o.asked(e)...)
	attributes = append(attributes, o.answered(e)...)
	attributes = append(attributes, o.messages(e)...)
	if e.Call != nil {
		if e.Call.Mode != "" {
			attributes = append(attributes, attribute.String(mode, o.name(e.Call.Mode)))
		}
		o.record(l, e.Call)
	}

	attributes = append(append(attributes, o.used(e.Used)...), o.labels(e)...)
	_, span := o.tracer.Start(
		l.place(), operationChat+" "+o.name(model), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithTimestamp(e.Time.Add(-e.Elapsed)), trace.WithAttributes(o.named(attributes)...),
	)
	o.failed(span, e.Error, errorTypeOf(e.Err))
	span.End(trace.WithTimestamp(e.Time))

	if e.Call == nil && l.turn != nil && l.snippets == 0 && o.captured != noContent {
		l.turn.SetAttributes(o.named([]attribute.KeyValue{o.text(outputValue, e.Text)})...)
	}
}

// splitModel returns the provider of a call, under its name in the conventions, and the model.
func splitModel(e ledger.Event) (provider, model string) {
	provider, model, ok := strings.Cut(e.Model, "/")
	if !ok {
		provider, model = "", e.Model
	}
	if e.Request != nil && e.Request.Model != "" {
		model = e.Request.Model
	}
	if known := providerNames[provider]; known != "" {
		provider = known
	}
	return provider, model
}

// asked returns the attributes of a call's request.
func (o *Observer) asked(e ledger.Event) []attribute.KeyValue {
	var all []attribute.KeyValue
	if e.Host != "" {
		all = append(all, attribute.String(serverAddress, o.name(e.Host)),
			attribute.Int(serverPort, e.Port))
	}
	r := e.Request
	if r == nil {
		return all
	}

	if r.MaxTokens > 0 {
		all = append(all, attribute.Int(genMaxTokens, r.MaxTokens))
	}
	if r.Temperature != nil {
		all = append(all, attribute.Float64(genTemperature, *r.Temperature))
	}
	if r.TopP != nil {
		all = append(all, attribute.Float64(genTopP, *r.TopP))
	}
	if r.Seed != nil {
		all = append(all, attribute.Int64(genSeed, *r.Seed))
	}
	if r.Schema != nil {
		all = append(all, attribute.String(genOutputType, "json"))
	}
	return all
}

// answered returns the attributes of a call's response.
func (o *Observer) answered(e ledger.Event) []attribute.KeyValue {
	var all []attribute.KeyValue
	if e.Status != "" {
		all = append(all, attribute.StringSlice(genFinish, []string{o.name(e.Status)}))
	}
	r := e.Response
	if r == nil {
		return all
	}

	if r.ID != "" {
		all = append(all, attribute.String(genResponseID, o.name(r.ID)))
	}
	if r.Model != "" {
		all = append(all, attribute.String(genResponseModel, o.name(r.Model)))
	}
	for _, n := range []struct {
		key   string
		count int64
	}{
		{genCacheRead, r.Usage.CachedTokens},
		{genCacheWrite, r.Usage.CacheWriteTokens},
		{genReasoning, r.Usage.ReasoningTokens},
	} {
		if n.count > 0 {
			all = append(all, attribute.Int64(n.key, n.count))
		}
	}
	return all
}

// messages returns the exported part of a call's conversation.
func (o *Observer) messages(e ledger.Event) []attribute.KeyValue {
	if o.captured == noContent {
		return nil
	}
	all := []attribute.KeyValue{jsonOf(genOutput, []message{{
		Role: string(llm.RoleAssistant), Parts: []part{o.part(e.Text)}, Finish: finishOf(e),
	}})}

	switch {
	case o.captured == allContent && e.Request != nil:
		return append(all, o.conversationOf(e.Request.Messages)...)
	case e.Call != nil:
		all = append(all, jsonOf(genInput, []message{{
			Role: string(llm.RoleUser), Parts: []part{o.part(e.Call.Prompt)},
		}}))
	}
	return all
}

// conversationOf returns the messages of a request and, separately, its system instructions.
func (o *Observer) conversationOf(given []llm.Message) []attribute.KeyValue {
	system, sent := []part{}, []message{}
	for _, m := range given {
		if m.Role == llm.RoleSystem {
			system = append(system, o.part(m.Content))
			continue
		}
		parts := []part{o.part(m.Content)}
		if n := len(m.Images); n > 0 {
			parts = append(parts, part{"text", fmt.Sprintf("[%d pictures left out]", n)})
		}
		sent = append(sent, message{Role: string(m.Role), Parts: parts})
	}
	if cut := len(sent) - maxMessages; cut > 0 {
		sent = sent[cut:]
		note := part{"text", fmt.Sprintf("[%d earlier messages left out]", cut)}
		sent[0].Parts = append([]part{note}, sent[0].Parts...)
	}

	all := []attribute.KeyValue{jsonOf(genInput, sent)}
	if len(system) > 0 {
		all = append(all, jsonOf(genInstructions, system[:min(len(system), maxMessages)]))
	}
	return all
}

// finishOf returns the reason why a reply ended, under its name in the conventions.
func finishOf(e ledger.Event) string {
	switch {
	case e.Error != "":
		return "error"
	case e.Status == llm.FinishRefusal:
		return "content_filter"
	}
	return e.Status
}

// conversation returns the attributes of the conversation to which the run belongs.
func (o *Observer) conversation() []attribute.KeyValue {
	if o.cfg.Conversation == "" {
		return nil
	}
	id := o.name(o.cfg.Conversation)
	key := sessionID
	if o.cfg.To == Opik {
		key = threadID
	}
	return []attribute.KeyValue{
		attribute.String(genConversation, id), attribute.String(key, id),
	}
}

// used returns the tokens and the cost of a call or a run as attributes.
func (o *Observer) used(s *ledger.Spending) []attribute.KeyValue {
	if s == nil || s.Calls == 0 && s.ToolCalls > 0 {
		return nil
	}
	all := []attribute.KeyValue{
		attribute.Int64(genInputTokens, s.InputTokens),
		attribute.Int64(genOutputTokens, s.OutputTokens),
		attribute.Float64(costUSD, s.USD),
	}
	if o.cfg.To != Opik && s.Unpriced == 0 { // Opik accepts only whole numbers for the usage
		all = append(all, attribute.Float64(genCost, s.USD))
	}
	return all
}

// otherError is the conventions' name for an error without a type.
const otherError = "_OTHER"

// errorTypeOf returns one of a small set of words for an error: the HTTP status or the kind of
// failure.
func errorTypeOf(err error) string {
	var failed *llm.Error
	var budget *ledger.BudgetError
	switch {
	case errors.As(err, &failed) && failed.Status != 0:
		return strconv.Itoa(failed.Status)
	case errors.As(err, &failed) && failed.Kind != nil:
		return strings.ReplaceAll(failed.Kind.Error(), " ", "_")
	case errors.As(err, &budget):
		return "budget"
	}
	return otherError
}

// record adds a sub-call to the metadata.
func (o *Observer) record(l *loop, c *ledger.SubCall) {
	if l.calls++; len(l.records) >= maxRecords {
		return
	}
	l.records = append(l.records, callRecord{
		CallNumber:     l.calls,
		Question:       texts.Truncate(o.clean(c.Question), maxRecordText),
		ContextLength:  c.ContextLength,
		ResponseLength: len([]rune(c.Response)),
		Mode:           o.name(c.Mode),
	})
}

func jsonOf(key string, v any) attribute.KeyValue {
	data, err := json.Marshal(v)
	if err != nil { // strings and numbers always encode
		return attribute.String(key, err.Error())
	}
	return attribute.String(key, string(data))
}

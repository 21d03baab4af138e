package agenttrace

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

func isOTLP(root any) bool {
	return some(root, func(v any) bool { return hasAny(v, "resourceSpans", "scopeSpans") }) ||
		someItem(root, isFlatSpan)
}

// isFlatSpan reports whether v is a span as written by the console exporter or by Phoenix.
func isFlatSpan(v any) bool {
	attributes, _ := get(v, "attributes").(map[string]any)
	for key := range attributes {
		for _, prefix := range []string{"gen_ai", "llm", "openinference", "input.value"} {
			if strings.HasPrefix(key, prefix) {
				return true
			}
		}
	}
	return false
}

// splitOTLP collects the spans of all resources and scopes by trace.
func splitOTLP(root located) ([]located, error) {
	var spans []located
	var collect func(located) error
	each := func(list located) error {
		items, err := list.list()
		for i := 0; err == nil && i < len(items); i++ {
			err = collect(items[i])
		}
		return err
	}
	collect = func(v located) error {
		for _, key := range []string{"resourceSpans", "scopeSpans", "spans"} {
			if inner := v.member(key); inner.any != nil {
				return each(inner)
			}
		}
		if v.member("attributes").any != nil || v.member("name").any != nil {
			spans = append(spans, v)
		}
		return nil
	}
	begin := collect
	if _, ok := root.any.([]any); ok {
		begin = each
	}
	if err := begin(root); err != nil {
		return nil, err
	}

	return splitSpans(spans, otlpSpan)
}

// otlpSpan reads a span with attributes of OpenTelemetry's GenAI conventions, of
// OpenInference, or of OpenLLMetry.
func otlpSpan(v located) (span, error) {
	attributes, err := otlpAttributes(v.member("attributes"))
	if err != nil {
		return span{}, err
	}
	s := span{
		id:     plain(v.first("spanId", "span_id").any, get(v.any, "context", "span_id")),
		parent: plain(v.first("parentSpanId", "parent_id").any),
		trace:  plain(v.first("traceId", "trace_id").any, get(v.any, "context", "trace_id")),
		name:   plain(attributes["gen_ai.tool.name"], attributes["tool.name"], v.member("name").any),
		kind: strings.ToLower(plain(attributes["openinference.span.kind"],
			attributes["gen_ai.operation.name"], attributes["traceloop.span.kind"])),
		call:  plain(attributes["gen_ai.tool.call.id"], attributes["tool_call.id"]),
		start: v.first("startTimeUnixNano", "start_time").nanos(),
		end:   v.first("endTimeUnixNano", "end_time").nanos(),
	}
	if known := spanKinds[s.kind]; known != "" {
		s.kind = known
	} else if hasPrefix(attributes, "gen_ai.prompt.") || hasPrefix(attributes, "gen_ai.completion.") {
		s.kind = spanModel
	}

	code := plain(v.member("status").first("code", "status_code").any)
	if code == "2" || strings.HasSuffix(code, "ERROR") {
		status := v.member("status").first("message", "description")
		s.failure = plain(status.any, attributes["error.type"], failed)
	}
	s.passed = code == "1" || strings.HasSuffix(code, "OK")

	events, err := otlpEvents(v.member("events"))
	if err != nil {
		return span{}, err
	}
	find := func(keys ...string) located {
		for _, from := range []map[string]any{attributes, events} {
			for _, key := range keys {
				if from[key] != nil {
					return located{any: from[key], path: v.place() + ".attributes." + key}
				}
				if list := unflatten(from, key+".", 0); list != nil {
					return located{any: list, path: v.place() + ".attributes." + key}
				}
			}
		}
		return located{}
	}

	s.system = decodedText(find("gen_ai.system_instructions"))
	s.input = find("gen_ai.tool.call.arguments", "gen_ai.input.messages", "llm.input_messages",
		"gen_ai.prompt", "input.value", "traceloop.entity.input")
	s.output = find("gen_ai.tool.call.result", "gen_ai.output.messages", "llm.output_messages",
		"gen_ai.completion", "output.value", "traceloop.entity.output")

	return s, nil
}

func hasPrefix(attributes map[string]any, prefix string) bool {
	for key := range attributes {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// decodedText returns the JSON in a string, or else the string itself.
func decodedText(l located) located {
	if inner, err := newTalk(everything).decode(l); err == nil {
		return inner
	}
	return l
}

// plain returns the first value that is a string or a number, as a string.
func plain(values ...any) string {
	for _, v := range values {
		switch v := v.(type) {
		case string:
			if v != "" {
				return v
			}
		case fmt.Stringer: // a number
			return v.String()
		}
	}
	return ""
}

// otlpAttributes returns attributes by their names, from a list of OTLP or from an object.
func otlpAttributes(attributes located) (map[string]any, error) {
	if object, ok := attributes.any.(map[string]any); ok {
		flat := map[string]any{}
		flatten(flat, "", object)
		return flat, nil
	}
	list, err := attributes.list()
	if err != nil {
		return nil, err
	}

	all := map[string]any{}
	for _, item := range list {
		key, err := item.member("key").text()
		if err != nil {
			return nil, err
		}
		all[key] = otlpValue(item.member("value").any)
	}
	return all, nil
}

// flatten adds the members of nested objects under dotted names. Lists are unchanged.
func flatten(into map[string]any, prefix string, object map[string]any) {
	for key, value := range object {
		if inner, ok := value.(map[string]any); ok {
			flatten(into, prefix+key+".", inner)
			continue
		}
		into[prefix+key] = value
	}
}

// otlpValue returns the value in an AnyValue.
func otlpValue(v any) any {
	if list, ok := get(v, "arrayValue", "values").([]any); ok {
		all := make([]any, len(list))
		for i, item := range list {
			all[i] = otlpValue(item)
		}
		return all
	}
	if list, ok := get(v, "kvlistValue", "values").([]any); ok {
		all := map[string]any{}
		for _, item := range list {
			if key, ok := get(item, "key").(string); ok {
				all[key] = otlpValue(get(item, "value"))
			}
		}
		return all
	}

	return under(v, "stringValue", "intValue", "doubleValue", "boolValue", "bytesValue")
}

// otlpEvents returns the contents of a span's events: its messages, which earlier conventions
// put into events rather than attributes, and the attributes of other events.
func otlpEvents(events located) (map[string]any, error) {
	list, err := events.list()
	if err != nil {
		return nil, err
	}

	all := map[string]any{}
	var given, returned []any
	for _, event := range list {
		attributes, err := otlpAttributes(event.member("attributes"))
		if err != nil {
			return nil, err
		}
		name := plain(event.member("name").any)
		role, isMessage := strings.CutSuffix(strings.TrimPrefix(name, "gen_ai."), ".message")
		switch {
		case name == "gen_ai.choice":
			message := decodedText(located{any: attributes["message"]}).any
			if object, ok := message.(map[string]any); ok && !has(object, "role") {
				object["role"] = "assistant"
			}
			returned = append(returned, message)
		case isMessage && strings.HasPrefix(name, "gen_ai."):
			message := map[string]any{"role": role}
			for key, value := range attributes {
				message[key] = value
			}
			message["tool_calls"] = decodedText(located{any: attributes["tool_calls"]}).any
			given = append(given, message)
		default:
			maps.Copy(all, attributes)
		}
	}

	if given != nil {
		all["gen_ai.input.messages"] = given
	}
	if returned != nil {
		all["gen_ai.output.messages"] = returned
	}
	return all, nil
}

// unflatten returns the list whose members have dotted and numbered names, such as
// "llm.input_messages.0.message.role". It returns nil if there is none, or if the names are
// nested too deeply.
func unflatten(attributes map[string]any, prefix string, depth int) any {
	if depth > maxUnflat {
		return nil
	}
	inner := map[string]map[string]any{}
	for key, value := range attributes {
		rest, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		name, rest, _ := strings.Cut(rest, ".")
		if inner[name] == nil {
			inner[name] = map[string]any{}
		}
		inner[name][rest] = value
	}
	if len(inner) == 0 {
		return nil
	}

	var list []any
	object := map[string]any{}
	for _, name := range slices.SortedFunc(maps.Keys(inner), byNumber) {
		value := inner[name][""]
		if value == nil {
			value = unflatten(inner[name], "", depth+1)
		}
		if _, err := strconv.Atoi(name); err == nil {
			list = append(list, value)
		}
		object[name] = value
	}
	if len(list) == len(object) {
		return list
	}

	for _, wrapper := range []string{"message", "tool_call", "message_content"} { // OpenInference's wrappers
		if len(object) == 1 && object[wrapper] != nil {
			return object[wrapper]
		}
	}
	return object
}

// maxUnflat bounds the dots in the names that unflatten reads.
const maxUnflat = 12

func byNumber(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

package agenttrace

import (
	"fmt"
	"strings"
)

func isLangSmith(root any) bool {
	return some(root, func(run any) bool {
		return has(run, "run_type") && hasAny(run, "inputs", "outputs", "child_runs", "error")
	})
}

// splitLangSmith collects the runs by trace, including nested ones.
func splitLangSmith(root located) ([]located, error) {
	if !isLangSmith(root.any) {
		return nil, fmt.Errorf(`no run has "run_type", and "inputs", "outputs", "child_runs" or "error"; it is %s`,
			describe(root.any))
	}
	list := []located{root}
	if _, ok := root.any.([]any); ok {
		var err error
		if list, err = root.list(); err != nil {
			return nil, err
		}
	}

	var runs []located
	var collect func(run, parent located) error
	collect = func(run, parent located) error {
		if err := run.object(); err != nil {
			return err
		}
		runs = append(runs, run.inherit(parent))
		children, err := run.member("child_runs").list()
		for i := 0; err == nil && i < len(children); i++ {
			err = collect(children[i], runs[len(runs)-1])
		}
		return err
	}
	for _, run := range list {
		if err := collect(run, located{}); err != nil {
			return nil, err
		}
	}

	return splitSpans(runs, langSmithSpan)
}

// inherit fills in a run's missing trace and parent.
func (l located) inherit(parent located) located {
	object, _ := l.any.(map[string]any)
	whole := map[string]any{}
	for key, value := range object {
		whole[key] = value
	}
	if whole["parent_run_id"] == nil {
		whole["parent_run_id"] = parent.member("id").any
	}
	if whole["trace_id"] == nil {
		whole["trace_id"] = parent.first("trace_id", "id").any
	}
	if whole["trace_id"] == nil {
		whole["trace_id"] = whole["id"]
	}
	return located{any: whole, path: l.path}
}

func langSmithSpan(run located) (span, error) {
	failure, err := run.member("error").show()
	return span{
		id: plain(run.member("id").any), parent: plain(run.member("parent_run_id").any),
		trace: plain(run.member("trace_id").any), name: plain(run.member("name").any),
		kind: spanKinds[plain(run.member("run_type").any)],
		call: plain(get(run.any, "inputs", "tool_call_id"),
			get(run.any, "outputs", "output", "tool_call_id")),
		input:  run.member("inputs"),
		output: run.member("outputs").only("output"), failure: failure,
		passed: run.member("status").any == "success",
		start:  run.member("start_time").nanos(), end: run.member("end_time").nanos(),
	}, err
}

// only returns the member of an object that has no other members, or else the object.
func (l located) only(key string) located {
	if object, ok := l.any.(map[string]any); ok && len(object) == 1 && object[key] != nil {
		return l.member(key)
	}
	return l
}

func isLangfuse(root any) bool {
	observation := func(v any) bool {
		return has(v, "traceId", "type") && hasAny(v, "startTime", "parentObservationId")
	}
	if list, ok := get(root, "observations").([]any); ok {
		return len(list) == 0 || some(list, func(v any) bool { return has(v, "type") })
	}
	return some(under(root, "data"), observation)
}

// splitLangfuse collects the observations by trace. The trace itself becomes the outermost span.
func splitLangfuse(root located) ([]located, error) {
	list, err := listIn(root, "data").list()
	if root.member("observations").any != nil {
		list, err = root.member("observations").list()
		list = append([]located{root}, list...)
	}
	if err != nil {
		return nil, err
	}

	id := root.member("id")
	return splitSpans(list, func(v located) (span, error) {
		s := span{
			id: plain(v.member("id").any), parent: plain(v.member("parentObservationId").any, id.any),
			trace: plain(v.member("traceId").any, id.any), name: plain(v.member("name").any),
			kind:  spanKinds[strings.ToLower(plain(v.member("type").any))],
			input: v.member("input"), output: v.member("output"),
			start: v.first("startTime", "timestamp").nanos(), end: v.member("endTime").nanos(),
		}
		if s.id == s.parent {
			s.parent = "" // the trace
		}
		if scores, ok := v.member("scores").any.([]any); ok && len(scores) > 0 {
			s.feedback = scoreText(scores)
		}
		if v.member("level").any == "ERROR" {
			s.failure = plain(v.member("statusMessage").any, failed)
		}
		return s, nil
	})
}

// scoreText writes scores as NAME: VALUE, with their comments.
func scoreText(scores []any) string {
	var lines []string
	for _, score := range scores {
		value := plain(get(score, "stringValue"), get(score, "value"))
		line := plain(get(score, "name"), "score") + ": " + value
		if comment := plain(get(score, "comment")); comment != "" {
			line += " (" + comment + ")"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func isAgentsSpans(root any) bool {
	return some(under(root, "data"), func(v any) bool {
		return get(v, "object") == "trace.span" && has(v, "span_data")
	})
}

// splitAgentsSpans collects the spans by trace.
func splitAgentsSpans(root located) ([]located, error) {
	list, err := listIn(root, "data").list()
	if err != nil {
		return nil, err
	}
	var spans []located
	for _, item := range list {
		if item.member("span_data").any != nil {
			spans = append(spans, item)
		}
	}

	return splitSpans(spans, func(v located) (span, error) {
		data := v.member("span_data")
		s := span{
			id: plain(v.member("id").any), parent: plain(v.member("parent_id").any),
			trace: plain(v.member("trace_id").any),
			name:  plain(data.member("name").any, data.member("type").any),
			kind:  spanKinds[plain(data.member("type").any)],
			input: data.first("input", "_input"), output: data.first("output", "_response"),

			failure: plain(v.member("error").any, get(v.any, "error", "message")),
			start:   v.member("started_at").nanos(), end: v.member("ended_at").nanos(),
		}
		return s, nil
	})
}

package openai

import (
	"encoding/json"
	"math"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/server/internal/runs"
)

// format is the requested format of the answer. In responses, the members of json_schema are in the
// format itself.
type format struct {
	Type       string `json:"type"`
	JSONSchema *struct {
		Schema json.RawMessage `json:"schema"`
	} `json:"json_schema"`
	Schema json.RawMessage `json:"schema"`
}

// words is a list of strings. In JSON, a single string is also allowed.
type words []string

// UnmarshalJSON implements [json.Unmarshaler].
func (w *words) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*w = nil
		if string(data) != "null" {
			*w = words{one}
		}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(w))
}

// whole is an integer, which some clients write as 1.0.
type whole int64

// UnmarshalJSON implements [json.Unmarshaler].
func (n *whole) UnmarshalJSON(data []byte) error {
	text := string(data)
	if text == "null" {
		return nil
	}
	if exact, err := strconv.ParseInt(text, 10, 64); err == nil {
		*n = whole(exact)
		return nil
	}

	const most = 1 << 53 // a larger float may represent several integers
	number, err := strconv.ParseFloat(text, 64)
	if err != nil || number != math.Trunc(number) || math.Abs(number) > most {
		return &json.UnmarshalTypeError{Value: "number " + text[:min(len(text), 20)], Type: reflect.TypeFor[int64]()}
	}
	*n = whole(number)
	return nil
}

// shared contains the members that both kinds of requests have.
type shared struct {
	Model       string            `json:"model"`
	Stream      bool              `json:"stream"`
	Temperature *float64          `json:"temperature"`
	TopP        *float64          `json:"top_p"`
	Seed        *whole            `json:"seed"`
	Metadata    map[string]string `json:"metadata"`
	Store       *bool             `json:"store"`

	Tools             []tool          `json:"tools"`
	ToolChoice        json.RawMessage `json:"tool_choice"`
	ParallelToolCalls *bool           `json:"parallel_tool_calls"`
}

// read reads the settings of a request.
func (s *shared) read(r *http.Request, q *asked) (err error) {
	if q.Profile, err = profileOf(s.Model); err != nil {
		return err
	}

	q.sampling.Temperature, q.sampling.TopP, q.sampling.Seed = s.Temperature, s.TopP, (*int64)(s.Seed)
	q.word = r.Header.Get("Idempotency-Key")
	for _, t := range s.Tools {
		switch t.Type {
		case kindFunction, kindCustom:
		case "code_interpreter":
			q.loop = true
		default:
			return problem.Bad("tools", "a tool has the type %.40q: this server has code_interpreter, function and "+
				"custom; give snippets other tools with rlm serve --tool or --mcp", t.Type)
		}
	}
	if len(s.Metadata) > 16 {
		return problem.Bad("metadata", "there are %d pairs, more than 16", len(s.Metadata))
	}
	return q.readBudget(s.Metadata)
}

// readBudget reads the metadata pairs that bound a run.
func (q *asked) readBudget(metadata map[string]string) error {
	seconds := int64(0)
	turns := int64(0)
	whole := map[string]*int64{
		"rlm_budget_calls": &q.Budget.Calls, "rlm_budget_tokens": &q.Budget.Tokens,
		"rlm_budget_tool_calls": &q.Budget.ToolCalls,
		"rlm_budget_seconds":    &seconds, "rlm_max_turns": &turns,
	}
	for name, into := range whole {
		text, given := metadata[name]
		if !given {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 || n > 1<<31 {
			return problem.Bad("metadata."+name, "%.40q is not a whole number from 1 on", text)
		}
		*into = n
	}
	q.Budget.Wall, q.MaxTurns = time.Duration(seconds)*time.Second, int(turns)

	if text, given := metadata["rlm_budget_usd"]; given {
		usd, err := strconv.ParseFloat(text, 64)
		if err != nil || !(usd > 0) || math.IsInf(usd, 0) {
			return problem.Bad("metadata.rlm_budget_usd", "%.40q is no amount of US dollars", text)
		}
		q.Budget.USD = usd
	}
	return nil
}

// readFormat reads the requested format of the answer.
func (q *asked) readFormat(f *format, param string) error {
	if f == nil {
		return nil
	}

	switch f.Type {
	case "", "text":
	case "json_object":
		q.Schema = json.RawMessage(`{"type":"object"}`)
	case "json_schema":
		if q.Schema = f.Schema; f.JSONSchema != nil {
			q.Schema = f.JSONSchema.Schema
		}
		if len(q.Schema) == 0 {
			return problem.Bad(param, "the format json_schema has no schema")
		}
		if len(q.Schema) > runs.MaxSchema {
			return problem.Bad(param, "the schema has %d bytes, more than %d", len(q.Schema), runs.MaxSchema)
		}
	default:
		return problem.Bad(param, "unknown format %.40q: give text, json_object or json_schema", f.Type)
	}
	return nil
}

// readText reads the member text.format of responses.
func (q *asked) readText(raw json.RawMessage) error {
	if len(raw) == 0 {
		return nil
	}

	var f format
	if err := decode(raw, &f); err != nil {
		return err
	}
	return q.readFormat(&f, "text.format")
}

// readTokens reads the limit on the answer's tokens.
func (q *asked) readTokens(n *whole, param string) error {
	if n == nil {
		return nil
	}
	if *n < 1 || *n > 1<<31 {
		return problem.Bad(param, "give a positive number of tokens")
	}
	q.maxTokens = int(*n)
	return nil
}

// finishOf returns why a direct answer ended, in the terms of chat completions.
func finishOf(finish string) string {
	switch finish {
	case llm.FinishLength:
		return "length"
	case llm.FinishRefusal:
		return "content_filter"
	}
	return "stop"
}

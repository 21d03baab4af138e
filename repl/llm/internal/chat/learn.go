package chat

import (
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/repl/internal/usage"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// change is a change of requests to a model, learned from a refusal. It is remembered once the
// model answers the changed request.
type change struct {
	apply func(*traits) // nil for no change
	// isDoubtful reports that the failure may have had another reason.
	isDoubtful bool
	// isGuess reports that the failure gave no reason, so the change applies only in this process.
	isGuess bool
	// isOnce reports that the change applies only to this request: its value was refused, but the
	// value of another request may be accepted.
	isOnce bool
}

// drops returns the change that leaves a part out.
func drops(part string) change { return change{apply: func(t *traits) { t.drop(part) }} }

// The words with which servers refuse parts of requests, in lower case.
var (
	// limitNames are the names of the limit of a reply.
	limitNames = []string{
		"max_tokens", "max_completion_tokens", "max_output_tokens", "max_new_tokens", "maxoutputtokens",
		"max tokens", "completion tokens", "output tokens", "maximum tokens you requested",
	}

	// foreignWords say that a server does not support a member of a request.
	foreignWords = []string{
		"not supported", "unsupported", "extra inputs", "extra fields", "not permitted", "not allowed",
		"unknown", "unrecogni", "unexpected", "additional propert", "instead", "deprecated",
		"no such", "does not support", "invalid field", "cannot find field",
	}

	// tooMuchWords say that a limit is too large.
	tooMuchWords = []string{
		"too large", "too high", "too big", "at most", "exceed", "less than", "greater than", "larger than",
		"maximum", "valid range", "range of", "<=", ">", "between", "up to", "must be in", "above", "limit of",
		"范围", "参数非法",
	}

	// promptWords say that a limit is too large for this prompt.
	promptWords = []string{
		"prompt", "input token", "input length", "your input", "in the messages", "messages resulted",
	}

	// toolWords complain about tools, even in requests with a schema.
	toolWords = []string{"tool", "function"}

	// oneCallWords complain about the request for a single call.
	oneCallWords = []string{"parallel_tool", "parallel tool", "parallel function", "tool_choice", "tool choice"}

	// schemaWords complain about a schema, or about replies that must follow one.
	schemaWords = []string{
		"response_format", "response format", "responseformat", "response_schema", "responseschema",
		"response schema", "response_mime_type", "response mime type", "output_config", "output_format",
		"output format", "schema", "structured", "grammar", "gbnf", "guided", "json mode", "json_mode",
		"json_object", "json object", "json_validate_failed", "failed to generate json", "constrained",
		"constraint", "controlled generation", "fsm", "xgrammar", "outlines", "lm-format-enforcer",
		"llguidance", "strict", "requested parameters", "samplers", "regex", "too many states",
	}

	// anySchemaWords complain about schemas as such, not about one schema.
	anySchemaWords = []string{
		"extra inputs", "extra fields", "not permitted", "not supported", "unsupported parameter",
		"does not support", "not support", "unavailable", "unknown", "unrecogni", "not enabled",
		"no endpoints", "must be 'text'", "not available", "not implemented",
	}

	// systemWords complain about messages of the role system.
	systemWords = []string{
		"system role", "role system", "role 'system'", "role \"system\"", "role `system`", "'system' role",
		"\"system\" role", "`system` role", "system message", "system prompt", "system instruction",
		"does not support 'system'", "developer instruction", "roles must alternate", "alternate between user",
		"role: system", "role=system", "'system' is not", "input should be 'user'", "role must be",
		"only user and assistant roles", "invalid value: 'system'", "must be from user",
		"unexpected role \"system\"", "unexpected role 'system'",
	}

	// wholeWords say that a server streams all replies.
	wholeWords = []string{
		"only support stream", "only supports stream", "only support for stream", "non-stream", "non stream",
		"enable the stream", "stream must be true", "stream to true", "stream=true", "requires stream",
		"streaming is required",
	}
)

// containsAny reports whether text contains one of several words.
func containsAny(text string, words []string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

// learn returns the change, derived from a failure, with which the server may answer. A refused
// request costs no tokens. The words of the server decide; after a refusal without known words, the
// request is tried once without the schema and once without a stream.
func learn(r Request, streamed bool, limits []string, failure *llm.Error) change {
	message := strings.ToLower(failure.Message)
	isRefused := errors.Is(failure, kind.ErrBadRequest)
	// Some servers report a failing template or grammar as a failure of the server.
	isBroken := failure.Status == http.StatusInternalServerError

	if isRefused || isBroken {
		if c := learnLimit(r, limits, message); c.apply != nil {
			return c
		}
	}
	if isRefused {
		for _, p := range parts {
			if p.isSet(&r.Sampling) && strings.Contains(message, p.name) {
				c := drops(p.name)
				c.isOnce = containsAny(message, tooMuchWords) && !containsAny(message, foreignWords)
				return c
			}
		}
	}
	isMissing := failure.Status == http.StatusNotFound // a part may be missing, not only the model
	if isRefused || isBroken || isMissing {
		switch {
		case r.AsksOneCall && containsAny(message, oneCallWords):
			return drops(oneCallPart)
		case len(r.Tools) > 0 && containsAny(message, toolWords):
			return drops(toolsPart)
		case hasSystem(r) && containsAny(message, systemWords):
			return drops(systemPart)
		case r.Shape != nil && containsAny(message, schemaWords):
			return dropsSchema(r, message)
		case r.Shape != nil && isBroken: // the schema may have broken the server
			c := dropsSchema(r, message)
			c.isGuess = true
			return c
		}
	}

	isVague := isRefused && isOneOf(failure.Status, http.StatusBadRequest, http.StatusNotFound,
		http.StatusUnprocessableEntity, http.StatusNotImplemented)
	switch {
	case !streamed && isRefused && containsAny(message, wholeWords):
		return drops(wholePart)
	case streamed && isRefused && !r.NoStreamOptions && strings.Contains(message, "stream_options"):
		return drops(streamOptionsPart)
	case streamed && isRefused && strings.Contains(message, "stream"):
		return drops(streamPart)
	case streamed && errors.Is(failure, errUnfinished):
		c := drops(streamPart)
		c.isDoubtful = true
		return c
	case streamed && errors.Is(failure, kind.ErrMalformed), isVague && r.Shape == nil && streamed:
		c := drops(streamPart)
		c.isGuess = true
		return c
	case isVague && r.Shape != nil:
		c := dropsSchema(r, message)
		c.isGuess = true
		return c
	}
	return change{}
}

// isOneOf reports whether a status is one of several.
func isOneOf(status int, all ...int) bool { return slices.Contains(all, status) }

// hasSystem reports whether a request has a message of the role system.
func hasSystem(r Request) bool {
	return slices.ContainsFunc(r.Messages, func(m llm.Message) bool { return m.Role == llm.RoleSystem })
}

// dropsSchema returns the change that moves schemas into the prompt: only this schema, or every
// schema if the server's words concern schemas as such.
func dropsSchema(r Request, message string) change {
	if containsAny(message, anySchemaWords) {
		return drops(schemaPart)
	}
	hash := hashSchema(r.Request)
	return change{apply: func(t *traits) { t.dropSchema(hash) }}
}

// numbers matches the numbers in a message.
var numbers = lazyregexp.New(`\d[\d,]*k?`)

// learnLimit returns the change of the limit of a reply that a refusal suggests: a lower limit, or
// another name.
func learnLimit(r Request, limits []string, message string) change {
	isSent := r.MaxTokens > 0 && r.Limit != noLimit || len(limits) == 1
	if !isSent || !containsAny(message, limitNames) {
		return change{}
	}

	if containsAny(message, foreignWords) && len(limits) > 1 {
		name := noLimit
		if r.Limit == limits[0] {
			name = limits[1]
		}
		return change{apply: func(t *traits) { t.Limit = name }}
	}
	if !containsAny(message, tooMuchWords) {
		return change{}
	}
	if containsAny(message, promptWords) { // the numbers include the prompt
		half := r.MaxTokens / 2
		if half < leastLimit {
			return change{}
		}
		return change{apply: func(t *traits) { t.lower(half) }, isOnce: true}
	}
	if most := findLower(message, r.MaxTokens); most > 0 {
		return change{apply: func(t *traits) { t.lower(most) }}
	}
	return change{}
}

// leastLimit is smaller than any useful limit of a reply, in tokens.
const leastLimit = 16

// findLower returns the largest number in a message that is lower than the limit that was sent. If
// there is none, it returns half of that limit.
func findLower(message string, sent int) int {
	if sent == 0 {
		sent = math.MaxInt32
	}
	lower := 0
	for _, digits := range numbers.FindAllString(message, -1) {
		plain, isThousands := strings.CutSuffix(strings.ReplaceAll(digits, ",", ""), "k")
		n, err := strconv.Atoi(plain)
		if isThousands && n < math.MaxInt32 {
			n *= 1000
		}
		if err == nil && n < sent && n > lower {
			lower = n
		}
	}

	switch {
	case lower >= leastLimit:
		return lower
	case lower > 0 || sent == math.MaxInt32 || sent/2 < leastLimit:
		return 0
	}
	return sent / 2
}

// blameLength turns a refusal without a known reason into one about the length of the prompt, if
// the prompt is clearly longer than every prompt that the model has accepted.
func (p *Provider) blameLength(r llm.Request, failure *llm.Error) {
	isVague := errors.Is(failure, kind.ErrBadRequest) && isOneOf(failure.Status,
		http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity)
	if isVague && p.quirks.isLongest(r.Model, usage.EstimateInput(r)) {
		failure.Kind = kind.ErrContextLength
	}
}

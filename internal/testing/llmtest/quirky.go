package llmtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"

	"github.com/rlmhq/rlm/repl/llm"
)

// The bounds of a quirky server.
const (
	quirkyLimit  = 2_048  // tokens of a reply
	quirkyPrompt = 60_000 // characters of a prompt
)

// StartQuirky starts a server that combines the quirks of many real servers with OpenAI's format.
// It refuses parts of requests with the messages of those servers, and answers in their odd forms,
// whether or not a stream was requested. [Server.Refused] counts the refusals.
func StartQuirky(answer llm.Func) *Server {
	return start(answer, &quirks{refused: map[string]int{}})
}

// Refused returns how many requests a quirky server has refused, by quirk.
func (s *Server) Refused() map[string]int {
	s.quirks.mu.Lock()
	defer s.quirks.mu.Unlock()

	return maps.Clone(s.quirks.refused)
}

// quirks are the quirks of a server.
type quirks struct {
	mu      sync.Mutex
	refused map[string]int
	replies int
}

// asked holds the members of a request that quirks depend on.
type asked struct {
	Messages      []sent          `json:"messages"`
	MaxTokens     int             `json:"max_tokens"`
	NewLimit      *int            `json:"max_completion_tokens"`
	Temperature   json.RawMessage `json:"temperature"`
	Seed          json.RawMessage `json:"seed"`
	Format        json.RawMessage `json:"response_format"`
	Stream        *bool           `json:"stream"`
	StreamOptions json.RawMessage `json:"stream_options"`
}

// length returns the characters of the prompt.
func (a *asked) length() int {
	n := 0
	for _, m := range a.Messages {
		n += len(m.Content)
	}
	return n
}

// refusal is a part of requests that a quirky server refuses.
type refusal struct {
	name    string
	status  int
	message string
	has     func(a *asked) bool
}

// refusals are in the order in which the server checks them.
var refusals = []refusal{
	{
		"no stream member", http.StatusUnprocessableEntity, "stream: Field required",
		func(a *asked) bool { return a.Stream == nil },
	},
	{
		"limit name", http.StatusUnprocessableEntity, "body.max_completion_tokens: Extra inputs are not permitted",
		func(a *asked) bool { return a.NewLimit != nil },
	},
	{
		"limit", http.StatusBadRequest, fmt.Sprintf(
			"max_tokens is too large. This model supports at most %d completion tokens.", quirkyLimit),
		func(a *asked) bool { return a.MaxTokens > quirkyLimit },
	},
	{
		"temperature", http.StatusBadRequest, "Unsupported value: 'temperature' does not support 0 with this model.",
		func(a *asked) bool { return a.Temperature != nil },
	},
	{
		"seed", http.StatusBadRequest, "Unknown request argument supplied: seed",
		func(a *asked) bool { return a.Seed != nil },
	},
	{
		"stream options", http.StatusBadRequest, "stream_options: Extra inputs are not permitted",
		func(a *asked) bool { return a.StreamOptions != nil },
	},
	{
		"schema", http.StatusInternalServerError, "Failed to initialize samplers: failed to parse grammar",
		func(a *asked) bool { return a.Format != nil },
	},
	{
		"system role", http.StatusInternalServerError, "Jinja Exception: System role not supported",
		func(a *asked) bool {
			for _, m := range a.Messages {
				if m.Role == llm.RoleSystem {
					return true
				}
			}
			return false
		},
	},
	{
		"length", http.StatusBadRequest,
		"Unable to submit request because the input token count is 32825 but model only supports up to 32768.",
		func(a *asked) bool { return a.length() > quirkyPrompt },
	},
}

// refuse returns the refusal of a request, or nil.
func (q *quirks) refuse(body []byte) *Reply {
	var in asked
	if err := json.Unmarshal(body, &in); err != nil {
		return nil // the format refuses the request
	}
	for _, r := range refusals {
		if r.has(&in) {
			q.mu.Lock()
			q.refused[r.name]++
			q.mu.Unlock()
			return &Reply{
				Status: r.status, Header: http.Header{"Content-Type": {"application/json"}},
				Chunks: [][]byte{encode(object{"error": object{"message": r.message, "code": r.status}})},
			}
		}
	}
	return nil
}

// render encodes a response in the next odd form.
func (q *quirks) render(r llm.Response) *Reply {
	forms := []func(llm.Response) (kind string, chunks []string){
		wholeWithMark, cumulativeDeltas, wholeMessageAtTheEnd, eventsWithoutBlankLines,
	}
	q.mu.Lock()
	form := forms[q.replies%len(forms)]
	q.replies++
	q.mu.Unlock()

	kind, chunks := form(r)
	reply := &Reply{Status: http.StatusOK, Header: http.Header{"Content-Type": {kind}}}
	for _, chunk := range chunks {
		reply.Chunks = append(reply.Chunks, []byte(chunk))
	}
	return reply
}

// oddEvent returns an event with a numeric ID and unknown members.
func oddEvent(choice object) string {
	choice["index"] = 0
	return string(encode(object{
		"id": 5, "created": 1.5, "x_gateway": object{"ms": 3}, "choices": []object{choice},
	}))
}

// wholeWithMark returns JSON between a byte order mark and the end of a stream, in reply to every
// request.
func wholeWithMark(r llm.Response) (kind string, chunks []string) {
	message := object{"role": "assistant", "content": r.Text, "x_note": nil}
	return "application/json", []string{
		"\ufeff\n\n" + oddEvent(object{"message": message, "finish_reason": r.Finish}) + "\n\ndata: [DONE]\n\n",
	}
}

// cumulativeDeltas returns a stream whose deltas repeat all earlier text, without a finish reason.
func cumulativeDeltas(r llm.Response) (kind string, chunks []string) {
	chunks = []string{"\ufeff\n: ping\n\n"}
	text := ""
	for _, piece := range splitText(r.Text) {
		text += piece
		chunks = append(chunks, "data: "+oddEvent(object{
			"delta": object{"content": text}, "message": object{"content": text},
		})+"\n\n")
	}
	return "text/event-stream", append(chunks, "data: [DONE]")
}

// wholeMessageAtTheEnd returns a stream that ends with the whole message, but lacks its last event.
func wholeMessageAtTheEnd(r llm.Response) (kind string, chunks []string) {
	for _, piece := range splitText(r.Text) {
		chunks = append(chunks, "data:"+oddEvent(object{"delta": object{"content": piece}})+"\r\n\r\n")
	}
	return "text/plain", append(chunks, "data:"+oddEvent(object{
		"message": object{"role": "assistant", "content": r.Text}, "finish_reason": r.Finish,
	})+"\r\n\r\n")
}

// eventsWithoutBlankLines returns a stream without blank lines between events.
func eventsWithoutBlankLines(r llm.Response) (kind string, chunks []string) {
	var lines []string
	for _, piece := range splitText(r.Text) {
		lines = append(lines, "event: message\ndata: "+oddEvent(object{"delta": object{"content": piece}}))
	}
	lines = append(lines, "data: "+oddEvent(object{"delta": nil, "finish_reason": r.Finish}), "data: [DONE]\n")
	return "text/event-stream", []string{strings.Join(lines, "\n")}
}

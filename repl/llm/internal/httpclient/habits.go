package httpclient

import (
	"crypto/sha256"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/rlmhq/rlm/repl/llm"
)

// Habits remembers what a server's models do not take, so that it is tried once
// only. The zero value is ready; it is safe for concurrent use.
type Habits struct {
	mu    sync.Mutex
	lacks map[string]bool
}

// maxHabits bounds what is remembered. Beyond it everything is learned anew.
const maxHabits = 1024

// Ask is a request in the form in which a server takes it.
type Ask struct {
	llm.Request
	Shape *llm.Shaped // the schema to enforce, nil if there is none or it is in the prompt
}

// Complete sends a request, adapted to what the server takes. A server that
// says that it does not take a temperature, or a schema, is asked without it,
// the schema then being part of the prompt. A refusal to take something costs no tokens.
func (h *Habits) Complete(r llm.Request, send func(Ask) (llm.Response, error)) (llm.Response, error) {
	if err := r.Validate(); err != nil {
		return llm.Response{}, err
	}
	for {
		ask := h.adapt(r)
		response, err := send(ask)
		if err != nil {
			if h.learn(ask, err) {
				continue
			}
			return llm.Response{}, err
		}
		response.Structured = ask.Shape != nil
		if r.Schema != nil && response.Finish != llm.FinishRefusal {
			response.Text = llm.Unfence(response.Text)
			if ask.Shape != nil && ask.Shape.Wrapped {
				response.Text = llm.Unwrap(response.Text)
			}
		}
		return response, nil
	}
}

// adapt returns the form of a request that is believed to be taken.
func (h *Habits) adapt(r llm.Request) Ask {
	ask := Ask{Request: r}
	if h.known(temperatureOf(r)) {
		ask.Temperature = nil
	}
	if r.Schema == nil {
		return ask
	}
	if shape, ok := llm.Shape(r.Schema); ok && !h.known(schemaOf(r)) {
		ask.Shape = &shape
		return ask
	}
	ask.Messages = llm.Instruct(slices.Clone(r.Messages), r.Schema)
	return ask
}

// learn remembers what a server complained about, and reports whether it can
// be left out.
func (h *Habits) learn(ask Ask, err error) bool {
	var failure *llm.Error
	if !errors.As(err, &failure) || failure.Kind != llm.ErrBadRequest || failure.Status == 0 {
		return false
	}
	words := strings.ToLower(failure.Message)
	switch {
	case ask.Temperature != nil && strings.Contains(words, "temperature"):
		h.remember(temperatureOf(ask.Request))
	case ask.Shape != nil && containsAny(words, []string{"response_format", "output_config", "schema", "structured output"}):
		h.remember(schemaOf(ask.Request))
	default:
		return false
	}
	return true
}

// temperatureOf and schemaOf name what a model may lack.
func temperatureOf(r llm.Request) string { return r.Model + "\x00temperature" }

func schemaOf(r llm.Request) string {
	sum := sha256.Sum256(r.Schema)
	return r.Model + "\x00" + string(sum[:])
}

// known reports whether a lack is remembered.
func (h *Habits) known(lack string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lacks[lack]
}

// remember keeps a lack.
func (h *Habits) remember(lack string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lacks == nil || len(h.lacks) >= maxHabits {
		h.lacks = map[string]bool{}
	}
	h.lacks[lack] = true
}

package runs

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/server/internal/access"
)

// Embedding is a request for the vectors of texts.
type Embedding struct {
	// Model is the name of an embedding model, with or without the provider, which must be used by
	// a profile.
	Model string
	Texts []string
	// Extra is a JSON object with additional members for the provider, or nil.
	Extra json.RawMessage
}

// Embed asks an embedding model for vectors, one for each text. The error is for the client.
func (m *Manager) Embed(
	ctx context.Context, k access.Key, e Embedding,
) (vectors [][]float32, usage llm.Usage, spent ledger.Spending, err error) {
	profile, model, err := m.embedder(e.Model)
	if err != nil {
		return nil, usage, spent, err
	}

	c := call{profile: profile, model: &model, Request: llm.Request{
		Model: model.ID, Embed: true, Sampling: llm.Sampling{ExtraBody: e.Extra},
		Metadata: llm.Metadata{Purpose: "embedding"},
	}}
	for _, text := range e.Texts {
		c.Messages = append(c.Messages, llm.Message{Role: llm.RoleUser, Content: text})
	}
	response, spent, err := m.complete(ctx, k, &c)
	if err == nil && (json.Unmarshal([]byte(response.Text), &vectors) != nil || len(vectors) != len(e.Texts)) {
		err = problem.New(http.StatusBadGateway, "model_failed",
			"the provider's answer has not one vector for each text")
	}
	return vectors, response.Usage, spent, asProblem(err)
}

// embedder returns an embedding model, and the profile that uses its provider. So a client can only
// reach providers that the server uses.
func (m *Manager) embedder(name string) (*Profile, llm.Model, error) {
	for _, of := range m.Names() {
		profile := m.profiles[of]
		for _, used := range profile.models() {
			provider, _, _ := strings.Cut(used, "/")
			if provider == "acp" { // its model would be a command
				continue
			}
			full := name
			if !strings.HasPrefix(name, provider+"/") {
				if of != DefaultProfile || strings.Contains(name, "/") {
					continue
				}
				full = provider + "/" + name
			}
			model, err := profile.Task.Config.WithDefaults().Models.Resolve(full)
			return profile, model, err
		}
	}
	e := problem.New(http.StatusNotFound, "model_not_found",
		"there is no embedding model %.80q: name one of a provider that this server uses, as PROVIDER/NAME", name)
	e.Param = "model"
	return nil, llm.Model{}, e
}

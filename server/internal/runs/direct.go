package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/schema"
	"github.com/rlmhq/rlm/server/internal/access"
)

// Ask is a short conversation, which the profile's root model answers without a run.
type Ask struct {
	Profile  string
	Messages []llm.Message
	// Schema is the contract of the answer; nil allows any text.
	Schema json.RawMessage
	// MaxTokens bounds the reply; 0 means the profile's bound.
	MaxTokens int
	llm.Sampling
	Stop []string
	// USD is the maximum cost; 0 means the profile's bound.
	USD float64
	// Tools are functions that the model may call by a reply that satisfies the contract.
	Tools []json.RawMessage
	// OneCall allows at most one call in the reply.
	OneCall bool
	// AllowWords allows a reply in prose although there is a contract.
	AllowWords bool
	// Stream, if set, receives the text in pieces. An empty piece means that the text starts over.
	Stream func(piece string) `json:"-"`
	// Accepted, if set, is called before the question waits for its turn and for the model.
	// Afterwards, only these two can fail.
	Accepted func() `json:"-"`
}

// Reply is the answer to an Ask.
type Reply struct {
	Text string
	// IsWords is true if the reply is prose instead of the value that the contract requires.
	IsWords bool
	Finish  string
	Usage   llm.Usage
	Spent   ledger.Spending
}

// Ask asks the profile's root model a question. The error is for the client.
func (m *Manager) Ask(ctx context.Context, k access.Key, a Ask) (reply Reply, err error) {
	profile, err := m.Answering(a.Profile)
	if err != nil {
		return reply, err
	}
	if err := checkSchema(a.Schema); err != nil {
		return reply, err
	}
	model, err := profile.root()
	if err != nil {
		return reply, err
	}
	response, spent, err := m.complete(ctx, k, &call{
		profile: profile, model: &model, Request: a.request(profile, &model), usd: a.USD,
		stream: a.Stream, accepted: a.Accepted,
	})
	reply = Reply{
		Text: response.Text, Finish: cmp.Or(response.Finish, llm.FinishStop), Usage: response.Usage, Spent: spent,
	}
	if err == nil {
		err = checkReply(&reply, &a)
	}
	return reply, asProblem(err)
}

// CountInput estimates the tokens of a question.
func (m *Manager) CountInput(ctx context.Context, a Ask) (int64, error) {
	profile, err := m.Answering(a.Profile)
	if err != nil {
		return 0, err
	}
	model, err := profile.root()
	if err != nil {
		return 0, err
	}
	silent := llm.Func(func(llm.Request) (llm.Response, error) { return llm.Response{}, nil })
	response, err := silent.Complete(ctx, a.request(profile, &model), nil)
	return response.Usage.InputTokens, err
}

// request returns the request for the model.
func (a *Ask) request(profile *Profile, model *llm.Model) llm.Request {
	cfg := profile.Task.Config.WithDefaults()
	request := llm.Request{
		Model: model.ID, Messages: a.Messages, Schema: a.Schema, Tools: a.Tools, OneCall: a.OneCall,
		Sampling: a.Sampling, Stop: a.Stop,
		MaxTokens: int(least(int64(cfg.MaxReply), int64(a.MaxTokens))),
		Metadata:  llm.Metadata{Purpose: "direct"},
	}

	if cfg.System != "" {
		request.Messages = append([]llm.Message{{Role: llm.RoleSystem, Content: cfg.System}}, a.Messages...)
	}
	return request
}

// checkReply replaces the text with the value that satisfies the contract, or fails.
func checkReply(reply *Reply, a *Ask) error {
	switch reply.Finish {
	case llm.FinishStop, llm.FinishLength, llm.FinishRefusal:
	default:
		return problem.New(http.StatusBadGateway, "model_failed",
			"the model's reply has the finish reason %.60q, so it is no answer: ask again", reply.Finish)
	}
	if reply.Finish == llm.FinishStop && len(a.Stop) == 0 && strings.TrimSpace(reply.Text) == "" {
		return problem.New(http.StatusBadGateway, "model_failed", "the model's reply is empty: ask again")
	}
	if len(a.Schema) == 0 || reply.Finish != llm.FinishStop {
		return nil
	}
	c, err := schema.Parse(a.Schema)
	if err != nil {
		return err
	}

	value, err := meetContract(c, reply.Text)
	if err != nil && len(a.Tools) > 0 {
		if calls := readTextCalls(reply.Text, a.Tools); calls != nil {
			value, err = meetContract(c, string(calls))
		}
	}
	if err != nil && a.AllowWords && isWords(reply.Text) {
		reply.IsWords = true
		return nil
	}
	if err != nil {
		return problem.New(http.StatusBadGateway, "contract_broken",
			"the model's answer does not meet the schema: %v", err)
	}
	reply.Text = string(value)
	return nil
}

// meetContract returns the value in a text that satisfies a contract, or an error with the first
// violation.
func meetContract(c *schema.Contract, text string) (json.RawMessage, error) {
	value, violations, err := c.CheckReply(strings.TrimSpace(text))
	if err == nil && len(violations) > 0 {
		err = errors.New(violations[0].String())
	}
	return value, err
}

// isWords reports whether a reply is prose. A failed attempt at the contract is not. Unclear calls
// in the model's own format are treated as prose, as other servers do.
func isWords(text string) bool {
	text = strings.TrimSpace(texts.DropThoughts(text))
	return text != "" && !strings.Contains(text, `"calls"`)
}

// asProblem converts the error of a model call for the client.
func asProblem(err error) error {
	var failed *llm.Error
	if !errors.As(err, &failed) {
		return err
	}

	switch {
	case errors.Is(err, llm.ErrContextLength):
		return problem.New(http.StatusBadRequest, "context_length_exceeded",
			"the messages are too long for the model: send the long part as a file")
	case errors.Is(err, llm.ErrRateLimited):
		return problem.Later(http.StatusServiceUnavailable, "model_busy", max(failed.RetryAfter, time.Second),
			"the model's server is busy: try again")
	}
	shown := *failed
	shown.Err = nil // it contains details of this machine
	return problem.New(http.StatusBadGateway, "model_failed", "the model's server failed: %.600s", shown.Error())
}

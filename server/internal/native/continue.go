package native

import (
	"context"

	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/runs"
)

type continueInput struct {
	ID   string `path:"id" maxLength:"100"`
	Word string `header:"Idempotency-Key" maxLength:"255" doc:"of a fork; a second one is the first again"`
	Body struct {
		Turn     *int         `json:"turn,omitempty" minimum:"0" doc:"the last that stays, 0 for none"`
		Fork     bool         `json:"fork,omitempty" doc:"makes a new run of the turns; this one stays as it is"`
		Question string       `json:"question,omitempty" maxLength:"1048576" doc:"another question, of a fork"`
		Profile  string       `json:"profile,omitempty" maxLength:"32" doc:"other models and bounds, of a fork"`
		Budget   *budgetInput `json:"budget,omitempty" doc:"in place of the earlier one"`
		MaxTurns int          `json:"max_turns,omitempty" minimum:"1" maximum:"1000" doc:"in place of the earlier"`
	}
}

// goOn answers POST /v1/runs/{id}/continue.
func (a *api) goOn(ctx context.Context, in *continueInput) (*one, error) {
	b := &in.Body
	c := runs.Continuation{
		Turn: b.Turn, Fork: b.Fork, Question: b.Question, Profile: b.Profile, MaxTurns: b.MaxTurns,
		Idempotency: in.Word,
	}
	if b.Budget != nil {
		budget := b.Budget.read()
		c.Budget = &budget
	}

	record, err := a.Runs.Continue(ctx, access.Caller(ctx), in.ID, c)
	if err != nil {
		return nil, err
	}
	return &one{record.ID, describe(&record, nil)}, nil
}

// remove answers DELETE /v1/runs/{id}.
func (a *api) remove(ctx context.Context, in *byID) (*struct{}, error) {
	return nil, a.Runs.Delete(ctx, access.Caller(ctx).Tenant, in.ID)
}

package native

import (
	"context"

	"github.com/rlmhq/rlm/server/internal/access"
)

type usageInput struct {
	Since string `query:"since" format:"date" doc:"the first day, in UTC"`
}

type usageOutput struct {
	Body struct {
		Days []usageDay `json:"days" nullable:"false"`
	}
}

type usageDay struct {
	Key   string `json:"key" doc:"ID of the key, or local"`
	Day   string `json:"day"`
	Spent spent  `json:"spent"`
}

// usage answers GET /v1/usage.
func (a *api) usage(ctx context.Context, in *usageInput) (*usageOutput, error) {
	all, err := a.Meter.Usage(ctx, access.Caller(ctx).Tenant, in.Since)
	if err != nil {
		return nil, err
	}

	out := &usageOutput{}
	out.Body.Days = []usageDay{}
	for _, u := range all {
		out.Body.Days = append(out.Body.Days, usageDay{u.Key, u.Day, describeSpent(u.Spending)})
	}
	return out, nil
}

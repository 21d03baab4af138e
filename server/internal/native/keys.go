package native

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/access"
)

// addKeys adds the operations on keys.
func (a *api) addKeys(h huma.API) {
	const list = "/v1/keys"
	add(h, a, http.MethodPost, list, "create-key", "Make a key; the answer alone has its secret",
		access.Admin, a.createKey)
	add(h, a, http.MethodGet, list, "list-keys", "List the keys of all tenants, the oldest first",
		access.Admin, a.listKeys)
	add(h, a, http.MethodDelete, list+"/{id}", "revoke-key", "End the use of a key, by its ID or its name",
		access.Admin, a.revokeKey)
}

// key is the wire format of a key.
type key struct {
	ID      string         `json:"id"`
	Name    string         `json:"name"`
	Tenant  string         `json:"tenant"`
	Scopes  []access.Scope `json:"scopes" nullable:"false"`
	Limits  keyLimits      `json:"limits"`
	Created time.Time      `json:"created"`
	Revoked *time.Time     `json:"revoked,omitempty" doc:"missing while the key is in use"`
	Secret  string         `json:"secret,omitempty" doc:"the key itself; only when it is made"`
}

// keyLimits is the wire format of access.Limits.
type keyLimits struct {
	USD      float64       `json:"usd,omitempty" minimum:"0"`
	Period   access.Period `json:"period,omitempty" enum:"day,month,total" doc:"of usd; default: total"`
	Requests int           `json:"requests_per_minute,omitempty" minimum:"0"`
	Runs     int           `json:"runs,omitempty" minimum:"0" doc:"at the same time"`
	Sessions int           `json:"sessions,omitempty" minimum:"0"`
	Files    int64         `json:"file_bytes,omitempty" minimum:"0" doc:"of all that the tenant keeps"`
}

func describeKey(k *access.Key, secret string) key {
	out := key{
		ID: k.ID, Name: k.Name, Tenant: k.Tenant, Scopes: k.Scopes, Limits: keyLimits(k.Limits), Created: k.Created,
		Secret: secret,
	}
	if !k.Revoked.IsZero() {
		out.Revoked = &k.Revoked
	}
	return out
}

// scopes are the scopes that a key allows.
type scopes = []access.Scope

type createKeyInput struct {
	Body struct {
		Name   string    `json:"name" maxLength:"64"`
		Tenant string    `json:"tenant,omitempty" maxLength:"64" doc:"the name if it is not given"`
		Scopes scopes    `json:"scopes,omitempty" maxItems:"5" enum:"read,run,approve,metrics,admin" default:"read,run"`
		Limits keyLimits `json:"limits,omitempty" doc:"of the use of the key; a missing one is no bound"`
	}
}

// oneKey is an answer that contains a key.
type oneKey struct {
	Object string `header:"X-Rlm-Object"`
	Body   key
}

// createKey answers POST /v1/keys.
func (a *api) createKey(ctx context.Context, in *createKeyInput) (*oneKey, error) {
	b := &in.Body
	k := access.Key{Name: b.Name, Tenant: b.Tenant, Scopes: b.Scopes, Limits: access.Limits(b.Limits)}
	if k.Limits.USD > 0 && k.Limits.Period == "" {
		k.Limits.Period = access.Total
	}

	made, secret, err := a.Door.Keys.Create(ctx, k)
	if err != nil {
		return nil, err
	}
	return &oneKey{made.ID, describeKey(&made, secret)}, nil
}

type listKeysInput struct {
	After string `query:"after" maxLength:"100" doc:"next of the page before"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

type listKeysOutput struct {
	Body struct {
		Keys []key  `json:"keys" nullable:"false"`
		Next string `json:"next,omitempty" doc:"after of the next page; there is none if it is missing"`
	}
}

// listKeys answers GET /v1/keys.
func (a *api) listKeys(ctx context.Context, in *listKeysInput) (*listKeysOutput, error) {
	all, err := a.Door.Keys.List(ctx)
	if err != nil {
		return nil, err
	}
	if in.After != "" {
		last := slices.IndexFunc(all, func(k access.Key) bool { return k.ID == in.After })
		if last < 0 {
			return nil, problem.NotFound("key", in.After)
		}
		all = all[last+1:]
	}

	out := &listKeysOutput{}
	out.Body.Keys = []key{}
	for i := range all[:min(len(all), in.Limit)] {
		out.Body.Keys = append(out.Body.Keys, describeKey(&all[i], ""))
	}
	if len(all) > in.Limit {
		out.Body.Next = all[in.Limit-1].ID
	}
	return out, nil
}

// revokeKey answers DELETE /v1/keys/{id}.
func (a *api) revokeKey(ctx context.Context, in *byID) (*struct{}, error) {
	return nil, a.Door.Keys.Revoke(ctx, in.ID)
}

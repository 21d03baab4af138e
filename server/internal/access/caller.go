package access

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/rlmhq/rlm/internal/text/problem"
)

// callerKey is the context key of a request's key.
type callerKey struct{}

// With returns a context with the key of its request.
func With(ctx context.Context, k Key) context.Context { return context.WithValue(ctx, callerKey{}, k) }

// Caller returns the key of a request, or a key that allows nothing.
func Caller(ctx context.Context) Key {
	k, _ := ctx.Value(callerKey{}).(Key)
	return k
}

// Door identifies the senders of requests.
type Door struct {
	Keys  *Keys
	Meter *Meter
	// Open admits requests without a key, as [Local]. It is for servers that only their own
	// machine can reach.
	Open bool
}

// Enter counts a request and returns its key. If the key has sent too many requests, Enter returns
// both the key and an error. It accepts keys only in the headers Authorization and X-Api-Key, which
// a browser sends only for the server's own pages. It accepts no cookies or passwords, which a
// browser would also send for links of other pages.
func (d *Door) Enter(r *http.Request) (k Key, err error) {
	secret, given := secretOf(r)
	switch {
	case given && IsKey(secret):
		k, err = d.Keys.Find(r.Context(), secret)
	case d.Open: // OpenAI's clients always send a key, such as "unused"
		k = Local
	case given:
		err = problem.New(http.StatusUnauthorized, "invalid_key",
			"the key has not the form rlm_...: make one with rlm keys create")
	default:
		err = problem.New(http.StatusUnauthorized, "missing_key",
			`send a key with the header "Authorization: Bearer rlm_...": rlm keys create makes one`)
	}

	if err != nil {
		return Key{}, err
	}
	err = d.Meter.Admit(&k)
	return k, err
}

// Again admits another request of a connection, since its key may have been revoked.
func (d *Door) Again(ctx context.Context, id string) error {
	k, err := d.Keys.ByID(ctx, id)
	if err != nil {
		return err
	}
	return d.Meter.Admit(&k)
}

// secretOf returns the secret that a request sends as its key. Anthropic's clients send X-Api-Key,
// or both headers.
func secretOf(r *http.Request) (secret string, given bool) {
	kind, rest, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	bearer := strings.TrimSpace(rest)
	if !strings.EqualFold(kind, "Bearer") {
		bearer = ""
	}

	other := strings.TrimSpace(r.Header.Get("X-Api-Key"))
	if bearer == "" || IsKey(other) && !IsKey(bearer) {
		bearer = cmp.Or(other, bearer)
	}
	return bearer, bearer != "" || kind != ""
}

// Need returns an error unless the caller's key allows a scope.
func Need(ctx context.Context, s Scope) error {
	k := Caller(ctx)
	if k.May(s) {
		return nil
	}
	return problem.New(http.StatusForbidden, "missing_scope",
		"the key lacks the scope %s: make one with rlm keys create --scope %s", s, s)
}

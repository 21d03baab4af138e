//go:build amd64 || arm64

package served

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/plan/results"
	"github.com/rlmhq/rlm/tiers"
)

// apiTier is tier wasm, used through the API of a server.
type apiTier struct {
	tiers.Tier
	*served
	socket bool     // use sessions over WebSockets, which may have functions
	keys   []string // keys of tenants, used in turn: two sandboxes of a case have different keys
	turn   atomic.Int64
}

// Warm implements [tiers.Tier].
func (a *apiTier) Warm(ctx context.Context) error { return a.Settle(ctx) }

// Settle makes sure that each tenant has a worker, because a case may have ended it.
func (a *apiTier) Settle(ctx context.Context) error {
	for range a.keys {
		box, err := a.Open(ctx, tiers.Config{})
		if err != nil {
			return err
		}
		_, failed := box.Run(ctx, tiers.Job{Source: "1"})
		if err := errors.Join(failed, box.Close()); err != nil {
			return err
		}
	}
	return nil
}

// Close implements [tiers.Tier].
func (a *apiTier) Close() error { return nil }

// Open implements [tiers.Tier].
func (a *apiTier) Open(ctx context.Context, cfg tiers.Config) (tiers.Sandbox, error) {
	limits := object{}
	if cfg.Limits.Wall > 0 { // the server allows no more than its default
		limits["wall_ms"] = min(cfg.Limits.Wall, tiers.DefaultLimits().Wall).Milliseconds()
	}
	if cfg.Limits.Memory > 0 {
		limits["memory_bytes"] = cfg.Limits.Memory
	}
	if cfg.Limits.HostCalls > 0 {
		limits["host_calls"] = cfg.Limits.HostCalls
	}
	settings := object{"limits": limits, "policy": object{"tier": rlm.TierWasm}}
	if cfg.Out {
		settings["out"] = true
	}
	key := a.keys[int(a.turn.Add(1))%len(a.keys)]
	if a.socket {
		return a.dialBox(ctx, key, cfg.Host, settings)
	}

	box := &apiBox{served: a.served, key: key}
	err := box.open(ctx, settings)
	return box, err
}

// apiBox is a session over HTTP. It is a [tiers.Collector].
type apiBox struct {
	*served
	key, path string
}

// open opens the session.
func (b *apiBox) open(ctx context.Context, settings object) error {
	got, err := b.request(ctx, http.MethodPost, "/v1/sessions", settings)
	if err != nil {
		return err
	}
	var session struct{ ID string }
	if got.status != http.StatusOK {
		return fmt.Errorf("cannot open a session: %d %s", got.status, got.body)
	}
	if err := json.Unmarshal([]byte(got.body), &session); err != nil {
		return fmt.Errorf("cannot open a session: %w", err)
	}
	b.path = "/v1/sessions/" + session.ID
	return nil
}

// request sends a request on a new connection, so that no connection remains open.
func (b *apiBox) request(ctx context.Context, method, path string, body any) (answer, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return answer{}, err
	}
	r, err := http.NewRequestWithContext(ctx, method, b.address+path, bytes.NewReader(data))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Authorization", "Bearer "+b.key)
	r.Header.Set("Content-Type", "application/json")
	r.Close = true
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	return answer{got.StatusCode, string(text)}, err
}

// Run implements [tiers.Sandbox].
func (b *apiBox) Run(ctx context.Context, job tiers.Job) (tiers.Result, error) {
	for {
		got, err := b.request(ctx, http.MethodPost, b.path+"/exec", object{"source": job.Source, "language": "python"})
		switch {
		case err != nil:
			return tiers.Result{}, broken(err)
		case got.status == http.StatusOK:
			return resultOf([]byte(got.body))
		case got.status == http.StatusUnprocessableEntity && strings.Contains(got.body, `"no_tier"`):
			return tiers.Result{}, &tiers.RejectedError{Tier: rlm.TierWasm, Reason: got.body}
		case got.status != http.StatusConflict || !strings.Contains(got.body, `"in_use"`):
			return tiers.Result{}, broken(errors.New(got.body))
		}
		time.Sleep(time.Millisecond) // the server is still cleaning up after an earlier client
	}
}

func broken(err error) error {
	return &tiers.BrokenError{Tier: rlm.TierWasm, Effects: tiers.EffectsUnknown, Err: err}
}

// resultOf decodes a result from the server's JSON.
func resultOf(data []byte) (out tiers.Result, err error) {
	var r results.Result
	if err := json.Unmarshal(data, &r); err != nil {
		return out, err
	}
	out = tiers.Result{Status: r.Status, Limit: r.Limit, Stdout: r.Stdout, Stderr: r.Stderr + r.Echo}
	if r.Final {
		out.Final = &tiers.Final{Value: r.Value}
	}
	if x := r.Exception; x != nil {
		out.Exception = &tiers.Exception{Type: x.Type, Message: x.Message, Traceback: x.Traceback, ExitCode: x.ExitCode}
	}
	if r.Lost != nil {
		out.Lost = &tiers.Loss{Snippets: r.Lost.Snippets, Reason: r.Lost.Reason}
	}
	for _, file := range r.Files {
		out.Stderr += file.File + string(file.Base64)
	}
	return out, nil
}

// Close implements [tiers.Sandbox].
func (b *apiBox) Close() error {
	got, err := b.request(context.Background(), http.MethodDelete, b.path, nil)
	if err == nil && got.status != http.StatusNoContent {
		err = fmt.Errorf("cannot delete a session: %d %s", got.status, got.body)
	}
	return err
}

// Collect implements [tiers.Collector] with the files that the server lists.
func (b *apiBox) Collect(ctx context.Context, dir string) (got tiers.Collected, err error) {
	list, err := b.request(ctx, http.MethodGet, b.path+"/files", nil)
	if err != nil || list.status != http.StatusOK {
		return got, errors.Join(err, errors.New(list.body))
	}
	var all struct {
		Files   []struct{ File string }
		Refused []string
	}
	if err := json.Unmarshal([]byte(list.body), &all); err != nil {
		return got, err
	}
	got.Refused = all.Refused
	for i, file := range all.Files {
		content, err := b.request(ctx, http.MethodGet, b.path+"/files/content?name="+url.QueryEscape(file.File), nil)
		if err != nil || content.status != http.StatusOK {
			return got, errors.Join(err, errors.New(content.body))
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), []byte(content.body), 0o600); err != nil {
			return got, err
		}
	}
	return got, nil
}

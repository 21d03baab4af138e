package providers_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/llmtest"
	"github.com/rlmhq/rlm/repl/internal/callnotes"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
	"github.com/rlmhq/rlm/repl/llm/providers"
)

// dropped collects the sampling parameters that models reject.
type dropped struct{ parts []string }

func (d *dropped) NoteWait(callnotes.Wait) {}
func (d *dropped) NoteDropped(part string) { d.parts = append(d.parts, part) }

func (d *dropped) NoteAsked(callnotes.Asked) {}

func TestRejectedPartsOfTheSamplingAreDroppedAndReported(t *testing.T) {
	reject := func(r llm.Request) (llm.Response, error) {
		for _, part := range []struct {
			isSet bool
			words string
		}{
			{r.ReasoningEffort != "", "reasoning_effort: unknown / output_config.effort: unknown"},
			{r.Seed != nil, "Unsupported parameter: 'seed'"},
			{r.TopP != nil, "`Temperature` and `top_p` cannot both be specified"},
			{r.Temperature != nil, "temperature: only 1 is supported"},
		} {
			if part.isSet {
				return llm.Response{}, &llm.Error{Kind: kind.ErrBadRequest, Message: part.words}
			}
		}
		return llm.Response{Text: "yes"}, nil
	}
	each(t, quick, reject, func(s *llmtest.Server, c caller) {
		t := c.T
		half, seed := 0.5, int64(7)
		sampling := llm.Sampling{Temperature: &half, TopP: &half, Seed: &seed, ReasoningEffort: "huge"}
		var notes dropped
		ctx := callnotes.With(t.Context(), &notes)
		for range 2 {
			if response, _, err := c.ask(ctx, llm.Request{Sampling: sampling}); err != nil || response.Text != "yes" {
				t.Fatalf("got %+v, %v", response, err)
			}
		}

		want := []string{"effort", "seed", "temperature", "top_p"}
		if c.format == "anthropic" {
			want = []string{"effort", "temperature", "top_p"} // the format has no seed
		}
		if !slices.Equal(notes.parts, want) || len(s.Seen()) != len(want)+2 {
			t.Errorf("dropped %q with %d requests, want %q", notes.parts, len(s.Seen()), want)
		}
	})
}

func TestAnExtraBodyIsNeverDropped(t *testing.T) {
	server := llmtest.Start(reply("x"))
	defer server.Close()
	server.Fail(llmtest.Status(400, "", "unknown field: provider", ""))
	model := resolve(t, providers.Options{
		Env: server.Env, Sampling: []llm.Sampling{{ExtraBody: json.RawMessage(`{"provider":{"sort":"price"}}`)}},
	})
	_, _, err := caller{model: model}.ask(t.Context(), llm.Request{})
	if !errors.Is(err, kind.ErrBadRequest) || len(server.Seen()) != 1 ||
		!strings.Contains(server.Seen()[0].Body, `,"provider":{"sort":"price"}}`) {
		t.Errorf("got %v after %+v", err, server.Seen())
	}
}

// resolve returns openai/any.
func resolve(t *testing.T, o providers.Options) llm.Model {
	t.Helper()
	registry, err := providers.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = registry.Close() })
	model, err := registry.Resolve("openai/any")
	if err != nil {
		t.Fatal(err)
	}
	return model
}

func TestSamplingGoesByDepth(t *testing.T) {
	var got llm.Request
	server := llmtest.Start(func(r llm.Request) (llm.Response, error) { got = r; return reply("x")(r) })
	defer server.Close()
	low, high, own, seed := 0.0, 1.5, 0.3, int64(-1)
	model := resolve(t, providers.Options{Env: server.Env, Sampling: []llm.Sampling{
		{Temperature: &low, ReasoningEffort: "high"}, {Temperature: &high, Seed: &seed},
	}})

	for _, c := range []struct {
		metadata    llm.Metadata
		own         *float64
		temperature float64
		effort      string
	}{
		{llm.Metadata{Purpose: "root"}, nil, 0, "high"},
		{llm.Metadata{Purpose: "root"}, &own, 0.3, "high"},
		{llm.Metadata{Purpose: "leaf"}, nil, 1.5, ""},
		{llm.Metadata{Purpose: "leaf"}, &own, 0.3, ""},
		{llm.Metadata{Purpose: "sub", Depth: 1}, nil, 1.5, ""},
		{llm.Metadata{Purpose: "leaf", Depth: 9}, nil, 1.5, ""},
	} {
		request := llm.Request{
			Messages: []llm.Message{{Role: llm.RoleUser, Content: "?"}},
			Metadata: c.metadata, Sampling: llm.Sampling{Temperature: c.own},
		}
		if _, err := model.Provider.Complete(context.Background(), request, nil); err != nil {
			t.Fatal(err)
		}
		if got.Temperature == nil || *got.Temperature != c.temperature || got.ReasoningEffort != c.effort ||
			(got.Seed == nil) != (c.effort != "") {
			t.Errorf("%+v: the server got %+v", c.metadata, got.Sampling)
		}
	}
	if err := llm.Check(t.Context(), model.Provider, "any"); err != nil {
		t.Error(err)
	}
}

func TestSamplingThatNoServerTakesIsRefused(t *testing.T) {
	number := func(n float64) *float64 { return &n }
	for want, s := range map[string]llm.Sampling{
		"cannot use temperature 2.5":      {Temperature: number(2.5)},
		"cannot use top_p 0:":             {TopP: number(0)},
		"not a JSON object":               {ExtraBody: json.RawMessage(`[1]`)},
		"is not a JSON object":            {ExtraBody: json.RawMessage(`{"a":`)},
		`has the member "max_tokens"`:     {ExtraBody: json.RawMessage(`{"max_tokens": 1}`)},
		`has the member "Messages"`:       {ExtraBody: json.RawMessage(`{"a": 1, "Messages": []}`)},
		`depth 1: the extra body has the`: {ExtraBody: json.RawMessage(`{"stream": true}`)},
	} {
		t.Run(want, func(t *testing.T) {
			_, err := providers.New(providers.Options{Sampling: []llm.Sampling{{}, s}})
			if !errors.Is(err, kind.ErrMisconfigured) || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

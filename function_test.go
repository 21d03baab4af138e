package rlm_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/tiers"
)

// searchIn has arguments of every kind.
type searchIn struct {
	Query string                `json:"query" jsonschema:"what to look for"`
	Limit int                   `json:"limit,omitempty"`
	Tags  []string              `json:"tags,omitempty"`
	Range *[2]float64           `json:"span,omitempty"`
	Since time.Time             `json:"since,omitzero"`
	More  map[string]bool       `json:"more,omitempty"`
	Where struct{ Lang string } `json:"where,omitzero"`
}

func TestTypedArgumentsAreStructFields(t *testing.T) {
	var got []searchIn
	session := open(t, rlm.SessionConfig{Functions: []rlm.Function{
		rlm.Func(
			"search",
			"Searches.",
			func(_ context.Context, in searchIn) (map[string]int, error) {
				got = append(got, in)
				return map[string]int{"found": len(in.Query)}, nil
			},
		),
	}})
	prints(
		t,
		session,
		`print(search("abc"), search("a", 5, ["x"]),
    search(query="q", limit=None, where={"Lang": "go"}, more={"a": True}))
print(search("d", since="2024-05-06T07:08:09Z", span=[1, 2.5]))`,
		"{'found': 3} {'found': 1} {'found': 1}\n{'found': 1}\n",
	)
	if len(got) != 4 || got[1].Limit != 5 || got[1].Tags[0] != "x" || got[2].Where.Lang != "go" ||
		!got[2].More["a"] ||
		got[3].Since.Year() != 2024 ||
		got[3].Range[1] != 2.5 {
		t.Errorf("%+v", got)
	}
	prints(t, session, "print(search.__doc__)",
		"search(query: str, limit: int = None, tags: list of str or null = None, span = None, "+
			"since: str = None, more: an object of name to bool = None, where = None): Searches.\n")
	calls := len(got)
	for source, want := range map[string]string{
		`search()`:                              "query",
		`search(5)`:                             "$.query",
		`search("q", colour="green")`:           "colour",
		`search("q", "many")`:                   "$.limit",
		`search("q", tags="x", limit=[1])`:      "$.limit",
		`search("q", where={"Size": 3})`:        "Size",
		`search("q", 1, [], None, None, {}, 7)`: "$.where",
		`search(*range(9))`:                     "takes 7 arguments",
	} {
		t.Run(source, func(t *testing.T) {
			result, err := session.Run(t.Context(), source)
			if err != nil || result.Status != tiers.StatusRaised ||
				!strings.Contains(result.Exception.Message, want) {
				t.Errorf("%s: %v, %+v", source, err, result.Exception)
			}
		})
	}
	if len(got) != calls {
		t.Error("a call with wrong arguments has arrived")
	}
}

func TestAFunctionThatFailsIsAnException(t *testing.T) {
	var log bytes.Buffer
	engine, err := rlm.New(rlm.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	session, err := engine.Open(t.Context(), rlm.SessionConfig{Functions: []rlm.Function{
		rlm.Func("fails", "",
			func(context.Context, struct{}) (int, error) { return 0, errors.New("no such book") }),
		rlm.Func("panics", "",
			func(context.Context, struct{}) (int, error) { panic("the password is hunter2") }),
		rlm.Func("panics_raw", "",
			func(context.Context, tiers.Call) (int, error) { panic("no details") }),
		rlm.Func("odd", "",
			func(context.Context, struct{}) (any, error) { return make(chan int), nil }),
	}, Labels: map[string]string{"tenant": "acme"}})
	if err != nil {
		t.Fatal(err)
	}
	for source, want := range map[string]string{
		"fails()": "no such book", "panics()": "panics failed",
		"panics_raw()": "panics_raw failed", "odd()": "unsupported type",
		"import asyncio\nawait asyncio.gather(panics(), panics())": "panics failed",
	} {
		t.Run(source, func(t *testing.T) {
			result, err := session.Run(t.Context(), source)
			if err != nil || result.Status != tiers.StatusRaised ||
				!strings.Contains(result.Exception.Message, want) ||
				strings.Contains(result.Exception.Message, "hunter2") {
				t.Errorf("%s: %v, %+v", source, err, result.Exception)
			}
		})
	}
	if text := log.String(); !strings.Contains(text, "hunter2") ||
		!strings.Contains(text, "labels.tenant=acme") {
		t.Errorf("the log says nothing of the panic: %s", text)
	}
}

func TestFunctionsThatCannotBeOffered(t *testing.T) {
	one := func(context.Context, struct{}) (int, error) { return 1, nil }
	for want, functions := range map[string][]rlm.Function{
		"identifier":           {rlm.Func("not a name", "", one)},
		"its name is reserved": {rlm.Func("FINAL", "", one)},
		"name is reserved":     {rlm.Func("llm_query", "", one)},
		"reserved":             {rlm.Func("_session_value_in", "", one)},
		"want a struct":        {rlm.Func("f", "", func(context.Context, int) (int, error) { return 1, nil })},
		"cannot name an argument": {rlm.Func("f", "", func(context.Context, struct {
			Class int `json:"class"`
		},
		) (int, error) {
			return 1, nil
		})},
		"unsupported": {rlm.Func("f", "", func(context.Context, struct{ C chan int }) (int, error) {
			return 1, nil
		})},
		"the name is taken": {rlm.Func("f", "", one), rlm.Func("f", "", one)},
		"make it with Func": {{}},
	} {
		t.Run(want, func(t *testing.T) {
			_, err := tryOpen(t, rlm.SessionConfig{Functions: functions})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", want, err)
			}
			engine, failed := sharedEngine()
			if failed != nil {
				t.Fatal(failed)
			}
			var setup *rlm.SetupError
			_, err = engine.Ask(t.Context(), rlm.Task{Functions: functions})
			if !errors.As(err, &setup) {
				t.Errorf("%s: %v", want, err)
			}
		})
	}
}

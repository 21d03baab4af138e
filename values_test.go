package rlm_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/tiers"
)

func TestValuesGoInAndComeBack(t *testing.T) {
	type point struct {
		X, Y int
		Name string `json:"name,omitempty"`
	}
	session := open(t, rlm.SessionConfig{})
	for _, value := range []any{
		nil, true, 3.5, "ü\n\u2028 \"",
		[]any{"a", nil, false},
		map[string]any{"k": []any{1.5, map[string]any{}}},
		strings.Repeat("long ", 1<<20),
	} {
		if err := session.Set(t.Context(), "v", value); err != nil {
			t.Fatal(err)
		}
		got := any("not set")
		if err := session.Get(t.Context(), "v", &got); err != nil ||
			!reflect.DeepEqual(got, value) {
			t.Errorf("%.60v comes back as %.60v (%v)", value, got, err)
		}
	}
	if err := session.Set(t.Context(), "p", point{X: 1, Y: math.MaxInt64}); err != nil {
		t.Fatal(err)
	}
	prints(t, session, "print(p)", "{'X': 1, 'Y': 9223372036854775807}\n")
	var p point
	if err := session.Get(t.Context(), "p", &p); err != nil || p.Y != math.MaxInt64 {
		t.Errorf("%+v, %v", p, err)
	}
	var names []string
	for _, v := range session.Variables() {
		names = append(names, v.Name)
	}
	if got := strings.Join(names, " "); got != "v p" && got != "p v" {
		t.Errorf("the variables are %s", got)
	}
}

// TestAVariableMayHaveAnyName checks variables with the same names as those in Get's own snippet.
func TestAVariableMayHaveAnyName(t *testing.T) {
	session := open(t, rlm.SessionConfig{})
	names := "text whole real several fixed mapping wrong found given value above i part key kinds"
	for _, name := range strings.Fields(names) {
		if err := session.Set(t.Context(), name, name); err != nil {
			t.Fatal(err)
		}
		var got string
		if err := session.Get(t.Context(), name, &got); err != nil || got != name {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
}

func TestPythonValuesArriveAsTheyAre(t *testing.T) {
	session := open(t, rlm.SessionConfig{})
	prints(t, session, `import collections, enum
class Level(enum.IntEnum):
    LOW = 1
counts = collections.Counter("aab")
pair = (1, [2, (3,)])
level = Level.LOW
str = list = dict = isinstance = repr = None  # a model may do that`, "")
	var counts map[string]int
	if err := session.Get(t.Context(), "counts", &counts); err != nil || counts["a"] != 2 {
		t.Errorf("%v, %v", counts, err)
	}
	var pair []any
	if err := session.Get(t.Context(), "pair", &pair); err != nil || len(pair) != 2 {
		t.Errorf("%v, %v", pair, err)
	}
	var level int
	if err := session.Get(t.Context(), "level", &level); err != nil || level != 1 {
		t.Errorf("%v, %v", level, err)
	}
	if err := session.Get(t.Context(), "pair", &level); err == nil {
		t.Error("a list is decoded into an int")
	}
}

// TestCommonNamesAreVariables checks a common word that is also the name of a function.
func TestCommonNamesAreVariables(t *testing.T) {
	session := open(t, rlm.SessionConfig{})
	if err := session.Set(t.Context(), "tally", []int{1, 2}); err != nil {
		t.Fatal(err)
	}
	prints(t, session, "predict = sum(tally)\nprint(predict)", "3\n")
	var got int
	if err := session.Get(t.Context(), "predict", &got); err != nil || got != 3 {
		t.Errorf("%d, %v", got, err)
	}
}

func TestValuesThatJSONCannotCarryAreErrors(t *testing.T) {
	session := open(t, rlm.SessionConfig{})
	prints(t, session, "loop = []\nloop.append(loop)\nclass Thing: pass", "")
	for expression, want := range map[string]string{
		"{1, 2}":                            "v is of type set",
		"b'raw'":                            "v is of type bytes",
		"[1, {'a': (0, Thing())}]":          "v[1]['a'][1] is of type Thing",
		"float('nan')":                      "v is not a finite number",
		"[-float('inf')]":                   "v[0] is not a finite number",
		"{1: 2}":                            "v has the key 1, which is not a str",
		"loop":                              "v[0] contains itself",
		"'\\ud800'":                         "not Unicode",
		"len":                               "v is of type",
		"type('Odd', (), {'__mro__': 5})()": "v is of type Odd",
	} {
		t.Run(expression, func(t *testing.T) {
			prints(t, session, "v = "+expression, "")
			var got any
			if err := session.Get(t.Context(), "v", &got); err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, %v", expression, got, err)
			}
		})
	}
	prints(t, session, "print([n for n in globals() if n.startswith('_session_hand')])", "[]\n")
	for name, want := range map[string]string{
		"missing": "NameError", "not a name": "identifier", "class": "identifier",
		"context": "identifier", "FINAL": "identifier",
		"llm_query": "reserved", "_session_value_in": "reserved", "a; b": "identifier", "": "identifier",
	} {
		t.Run(name, func(t *testing.T) {
			var got any
			if err := session.Get(t.Context(), name, &got); err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("Get %q: %v", name, err)
			}
			if err := session.Set(t.Context(), name, 1); name != "missing" &&
				(err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("Set %q: %v", name, err)
			}
		})
	}
	for _, value := range []any{math.NaN(), make(chan int), map[bool]int{true: 1}} {
		if err := session.Set(t.Context(), "v", value); err == nil {
			t.Errorf("%v can be set", value)
		}
	}
}

// TestASnippetCannotMoveValuesItself checks that a snippet cannot call the functions reserved for
// Set and Get.
func TestASnippetCannotMoveValuesItself(t *testing.T) {
	session := open(t, rlm.SessionConfig{})
	if err := session.Set(t.Context(), "secret", "s"); err != nil {
		t.Fatal(err)
	}
	for _, source := range []string{`_session_value_in("secret")`, `_session_value_out(1, "")`} {
		t.Run(source, func(t *testing.T) {
			result, err := session.Run(t.Context(), source)
			if err != nil || result.Status != tiers.StatusRaised ||
				!strings.Contains(result.Exception.Message, "no value") {
				t.Errorf("%s: %+v, %v", source, result.Exception, err)
			}
		})
	}
}

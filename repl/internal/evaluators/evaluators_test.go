package evaluators_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/repl/internal/evaluators"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// parsed returns JSON in the form that this package uses.
func parsed(t *testing.T, text string) any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func variables(t *testing.T, text string) map[string]any {
	t.Helper()
	v, ok := parsed(t, text).(map[string]any)
	if !ok {
		t.Fatalf("%s is no object", text)
	}
	return v
}

// TestTemplatesRender checks the results of templates.
//
// Source 004, repl/internal/evaluators/template.go: Templates: {{ state.reflection_output |
// tojson }} and {% for error in state.reflection_errors %}.
func TestTemplatesRender(t *testing.T) {
	skip.WithoutJail(t)
	state := variables(t, `{"state": {"name": "Ann", "n": 3, "half": 0.5, "list": [1, {"a": "b"}],
		"none": null, "yes": true, "html": "<a & 'b'>", "big": 9007199254740993,
		"errors": [{"path": "$.a", "message": "m1"}, {"path": "$.b", "message": "m2"}]}}`)
	for template, want := range map[string]string{
		`"{{ state.name }}"`:                     `"Ann"`,
		`"Dear {{ state.name }}!"`:               `"Dear Ann!"`,
		`"{{ state.list }}"`:                     `[1, {"a": "b"}]`,
		`"  {{ state.n }}\n"`:                    `3`,
		`"{{- state.half -}}"`:                   `0.5`,
		`"{{ state.yes }}"`:                      `true`,
		`"{{ state.none }}"`:                     `null`,
		`"{{ state.missing }}"`:                  `null`,
		`"{{ state.big }}"`:                      `9007199254740993`,
		`"[{{ state.missing|default('') }}]"`:    `"[]"`,
		`"{% if state.missing %}a{% endif %}"`:   `""`,
		`"{{ state.name | upper }}"`:             `"ANN"`,
		`"{{ state.n > 2 and state.yes }}"`:      `true`,
		`"{{ state.list | tojson }}"`:            `"[1,{\"a\":\"b\"}]"`,
		`"<{{ state.html }}>"`:                   `"<<a & 'b'>>"`,
		`"{{ state.html }}"`:                     `"<a & 'b'>"`,
		`"{% if state.yes %}a{% endif %}"`:       `"a"`,
		`"{# nothing #}"`:                        `""`,
		`{"a": ["{{ state.n }}"], "b": "plain"}`: `{"a": [3], "b": "plain"}`,
		`"{% for e in state.errors %}- {{ e.path }}: {{ e.message }}\n{% endfor %}"`: `"- $.a: m1\n- $.b: m2\n"`,
	} {
		t.Run(fmt.Sprintf("%.60s", template), func(t *testing.T) {
			got, err := evaluators.Jail{}.Render(t.Context(), parsed(t, template), state)
			if err != nil {
				t.Errorf("%s: %v", template, err)
				return
			}
			if !reflect.DeepEqual(got, parsed(t, want)) {
				t.Errorf("%s: got %#v, want %s", template, got, want)
			}
		})
	}
}

// TestATemplateThatFailsIsShown checks that the error quotes the failing line verbatim, but
// shortened.
func TestATemplateThatFailsIsShown(t *testing.T) {
	skip.WithoutJail(t)
	for template, want := range map[string]string{
		"for {{ state.name }}": "undefined variable: undefined value, in line 1: " +
			"for {{ state.name }} (the state has nane)",
		"{{ state.a.b.c }}": "undefined variable: undefined value, in line 1: {{ state.a.b.c }} (the state has nane)",
		"one\n  two {{ state.a.b.c }}\nthree": "undefined variable: undefined value, in line 2: " +
			"two {{ state.a.b.c }} (the state has nane)",
		"{{ state.a.b ~ '" + strings.Repeat("é",
			500) + "' }}": ", in line 1: {{ state.a.b ~ '" + strings.Repeat("é", 64) + "… (the state has nane)",
	} {
		t.Run(fmt.Sprintf("%.60s", template), func(t *testing.T) {
			_, err := evaluators.Jail{}.Render(
				t.Context(), map[string]any{"prompt": template},
				map[string]any{"state": map[string]any{"nane": 1}},
			)
			var ended *evaluators.ProgramError
			if !errors.As(err, &ended) || ended.Kind != evaluators.Raised ||
				!strings.HasSuffix(ended.Message, want) {
				t.Errorf("%.60q: got %v, want %s", template, err, want)
			}
		})
	}
}

func TestTemplatesAreCheckedByLine(t *testing.T) {
	skip.WithoutJail(t)
	mistakes, err := evaluators.Jail{}.CheckTemplates(
		t.Context(),
		[]string{
			"{{ fine }}", "one\ntwo {{ state. }}\n", "{% for x in y %}",
			strings.Repeat("{{ (", 1) + strings.Repeat("(", 5000),
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	if len(mistakes) != 3 || mistakes[0].Index != 1 || mistakes[0].Line != 2 ||
		mistakes[1].Index != 2 || mistakes[2].Index != 3 {
		t.Errorf("got %+v", mistakes)
	}
}

// TestLuaProgramsGiveValues checks the results of Lua programs.
//
// Source 004, repl/internal/evaluators/lua.go: Lua evaluator support.
func TestLuaProgramsGiveValues(t *testing.T) {
	skip.WithoutJail(t)
	given := variables(
		t, `{"output": {"name": "Ann", "tags": ["a", "b"], "none": null}, "state": {"n": 2}}`,
	)
	for source, want := range map[string]string{
		`return {valid = output.name == "Ann", score = 0.5, errors = {}}`: `{"valid": true,
			"score": 0.5, "errors": []}`,

		`result = {valid = #output.tags == state.n}`:          `{"valid": true}`,
		`return output.none == nil`:                           `true`,
		`return {1, "two", {three = 3.5}}`:                    `[1, "two", {"three": 3.5}]`,
		`return string.upper(output.name) .. math.floor(1.5)`: `"ANN1"`,
		`print("x") return type(io) .. type(os) .. type(require) .. type(dofile) .. ` +
			`type(package) .. type(debug)`: `"nilnilnilnilnilnil"`,
	} {
		t.Run(fmt.Sprintf("%.60s", source), func(t *testing.T) {
			got, err := evaluators.Jail{}.Lua(t.Context(), source, given)
			if err != nil || !reflect.DeepEqual(got, parsed(t, want)) {
				t.Errorf("%s: got %#v, %v, want %s", source, got, err, want)
			}
		})
	}
}

// TestPrologProgramsGiveValues checks the results of Prolog programs.
//
// Source 004, repl/internal/evaluators/prolog.go: Prolog evaluator support.
func TestPrologProgramsGiveValues(t *testing.T) {
	skip.WithoutJail(t)
	given := variables(t, `{"state": {"limit": 30}, "output": {"name": "Ann", "age": 31,
		"tags": ["a", "b"], "ok": true, "none": null, "half": 0.5}}`)
	for source, want := range map[string]string{
		`output(O), get(O, name, N), return(name, N).`: `{"name": "Ann"}`,
		`old(A) :- state(limit, L), A > L.
		 ?- output(O), get(O, age, A), old(A), return(valid, true).`: `{"valid": true}`,
		`output(O), get(O, tags, T), length(T, N), return(n, N).`: `{"n": 2}`,
		`return(errors, [json([message='m', path="p"])]).`: `{
			"errors": [{"message": "m", "path": "p"}]}`,

		`return(list, []). return(x, 0.5). return(y, null).`:              `{"list": [], "x": 0.5, "y": null}`,
		`output(O), ( get(O, ok, true) -> return(a, 1) ; return(a, 2) ).`: `{"a": 1}`,
		`greeting --> [hello], name. name --> [ann].
		 ?- phrase(greeting, [hello, ann]), return(valid, true).`: `{"valid": true}`,
		`:- dynamic(seen/1). seen(x). ?- seen(X), return(x, X).`: `{"x": "x"}`,
	} {
		t.Run(fmt.Sprintf("%.60s", source), func(t *testing.T) {
			got, err := evaluators.Jail{}.Prolog(t.Context(), source, given)
			if err != nil || !reflect.DeepEqual(got, parsed(t, want)) {
				t.Errorf("%s: got %#v, %v, want %s", source, got, err, want)
			}
		})
	}
}

// TestHostileProgramsEndAlone checks that programs that hang, grow, recurse or end their process
// end only themselves.
func TestHostileProgramsEndAlone(t *testing.T) {
	skip.WithoutJail(t)
	j := evaluators.Jail{Wall: 2 * time.Second, Memory: 32 << 20}
	render := func(text string) func() error {
		return func() error {
			_, err := j.Render(t.Context(), text, map[string]any{"state": map[string]any{}})
			return err
		}
	}
	luaOf := func(source string) func() error {
		return func() error {
			_, err := j.Lua(t.Context(), source, nil)
			return err
		}
	}
	prologOf := func(source string) func() error {
		return func() error {
			_, err := j.Prolog(t.Context(), source, nil)
			return err
		}
	}
	// On a busy machine, programs that grow may hit the time limit first.
	limits := []evaluators.Kind{
		evaluators.Time, evaluators.Memory, evaluators.Died, evaluators.Raised,
	}
	for name, c := range map[string]struct {
		run  func() error
		may  []evaluators.Kind
		says string
	}{
		"template loops": {render("{% for a in range(99999) %}{% for b in range(99999) %}{% " +
			"endfor %}{% endfor %}"), []evaluators.Kind{
			evaluators.Raised, evaluators.Time,
			evaluators.Memory,
		}, ""},
		"template doubles": {
			render("{% set ns = namespace(x='xxxxxxxxxx') %}{% for a in range(60) %}{% set ns.x " +
				"= ns.x ~ ns.x %}{% endfor %}{{ ns.x }}"),
			[]evaluators.Kind{evaluators.Time, evaluators.Memory, evaluators.Died},
			"",
		},
		"template filters": {render("{{ 'x'" + strings.Repeat("|replace('x','xxxxxxxxxx')",
			12) + " }}"), []evaluators.Kind{
			evaluators.Time, evaluators.Memory, evaluators.Died,
			evaluators.Size,
		}, ""},
		"template indents": {
			render("a {{ {'a':1}|tojson(indent=2000000000) }}"),
			[]evaluators.Kind{evaluators.Time, evaluators.Memory, evaluators.Died},
			"",
		},
		"template recurses": {
			render("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), limits,
			"",
		},
		"template is large": {render("{% for a in range(90000) %}" + strings.Repeat("x",
			200) + "{% endfor %}"), []evaluators.Kind{
			evaluators.Time, evaluators.Size,
			evaluators.Memory,
		}, ""},
		"template includes": {
			render("{% include '/etc/passwd' %}"),
			[]evaluators.Kind{evaluators.Raised},
			"not found",
		},
		"lua hangs": {
			luaOf("while true do end"),
			[]evaluators.Kind{evaluators.Time},
			"longer than 2s",
		},
		"lua pattern bomb": {
			luaOf(`return string.find(string.rep("a", 10000), ` +
				`string.rep("a?", 10000) .. string.rep("a", 10000))`),
			[]evaluators.Kind{
				evaluators.Time, evaluators.Raised, evaluators.Memory, evaluators.Died,
			},
			"",
		},
		"lua backtracking": {
			luaOf(`return string.find(string.rep("a", 40), string.rep(".-", 25) .. "b")`),
			[]evaluators.Kind{evaluators.Time},
			"longer than",
		},
		"lua grows": {
			luaOf(`local s = "x" while true do s = s .. s end`),
			[]evaluators.Kind{evaluators.Time, evaluators.Memory, evaluators.Died},
			"",
		},
		"lua recurses": {
			luaOf(`local function f() return 1 + f() end return f()`), limits,
			"",
		},
		"lua in itself": {
			luaOf(`local t = {} t[1] = t return t`),
			[]evaluators.Kind{evaluators.Size},
			"nested",
		},
		"lua returns code": {
			luaOf(`return print`),
			[]evaluators.Kind{evaluators.Raised},
			"function",
		},
		"lua syntax": {luaOf(`return return`), []evaluators.Kind{evaluators.Syntax}, ""},
		"lua error":  {luaOf(`error({1})`), []evaluators.Kind{evaluators.Raised}, ""},
		"lua parser": {
			luaOf("return " + strings.Repeat("(", 200_000)),
			[]evaluators.Kind{
				evaluators.Time, evaluators.Syntax, evaluators.Died,
				evaluators.Memory, evaluators.Raised,
			},
			"",
		},
		"prolog halts": {
			prologOf(`?- halt.`),
			[]evaluators.Kind{evaluators.Died},
			"exit code 0",
		},
		"prolog halts so": {
			prologOf(`?- halt(7).`),
			[]evaluators.Kind{evaluators.Died},
			"exit code 7",
		},
		"prolog hangs": {prologOf(`p :- p. ?- p.`), []evaluators.Kind{
			evaluators.Time,
			evaluators.Memory, evaluators.Died,
		}, ""},
		"prolog grows": {
			prologOf(`p(X) :- p([X|X]). ?- p(a).`),
			[]evaluators.Kind{evaluators.Time, evaluators.Memory, evaluators.Died},
			"",
		},
		"prolog opens": {
			prologOf(`?- open('/etc/passwd', read, S), get_char(S, C), return(c, C).`),
			[]evaluators.Kind{evaluators.Raised},
			"",
		},
		"prolog consults": {
			prologOf(`?- consult('/etc/passwd').`),
			[]evaluators.Kind{evaluators.Raised},
			"",
		},
		"prolog in itself": {
			prologOf(`?- X = [X], return(x, X).`),
			[]evaluators.Kind{
				evaluators.Size, evaluators.Raised, evaluators.Died, evaluators.Time,
				evaluators.Memory,
			},
			"",
		},
		"prolog fails": {
			prologOf(`?- 1 = 2.`),
			[]evaluators.Kind{evaluators.Raised},
			"no solution",
		},
		"prolog syntax": {prologOf(`?- a b.`), []evaluators.Kind{evaluators.Syntax}, ""},
		"prolog throws": {
			prologOf(`?- throw(oops).`),
			[]evaluators.Kind{evaluators.Raised},
			"oops",
		},
		"prolog redefines": {
			prologOf(`append(a, b, c).`),
			[]evaluators.Kind{evaluators.Raised},
			"permission",
		},
		"prolog parser": {
			prologOf("?- X = " + strings.Repeat("(", 200_000)),
			[]evaluators.Kind{
				evaluators.Time, evaluators.Syntax, evaluators.Died,
				evaluators.Memory,
			},
			"",
		},
		"prolog returns code": {
			prologOf(`return(x, f(1)).`),
			[]evaluators.Kind{evaluators.Raised},
			"is not a value",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.run()
			var ended *evaluators.ProgramError
			if !errors.As(err, &ended) {
				t.Fatalf("got %v", err)
			}
			ok := false
			for _, kind := range c.may {
				ok = ok || ended.Kind == kind
			}
			if !ok || !strings.Contains(ended.Message, c.says) {
				t.Errorf(
					"it ended by %q: %q; may be %v and say %q", ended.Kind, ended.Message, c.may,
					c.says,
				)
			}
			t.Logf("%v", err)
		})
	}
}

func TestACanceledRequestEnds(t *testing.T) {
	skip.WithoutJail(t)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := evaluators.Jail{}.Lua(ctx, "while true do end", nil)
	if !errors.Is(err, ctx.Err()) || err == nil {
		t.Errorf("got %v", err)
	}
}

// TestPrologErrorsHaveLines checks that an error names the line of a syntax error or of the failed
// goal.
func TestPrologErrorsHaveLines(t *testing.T) {
	skip.WithoutJail(t)
	for source, want := range map[string]string{
		"a(1).\nb(2).\nc(3\n":                                "line 3: ",
		"a(1).\n\n?- a(X), return(valid, true).\n?- a(2).\n": "line 4: a goal has no solution",
		"?- atom_length(X, Y).\n":                            "line 1: ",
		"a(1).\n:-\n  nothing(1).\n":                         "line 3: ",
	} {
		t.Run(source, func(t *testing.T) {
			_, err := evaluators.Jail{}.Prolog(t.Context(), source, nil)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: got %v, want %s", source, err, want)
			}
		})
	}
}

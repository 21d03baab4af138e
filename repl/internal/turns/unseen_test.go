package turns

import (
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/ledger"
)

func TestAConstantIsComputedByNoCode(t *testing.T) {
	for argument, want := range map[string]bool{
		`17`: true, `1e5`: true, `[1, 2.5, -3]`: true, `"Kevin"`: true, `'Kevin'`: true, `b'x' + u"y"`: true,
		`{'a': True, "b": None}`: true, `'''a "b"'''`: true, `2024-03-01`: true,
		`n`: false, `n * 2`: false, `f"{n}"`: false, `rf"{n}"`: false, `["a", n]`: false, `len('a')`: false,
		`'a'.upper()`: false, `it's 17`: false,
	} {
		t.Run(argument, func(t *testing.T) {
			if got := (&textFinal{Call: "FINAL", Argument: argument}).isConstant(); got != want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestOutputShowsWholeWords(t *testing.T) {
	for _, c := range []struct {
		value, output string
		want          bool
	}{
		{"84", "the count: 84.", true},
		{"84", "1,084", false},
		{"1084", "1,084 rows", true},
		{"8", "84", false},
		{"84", "84.5", false},
		{"-3", "it is -3", true},
		{"true", "True", true},
		{"false", "Falsehood", false},
		{`"two  words"`, "so two\nwords", true},
		{`["a", 1]`, "a 1", true},
		{`["a", 2]`, "a 1", false},
		{`{"n": 4}`, "n is 4", true},
		{"null", "None", true},
		{"17", "it is -17", false},
		{"17", "2000-17", true},
		{"[]", "50", false},
		{"[]", "found: []", true},
		{"{}", "50", false},
		{`""`, "50", false},
		{`{"n": []}`, "50", false},
	} {
		t.Run(c.value+" in "+c.output, func(t *testing.T) {
			turn := Turn{}
			turn.Ran = append(turn.Ran, ranWith(c.output))
			turn.Ran[0].Source = "compute()"
			if got := !turn.isUnseen([]byte(c.value)); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestOwnWordsAreNoEvidence(t *testing.T) {
	for _, c := range []struct{ source, output, want string }{
		{"print(f())\nprint('The count is 17')", "50\nThe count is 17\n", "50\n\n"},
		{"f()\n17", "50\n17\n", "50\n\n"},
		{"print(f())", "17\n", "17\n"},
		{"n = 17\nprint(f(), n)", "50 17\n", "50 \n"},
		{"n = f()\nprint(n, 'in', 17)", "50 in 17\n", "50  \n"},
		{"n = f()\nprint(f'17 of {n}: {n:.0f}, {m}')\nm = 3", "17 of 50: 50, 3\n", " 50: 50, \n"},
		{"n = f()\nprint('yes' if n else 'no')", "yes\n", "yes\n"},
	} {
		t.Run(c.source, func(t *testing.T) {
			if got := cutOwnWords(c.output, c.source); got != c.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestEarlierOutputIsEvidence(t *testing.T) {
	turn := Turn{seen: "Kevin: 5200\n"}
	turn.Ran = append(turn.Ran, ranWith("ok\n"))
	turn.Ran[0].Source = "check()"
	if turn.isUnseen([]byte(`"Kevin"`)) || !turn.isUnseen([]byte(`"Eve"`)) {
		t.Error("an earlier turn printed Kevin alone")
	}
}

func TestStatedAnswersAreRecognised(t *testing.T) {
	for source, want := range map[string]bool{
		"FINAL(17)": true, "# it's so\nanswer = 17 # seen\nFINAL(answer)\n": true, "FINAL(\n    1e5,\n)": true,
		"n = 'x'\nFINAL_VAR('n')": true, "answer['content'] = 17\nanswer['ready'] = True": true,
		"FINAL({'n': [17, None]})": true,
		"FINAL(n)":                 false, "n = count()\nFINAL(n)": false, "FINAL_VAR('n')": false,
		"FINAL(answer)":        false,
		"print(17)\nFINAL(17)": true, "FINAL(n=17)": true,
		"if n > 3:\n    FINAL(17)": false, "print(n)\nFINAL(17)": false, "FINAL(f'{n}')": false,
		"n = 3\nFINAL(n + m)": false, "n == 3": false,
	} {
		t.Run(source, func(t *testing.T) {
			if got := isStated(source); got != want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestAnAnswerThatTheCodeDoesNotComputeIsStated(t *testing.T) {
	for source, want := range map[string]bool{
		"print(context.count('a'))\nFINAL(17)":                                  true,
		"n = len(context)\nprint(n)\nSUBMIT(count=17, unit='words')":            true,
		"print(context[:9])\nFINAL(\"\"\"Kevin:\n5200\n\"\"\")  # it's so":      true,
		"a = 17\nprint(len(context))\nFINAL(a)":                                 true,
		"a = 'x'\nprint(len(context))\nFINAL_VAR('a')":                          true,
		"print(f())\nanswer['content'] = 17\nanswer['ready'] = True":            true,
		"print(f())\nanswer = {'content': 17, 'ready': True}":                   true,
		"for x in context:\n    print(x)\nFINAL([\n1,\n2,\n])":                  true,
		"print(f())\nFINAL(17)\nprint('done')":                                  true,
		"print(f()); FINAL(17)":                                                 true,
		"print(f())\nFINAL(int('17'))":                                          true,
		"n = 17\nprint(f())\nFINAL(f'{n:.2f} of {20}')":                         true,
		"print(f())\nimport json\nFINAL(json.loads('{\"a\": 17}'))":             true,
		"n: int = 17\nprint(f())\nFINAL(n)":                                     true,
		"FINAL(17)":                                                             false,
		"if f(): print(1); FINAL(17)":                                           false,
		"print('so')\nFINAL(17)":                                                false,
		"print(len(context))\nFINAL(n)":                                         false,
		"a = 17\na += len(context)\nprint(a)\nFINAL(a)":                         false,
		"a = 17\nif f():\n    a = 18\nprint(1)\nFINAL(a)":                       false,
		"if f():\n    print(1)\n    FINAL(17)":                                  false,
		"print(f())\nanswer['ready'] = True":                                    false,
		"answer['content'] = f()\nprint(1)\nanswer['ready'] = True":             false,
		"answer['content'] = 1\nanswer['content'] += f()\nanswer['ready']=1":    false,
		"print(f())\nFINAL(f'{n}')":                                             false,
		"print(f())\nFINAL(f'{n} of {len(context)}')":                           false,
		"print('open\nFINAL(17)":                                                false,
		"print(f())\nif True:\n    FINAL(17)":                                   true,
		"def main():\n    print(f())\n    return 17\nFINAL(main())":             true,
		"def main():\n    print(f())\n    FINAL(17)\nmain()":                    true,
		"print(f())\nclass A:\n    v = 17\nFINAL(A().v)":                        true,
		"import base64\nprint(f())\nFINAL(base64.b64decode('MTc='))":            true,
		"import requests\nprint(f())\nFINAL(requests.get('a').text)":            false,
		"a = f()\nprint(a)\na = 17\nFINAL(a)":                                   true,
		"context = 'a' * 17\nFINAL(context.count('a'))":                         true,
		"def g(context):\n    return context.count('a')\nFINAL(g(context))":     false,
		"try:\n    n = int(f())\nexcept ValueError:\n    n = 0\nFINAL(n)":       false,
		"out = []\nout.append(f())\nFINAL(out)":                                 false,
		"n = 0\nwhile True:\n    if f(n):\n        break\n    n += 1\nFINAL(n)": false,
		"v = 'few'\ndef g():\n    global v\n    v = f()\ng()\nFINAL(v)":         false,
		"print(f())\nFINAL(eval('17'))":                                         true,
		"print(f())\nFINAL(eval('f()'))":                                        false,
	} {
		t.Run(source, func(t *testing.T) {
			if got := statesAnswer(source); got != want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestACalculatedAnswerIsNotInvented(t *testing.T) {
	const words = "print(f())\nwords = 'a b c d'.split()\n"
	for _, c := range []struct {
		source, answer string
		want           bool
	}{
		{words + "FINAL(len(words))", "4", true},
		{words + "n = 0\nfor w in words:\n    n += 1\nFINAL(n)", "4", true},
		{words + "FINAL(len('four') * 0 + 17)", "17", false},
		{words + "FINAL(sum([8, 9]))", "17", false},
		{words + "FINAL(', '.join(f'{k}: {v}' for k, v in [('a', 17)]))", `"a: 17"`, false},
		{words + "FINAL(17)", "17", false},
	} {
		t.Run(c.source, func(t *testing.T) {
			if got := isCalculated(c.source, []byte(c.answer)); got != c.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func ranWith(output string) (ran ledger.Snippet) {
	ran.Stdout = output
	return ran
}

// TestFloodsOfStepsAreBounded checks inputs that would take minutes in quadratic time.
func TestFloodsOfStepsAreBounded(t *testing.T) {
	if got := strings.TrimSpace(blankTexts(strings.Repeat("#\n", 2<<20))); got != "" {
		t.Errorf("got %.40q", got)
	}
	p := parseProgram("if a: " + strings.Repeat("while b: ", 7_000))
	if last := &p.steps[len(p.steps)-1]; last.parent != 0 {
		t.Errorf("the block %d is in another one", last.parent)
	}
}

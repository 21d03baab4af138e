package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

// load reads a file's content together with variables and arguments.
func load(t *testing.T, content string, environ []string, args ...string) (*Loaded, error) {
	t.Helper()
	s := Sources{Environ: environ, File: NoFile}
	if content != "" {
		s.File = filepath.Join(t.TempDir(), "c.yaml")
		if err := os.WriteFile(s.File, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.Flags = pflag.NewFlagSet("test", pflag.ContinueOnError)
	AddFlags(s.Flags, func(Setting) bool { return true })
	if err := s.Flags.Parse(args); err != nil {
		return nil, err
	}
	return Load(s)
}

func TestDefaultsAreValuesOfTheirSettings(t *testing.T) {
	c, err := load(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range Settings(&c.Config) {
		if got := s.Value.String(); got != s.Default {
			t.Errorf("%s is %q, and its default is %q", s.Key, got, s.Default)
		}
		if from := c.From(s.Key); from.Kind != FromDefault {
			t.Errorf("%s comes from %v", s.Key, from)
		}
	}
}

func TestFlagsGoOverVariablesOverTheFile(t *testing.T) {
	c, err := load(t, "max_depth: 2\nmax_turns: 7\nmodel: a/b\n",
		[]string{"RLM_MAX_DEPTH=3", "RLM_MAX_TURNS=8", "OTHER=1"}, "--max-turns", "9")
	if err != nil {
		t.Fatal(err)
	}
	if c.Model != "a/b" || c.MaxDepth != 3 || c.MaxTurns != 9 || c.MaxCalls != 2000 {
		t.Errorf("%+v", c.Config)
	}
	for key, want := range map[string]string{
		"model": c.File + ":3:1", "max_depth": "RLM_MAX_DEPTH", "max_turns": "--max-turns",
		"max_calls": "default",
	} {
		t.Run(key, func(t *testing.T) {
			if got := c.From(key).String(); got != want {
				t.Errorf("%s comes from %s, want %s", key, got, want)
			}
		})
	}
}

// TestAListGrowsWithEachFlag checks that later flags add to the list of the first.
func TestAListGrowsWithEachFlag(t *testing.T) {
	c, err := load(t, "", []string{"RLM_ALLOW_HOST=z.example:443"},
		"--allow-host", "a.example:443", "--allow-host=b.example:443,c.example:80")
	want := []string{"a.example:443", "b.example:443", "c.example:80"}
	if err != nil || !slices.Equal(c.AllowHost, want) {
		t.Errorf("%q, %v, want %q", c.AllowHost, err, want)
	}
	if _, err := load(t, "", nil, "--allow-host", "a", "--allow-host", "x,,y"); err == nil {
		t.Error("an empty entry of the second flag is taken")
	}
}

func TestEverySettingCanBeGivenInEachWay(t *testing.T) {
	samples := map[string]string{
		"number": "3", "amount": "0.25", "bool": "true", "time": "7s", "size": "40MiB",
		"text": "some/where", "word": "", "list": "a,b", "pairs": "openai=x,vllm=y",
		"agents": `{"a": {"instructions": "b", "tools": [], "contract": {"type": "string"}}}`,
	}
	for i, s := range Settings(&Config{}) {
		sample := samples[s.Value.Type()]
		if c, ok := s.Value.(choice); ok {
			sample = c.from[0]
		}
		if w, ok := s.Value.(whole); ok && w.min > 3 {
			sample = "300"
		}
		yaml := sample
		switch s.Value.Type() {
		case "list":
			yaml = "[a, b]"
		case "pairs":
			yaml = "{openai: x, vllm: y}"
		}
		switch s.Key {
		case "window":
			sample, yaml = "vllm/x=8192,300", "{vllm/x: 8192, '*': 300}"
		case "temperature", "top_p":
			sample, yaml = "1,default,0.5", "[1, default, 0.5]"
		case "seed":
			sample, yaml = "-7", "-7"
		case "reasoning_effort":
			sample, yaml = "low,high", "[low, high]"
		case "extra_body":
			sample, yaml = `[{"a":{"b":[1]}},null]`, "[{a: {b: [1]}}, null]"
		case "price":
			sample, yaml = "vllm/x=0.5:2,0:0", "{vllm/x: 0.5:2, '*': 0:0}"
		}
		ways := map[string]func() (*Loaded, error){
			"file": func() (*Loaded, error) { return load(t, s.Key+": "+yaml+"\n", nil) },
			"variable": func() (*Loaded, error) {
				return load(t, "", []string{s.Variable() + "=" + sample})
			},
			"flag": func() (*Loaded, error) { return load(t, "", nil, "--"+s.Flag()+"="+sample) },
		}
		if s.NoFlag {
			delete(ways, "flag")
		}
		var first any
		for way, read := range ways {
			c, err := read()
			if err != nil {
				t.Errorf("%s by %s: %v", s.Key, way, err)
				continue
			}
			if got := c.From(s.Key).Kind; string(got) != way {
				t.Errorf("%s by %s comes from %s", s.Key, way, got)
			}
			value := Settings(&c.Config)[i].Value.JSON()
			if first == nil {
				first = value
			}
			if !reflect.DeepEqual(first, value) {
				t.Errorf("%s by %s is %v, and %v by another way", s.Key, way, value, first)
			}
		}
	}
}

func TestMistakesOfAFileNameTheirPlace(t *testing.T) {
	for _, c := range []struct{ content, want string }{
		{"max_dept: 3\n", ":1:1: unknown setting \"max_dept\"; did you mean max_depth?"},
		{
			"model: a/b\n  \nmax_turn: 3\n",
			":3:1: unknown setting \"max_turn\"; did you mean max_turns?",
		},
		{"zebra: 3\n", ":1:1: unknown setting \"zebra\""},
		{"max_depth: deep\n", ":1:1: max_depth: give a whole number, not text"},
		{"max_depth: \"3\"\n", "give a whole number, not text"},
		{"max_depth: 1.5\n", "give a whole number, not a number with a fraction"},
		{"max_depth: -1\n", "give a whole number from 0 to 100"},
		{"max_depth: 99999999999999999999\n", "max_depth: "},
		{"max_usd: .nan\n", "give a number, not infinity or not-a-number"},
		{"max_usd: .inf\n", "give a number, not infinity"},
		{"max_usd: 0\n", "give a number above zero"},
		{"model: 4\n", "give text (put quotes around it), not a number"},
		{"model:\n", "give text (put quotes around it), not an empty value"},
		{"model: [a]\n", "give one text, not a list"},
		{"model: {a: b}\n", "give one text, not a mapping"},
		{"model: \"a\\u001b[31mb\"\n", "without control characters"},
		{"preview: yes\n", "give true or false, not text"},
		{"timeout: 30\n", "give a time such as 30s, not a number"},
		{"timeout: -5s\n", "give a time above zero"},
		{"memory: many\n", "give a size above zero"},
		{"memory: 1,5GiB\n", "give a size above zero"},
		{"memory: 1\n", "give at least 40MiB"},
		{"min_isolation: strong\n", "give none, process, container, wasm or kernel"},
		{"depth_models: [a, 3]\n", "give text"},
		{"depth_models: [a, [b]]\n", "give text (put quotes around it), not a list"},
		{
			"keys: {openai: sk-1, opnai: sk-2}\n",
			"one of the names is unknown; did you mean openai?",
		},
		{"keys: sk-secret\n", "give NAME=VALUE pairs"},
		{"model: a\nmodel: b\n", ":2:1: "},
		{"- model\n", ":1:1: the file must be a mapping of settings"},
		{"just text\n", "the file must be a mapping"},
		{"model: a\n---\nmodel: b\n", "second YAML document"},
		{"model: &x a\nsub_model: *x\n", "anchors and aliases are not accepted"},
		{"<<: {model: a}\n", "not accepted"},
		{"model: !!str a\n", "tags, directives"},
		{"? model\n: a\n", "question mark"},
		{"?\n  model\n: a\n", "question mark"},
		{"keys: {? openai: a}\n", "question mark"},
		{"# x\n%YAML 1.2\n---\nmodel: a\n", ":2:1: tags, directives"},
		{"[model]: a\n", "the name of a setting must be a word"},
		{"model: *x\n", ":1:"},
		{"model: a\nmodel: a\n", ":2:1: model is already set in line 1"},
		{"model: a\n...\n%YAML 1.1\n---\nmodel: b\n", "second YAML document"},
		{"model: [[[[[[a]]]]]]\n", "nested too deep"},
		{"model: - - - - - - a\n", ":1:"},
		{"depth_models:\n- - - - - - a\n", ":2:"},
		{"model: 'a\n", ":1:"},
		{"model: a: b\n", ":1:"},
	} {
		t.Run(c.content, func(t *testing.T) {
			_, err := load(t, c.content, nil)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q: %v, want %q in it", c.content, err, c.want)
			}
		})
	}
}

func TestAllMistakesAreNamedAtOnce(t *testing.T) {
	_, err := load(t, "max_dept: 3\nbypass: maybe\nmodel: fine/model\ntimeout: 1\n", nil)
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("want three lines, not: %v", err)
	}
}

func TestForeignNamesAreUnderstood(t *testing.T) {
	c, err := load(t, `
sandbox: monty
async_enabled: false
sub_llm_model_large: big/one
sub_llm_model_small: small/one
trajectory_storage: process_flow
metadata_only_root: false
trigger_on_large_output: false
trigger_on_ahe_distillation: false
trigger_on_kg_bulk_analysis: false
ahe_trace_threshold: 7
kg_bulk_threshold: 8
max_depth: 3
use_wasm: false
`, []string{"ENABLE_RLM=True", "RLM_USE_CONTAINER=0"})
	if err != nil {
		t.Fatal(err)
	}
	got := fmt.Sprint(c.Tier, c.CallsAtOnce, c.LoopsAtOnce, c.Model, c.SubModel, c.Trace, c.Bypass,
		c.OnLargeOutput, c.OnManyTraces, c.OnManyNodes, c.ManyTraces, c.ManyNodes, c.MaxDepth,
		c.Always)
	const want = "interp1 1big/one small/one auto 1099511627776 false false false 7 8 3 true"
	if strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := c.From("tier").String(); got != c.File+":2:1" {
		t.Errorf("the tier comes from %s", got)
	}
	for name, tier := range map[string]string{
		"use_monty": "interp", "use_wasm": "wasm", "use_container": "docker",
	} {
		t.Run(name, func(t *testing.T) {
			if c, err := load(t, name+": true\n", nil); err != nil || c.Tier != tier {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	if c, err := load(t, "tier: docker\n",
		[]string{"RLM_SANDBOX=wasm"}); err != nil || c.Tier != "wasm" ||
		c.From("tier").Name != "RLM_SANDBOX" {
		t.Errorf("RLM_SANDBOX does not go over the file: %v", err)
	}
}

func TestForeignNamesThatContradictAreRefused(t *testing.T) {
	for content, want := range map[string]string{
		"use_wasm: true\nuse_container: true\n":     ":2:1: use_container: use_container contradicts use_wasm",
		"sandbox: wasm\nuse_monty: true\n":          "contradicts sandbox",
		"tier: docker\nsandbox: wasm\n":             "contradicts tier",
		"async_enabled: false\ncalls_at_once: 8\n":  "contradicts async_enabled",
		"model: a\nsub_llm_model_large: b\n":        "contradicts model",
		"sandbox: firecracker\n":                    "give auto, monty, wasm, docker or local",
		"use_wasm: 1\n":                             "give true or false",
		"ahe_trace_threshold: x\n":                  "give a whole number",
		"ahe_trace_threshold: -3\n":                 "give a whole number",
		"trigger_on_ahe_distilation: true\n":        "did you mean trigger_on_ahe_distillation?",
		"metadata_only_root: false\nbypass: 4096\n": "contradicts metadata_only_root",
	} {
		t.Run(content, func(t *testing.T) {
			_, err := load(t, content, nil)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v, want %q in it", content, err, want)
			}
		})
	}
	if _, err := load(t, "tier: wasm\nsandbox: wasm\nuse_wasm: true\n", nil); err != nil {
		t.Errorf("names that agree are refused: %v", err)
	}
}

func TestVariablesThatAreMisspeltAreErrors(t *testing.T) {
	for variable, want := range map[string]string{
		"RLM_MAX_USB=1":    "unknown environment variable RLM_MAX_USB; did you mean RLM_MAX_USD?",
		"RLM_MAX_DEPTH=x":  "RLM_MAX_DEPTH: max_depth: \"x\": give a whole number",
		"RLM_PREVIEW=on":   "give true or false",
		"RLM_USE_WASM=yes": "give true or false",
	} {
		t.Run(variable, func(t *testing.T) {
			_, err := load(t, "", []string{variable})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q in it", variable, err, want)
			}
		})
	}
	for _, fine := range []string{
		"RLM_REQUIRE_TIERS=wasm", "RLM_DEMO_BYTES=1", "RLM_MODEL=", "=C:=C:\\",
		"RLM_LOCAL_PYTHON=x",
	} {
		t.Run(fine, func(t *testing.T) {
			if _, err := load(t, "", []string{fine}); err != nil {
				t.Errorf("%s: %v", fine, err)
			}
		})
	}
}

func TestSecretsAreNeverShown(t *testing.T) {
	const secret = "sk-very-secret"
	c, err := load(t, "keys: {openai: "+secret+"}\n"+
		"base_urls: {vllm: 'https://me:"+secret+"@host/v1?key="+secret+"'}\n", nil)
	if err != nil {
		t.Fatal(err)
	}
	if c.Keys["openai"] != secret {
		t.Fatal("the key is lost")
	}
	for _, s := range Settings(&c.Config) {
		shown, err := json.Marshal(s.Value.JSON())
		if err != nil || strings.Contains(string(shown)+s.Value.String(), secret) {
			t.Errorf("%s shows %s, %v", s.Key, shown, err)
		}
	}
	for _, environ := range []string{
		"RLM_KEYS=" + secret, "RLM_KEYS=" + secret + "=",
		"RLM_KEYS=openai=" + secret + ",openai=" + secret + "\x01",
	} {
		_, err := load(t, "", []string{environ})
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%v", err)
		}
	}
	for _, content := range []string{
		"keys: " + secret, "keys: [" + secret + "]", "keys: {" + secret + ": a}",
		"keys: {openai: [" + secret + "]}", "keys: {openai: \"" + secret + "\\u0001\"}",
		"keys: {openai: a, openai: " + secret + "}", "keys:\n  openai: " + secret + "\n bad",
	} {
		_, err := load(t, content, nil)
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", content, err)
		}
	}
}

func TestTheFileIsFound(t *testing.T) {
	dir := t.TempDir()
	user, named := filepath.Join(dir, "user.yaml"), filepath.Join(dir, "named.yaml")
	for path, content := range map[string]string{user: "max_turns: 1\n", named: "max_turns: 2\n"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	missing := filepath.Join(dir, "missing.yaml")
	for _, c := range []struct {
		s     Sources
		turns int64
		err   error
	}{
		{s: Sources{}, turns: 30},
		{s: Sources{UserFile: missing}, turns: 30},
		{s: Sources{UserFile: user}, turns: 1},
		{s: Sources{UserFile: user, Environ: []string{"RLM_CONFIG=" + named}}, turns: 2},
		{s: Sources{File: user, Environ: []string{"RLM_CONFIG=" + named}}, turns: 1},
		{s: Sources{File: NoFile, UserFile: user}, turns: 30},
		{s: Sources{File: missing}, err: os.ErrNotExist},
		{s: Sources{Environ: []string{"RLM_CONFIG=" + missing}}, err: os.ErrNotExist},
	} {
		got, err := Load(c.s)
		if !errors.Is(err, c.err) || err == nil && got.MaxTurns != c.turns {
			t.Errorf("%+v: %+v, %v", c.s, got, err)
		}
	}
}

func TestFilesOfOtherKindsAreRefused(t *testing.T) {
	dir := t.TempDir()
	big := filepath.Join(dir, "big.yaml")
	if err := os.WriteFile(big, []byte("model: "+strings.Repeat("a", maxFile)), 0o600); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(dir, "open.yaml")
	if err := os.WriteFile(open, []byte("model: a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o666); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir: "not a regular file", big: "more than 65536 bytes", open: "every user may write",
	} {
		if _, err := Load(Sources{File: path}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestHostileFilesEndSoon(t *testing.T) {
	for name, content := range map[string]string{
		"brackets": strings.Repeat("[", maxFile-1), "braces": strings.Repeat("{", maxFile-1),
		"dashes": strings.Repeat("- ", maxFile/2-1),
		"keys":   strings.Repeat("a: ", maxFile/3-1), "questions": strings.Repeat("? ", maxFile/2-1),
		"anchors": "a: &a [" + strings.Repeat("*a,", 1000),
		"indents": indents(300), "quotes": strings.Repeat("\"", maxFile-1),
		"bars":     strings.Repeat("|\n", maxFile/2-1),
		"comments": strings.Repeat("#\n", maxFile/2-1), "many": many(3000),
		"colons": strings.Repeat(":", maxFile-1),
	} {
		t.Run(name, func(t *testing.T) {
			begun := time.Now()
			_, err := load(t, content, nil)
			t.Logf("%s: %v: %.100v", name, time.Since(begun), err)
			if err == nil && name != "comments" {
				t.Errorf("%s is taken", name)
			}
		})
	}
}

// indents returns a mapping nested n deep in block form.
func indents(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%sa:\n", strings.Repeat(" ", i))
	}
	return b.String()
}

// many returns n unknown keys.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "key%d: 1\n", i)
	}
	return b.String()
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"max_depth: 3\nkeys: {openai: sk-1}\n", "depth_models:\n- a\n- b\n", "model: |\n  a\n",
		"sandbox: monty # x\n", "a: &b [*b]\n", "? a\n: b", "---\n...\n---\n", "\"model\": 'x'\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		if len(content) > maxFile {
			return
		}
		l, err := decodeFile("f.yaml", content)
		if err != nil {
			return
		}
		var c Config
		table := Settings(&c)
		for key, given := range l {
			if err := findSetting(table, key).assignRaw(given.Raw); err != nil {
				t.Errorf("%s is taken and cannot be assigned: %v", key, err)
			}
			if given.Origin.Line < 1 || given.Origin.Kind != FromFile {
				t.Errorf("%s has the origin %+v", key, given.Origin)
			}
		}
	})
}

func TestAFlagOfTheCommandsOwnIsNoSetting(t *testing.T) {
	flags := pflag.NewFlagSet("x", pflag.ContinueOnError)
	own := flags.String("feedback", "", "another thing of that name")
	if err := flags.Parse([]string{"--feedback", "well done"}); err != nil {
		t.Fatal(err)
	}
	c, err := Load(Sources{File: NoFile, Flags: flags})
	if err != nil || c.Feedback != 20_000 || *own != "well done" {
		t.Errorf("the setting is %+v, the flag %q, %v", c, *own, err)
	}
}

func TestSamplingHasAValueForEachDepth(t *testing.T) {
	c, err := load(t, "extra_body: {chat_template_kwargs: {enable_thinking: false}}\nseed: 7\n", nil,
		"--temperature=0.5,default,0", "--reasoning-effort=high,low")
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.Samplings()
	got, _ := json.Marshal(all)
	const extra = `"extra_body":{"chat_template_kwargs":{"enable_thinking":false}}`
	const want = `[{"temperature":0.5,"seed":7,"reasoning_effort":"high",` + extra +
		`},{"seed":7,"reasoning_effort":"low",` + extra +
		`},{"temperature":0,"seed":7,"reasoning_effort":"low",` + extra + `}]`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if none, err := (&Config{}).Samplings(); err != nil || len(none) != 0 {
		t.Errorf("without settings there is %v, %v", none, err)
	}

	for file, want := range map[string]string{
		"temperature: warm":       `temperature: "warm": give a number from 0 to 2, or default`,
		"temperature: [0, 2.5]":   `temperature: "2.5": give a number from 0 to 2, or default`,
		"temperature: nan":        `temperature: "nan": give a number`,
		"top_p: 0":                `top_p: "0": give a number above 0, at most 1, or default`,
		"seed: 1.5":               `seed: "1.5": give a whole number, or default`,
		"reasoning_effort: 'a b'": `reasoning_effort: "a b": give a word`,
		"temperature: {a: 1}":     "temperature: give one depths, not a mapping",
		"extra_body: 7":           "extra_body: give a JSON object, or a list of them",
		"extra_body: {a: {1: 2}}": "extra_body: a key in it is not a text",
	} {
		t.Run(file, func(t *testing.T) {
			if _, err := load(t, file+"\n", nil); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %s", file, err, want)
			}
		})
	}
}

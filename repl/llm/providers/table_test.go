package providers

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of providers into docs/reference/models.md")

// manual returns the table of the providers in Markdown.
func manual() string {
	var b strings.Builder
	b.WriteString("| name | server | key | address, if not the default |\n| --- | --- | --- | --- |\n")
	for i := range vendors {
		v := &vendors[i]
		keys := make([]string, len(v.keyVars))
		for i, name := range v.keyVars {
			keys[i] = "`" + name + "`"
		}
		key := strings.Join(keys, " or ")
		if !v.needsKey {
			key = "none, or " + key
		}
		server := v.title
		if u, err := url.Parse(v.defaultURL); err == nil && u.Scheme == "http" {
			server += ", `" + u.Host + "`"
		}
		address := "`" + v.urlVar + "`"
		if v.defaultURL == "" {
			address += ", always required"
		}
		if v.addressNote != "" {
			address += ", " + v.addressNote
		}
		fmt.Fprintf(&b, "| `%s/%s` | %s | %s | %s |\n", v.name, v.example, server, key, address)
	}
	b.WriteString("| `acp/claude-agent-acp` | none: [an agent program](../how-to/agents.md) | " +
		"none: you have logged in with the program | |\n")
	b.WriteString("| `scripted/path/to/script.yaml` | none: [a script](#scripts) | none | |")
	return b.String()
}

func TestTheManualHasEveryProvider(t *testing.T) {
	const path = "../../../docs/reference/models.md"
	const begin, end = "<!-- providers: begin -->\n", "\n<!-- providers: end -->"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, _ := strings.Cut(string(text), begin)
	got, after, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("%s has no marks around the table", path)
	}

	if *update {
		if err := os.WriteFile(path, []byte(before+begin+manual()+end+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != manual() {
		t.Errorf("%s differs from the table: go test ./repl/llm/providers -run TestTheManual -update", path)
	}
}

func TestTheTableIsSound(t *testing.T) {
	seen := map[string]string{}
	claim := func(what, name, provider string) {
		if other, taken := seen[what+name]; taken {
			t.Errorf("%s %s belongs to %s and %s", what, name, other, provider)
		}
		seen[what+name] = provider
	}
	for _, v := range vendors {
		if v.name == "" || v.title == "" || v.example == "" || len(v.keyVars) == 0 || v.urlVar == "" {
			t.Errorf("%s lacks something", v.name)
		}
		if strings.ToLower(v.name) != v.name || strings.Contains(v.name, "/") {
			t.Errorf("%s cannot begin a name", v.name)
		}
		if u, err := url.Parse(v.defaultURL); err != nil || v.needsKey && v.defaultURL != "" && u.Scheme != "https" {
			t.Errorf("%s gets a key at %s", v.name, v.defaultURL)
		}
		if (v.runs == atHome) != (v.start != "") && v.name != "vllm" && v.name != "litellm" {
			t.Errorf("%s runs on a machine of the user, but nobody knows how", v.name)
		}
		if slices.Contains(v.aka, v.name) {
			t.Errorf("%s is its own other name", v.name)
		}
		claim("variable", v.urlVar, v.name)
		for _, name := range v.keyVars {
			claim("variable", name, v.name)
		}
		for _, name := range append(v.aka, v.name) {
			claim("name", name, v.name)
		}
		for _, family := range v.families {
			claim("family", family, v.name)
		}
	}
}

func TestGroqsAddressMayLackItsPath(t *testing.T) {
	for given, want := range map[string]string{
		"https://api.groq.com":           "https://api.groq.com/openai/v1",
		"https://api.groq.com/":          "https://api.groq.com/openai/v1",
		"https://api.groq.com/openai/v1": "https://api.groq.com/openai/v1",
	} {
		if got, err := parseGroqURL(given); got != want || err != nil {
			t.Errorf("%s: got %s, %v", given, got, err)
		}
	}
}

// TestAnExampleNeedsNoProviderIfItIsTheDefault checks that each provider's example works without
// the provider's name, even if another vendor made the model.
func TestAnExampleNeedsNoProviderIfItIsTheDefault(t *testing.T) {
	for _, v := range vendors {
		if strings.Contains(v.example, "/") {
			continue
		}
		t.Run(v.name, func(t *testing.T) {
			r := &Registry{fallback: v.name, knowsOwn: true}
			for _, name := range []string{v.example, v.example + "-v2"} {
				if mistake := r.explainBare(name); mistake != "" {
					t.Errorf("%s: %s", name, mistake)
				}
			}
		})
	}
}

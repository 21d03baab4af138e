package prompts_test

import (
	"strings"
	"testing"
	"testing/fstest"
	"text/template"

	"github.com/rlmhq/rlm/repl/internal/prompts"
)

func TestFenceCannotBeLeft(t *testing.T) {
	for text, want := range map[string]string{
		"plain\n":         "```text\nplain\n```",
		"":                "```text\n\n```",
		"a\n```\nb":       "````text\na\n```\nb\n````",
		"``` `````` ````": "```````text\n``` `````` ````\n```````",
	} {
		t.Run(text, func(t *testing.T) {
			if got := prompts.Fence(text); got != want {
				t.Errorf("%q is shown as %q, want %q", text, got, want)
			}
		})
	}
}

func TestPromptsAreFilled(t *testing.T) {
	prompts := prompts.New(
		fstest.MapFS{"prompts/ask.md": {Data: []byte("\nDo:\n{{fence .Task}}\n")}},
	)
	if got, err := prompts.Fill("ask", map[string]string{"Task": "x"}); err != nil ||
		got != "Do:\n```text\nx\n```" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := prompts.Fill("other", nil); err == nil ||
		!strings.Contains(err.Error(), "cannot write the prompt other") {
		t.Errorf("got %v", err)
	}
}

// TestPromptsAreThoseOfTheLibrary checks that templates are filled in as the library's
// text/template does it.
func TestPromptsAreThoseOfTheLibrary(t *testing.T) {
	type item struct{ Name string }
	type content struct {
		Text  string
		Count int
		Share float64
		Flag  bool
		Items []item
		None  []item
		Map   map[string]int
	}
	data := content{
		Text: "a", Count: 3, Share: 0.256, Flag: true,
		Items: []item{{"x"}, {"y"}}, Map: map[string]int{"k": 7},
	}

	for _, text := range []string{
		"{{.Text}} {{.Count}} {{.Share}} {{.Flag}} {{.Map.k}}",
		`{{printf "%.2f" .Share}} {{printf "%s-%d" .Text .Count}}`,
		"{{if .Items}}some{{else}}none{{end}} {{if .None}}some{{else}}none{{end}}",
		"{{if not (or .None .Text)}}nothing{{else if .Flag}}flag{{end}}",
		"a\n{{- range .Items}}\n{{.Name}}\n{{- end}}\nb {{range .None}}c{{end}}",
		`{{define "one"}}<{{.Count}}>{{end}}{{template "one" .}} {{or .None .Items}} {{/* a comment */}}`,
		`{{"quoted"}} {{.}}`,
	} {
		var want strings.Builder
		if err := template.Must(template.New("").Parse(text)).Execute(&want, data); err != nil {
			t.Fatal(err)
		}
		files := fstest.MapFS{"prompts/a.md": {Data: []byte(text)}}
		got, err := prompts.New(files).Fill("a", data)
		if want := strings.TrimSpace(want.String()); got != want || err != nil {
			t.Errorf("%s gives %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestAMistakeInAPromptIsAnError(t *testing.T) {
	for text, want := range map[string]string{
		"{{.Missing}}":                     "no such field: Missing",
		"{{.Text.Missing}}":                "no such field: Missing",
		"{{range .Text}}{{end}}":           ".Text is not a list",
		"{{fence .Count}}":                 "fence cannot take a int",
		"{{fence .Text .Text}}":            "fence cannot take 2 values",
		"{{not}}":                          "not cannot take 0 values",
		"{{.Text | fence}}":                "cannot have {{.Text | fence}}",
		"{{with .Text}}{{end}}":            "cannot have",
		`{{template "other"}}`:             `no template "other"`,
		"{{$x := .Text}}{{$x}}":            "cannot have",
		"{{range $i, $v := .Text}}{{end}}": "cannot have",
	} {
		files := fstest.MapFS{"prompts/a.md": {Data: []byte(text)}}
		data := struct {
			Text  string
			Count int
		}{"a", 3}
		if got, err := prompts.New(files).Fill("a", data); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %q, %v; want %q", text, got, err, want)
		}
	}
}

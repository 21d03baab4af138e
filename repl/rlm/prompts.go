package rlm

import (
	"embed"
	"fmt"
	"strings"
	"text/template"
)

//go:embed prompts/*.md
var promptFiles embed.FS

var prompts = template.Must(template.ParseFS(promptFiles, "prompts/*.md"))

// prompt fills one of the prompts. The values are strings and numbers, so it can
// only fail by a mistake of ours.
func prompt(name string, data any) (string, error) {
	var b strings.Builder
	if err := prompts.ExecuteTemplate(&b, name+".md", data); err != nil {
		return "", fmt.Errorf("cannot write the prompt %s: %w", name, err)
	}
	return strings.TrimSpace(b.String()), nil
}

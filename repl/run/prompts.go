package run

import (
	"embed"

	"github.com/rlmhq/rlm/repl/internal/prompts"
)

//go:embed prompts/*.md
var promptFiles embed.FS

var templates = prompts.New(promptFiles)

// prompt fills in one of the prompts. The values are strings and numbers, so it fails only if a
// template is wrong.
func prompt(name string, data any) (string, error) { return templates.Fill(name, data) }

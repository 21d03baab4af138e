package rlm

import (
	"embed"

	"github.com/rlmhq/rlm/repl"
)

//go:embed prompts/*.md
var promptFiles embed.FS

var prompts = repl.NewPrompts(promptFiles)

// prompt fills one of the prompts. The values are strings and numbers, so it can
// only fail by a mistake of ours.
func prompt(name string, data any) (string, error) { return prompts.Fill(name, data) }

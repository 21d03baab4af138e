package reflexion

import (
	"embed"

	"github.com/rlmhq/rlm/repl/internal/prompts"
	"github.com/rlmhq/rlm/repl/llm"
)

//go:embed prompts/*.md
var promptFiles embed.FS

var templates = prompts.New(promptFiles)

// shown holds the values of the prompts.
type shown struct {
	Task       string
	History    []llm.Message
	Facts      []Fact
	Procedures []Procedure
	Passages   []Evidence
	Draft      string
	Issues     []Issue
	Contract   string
}

// fillMessages writes a prompt of two parts: the role of the model and its task.
func fillMessages(role, task string, data any) ([]llm.Message, error) {
	system, err := templates.Fill(role, nil)
	if err != nil {
		return nil, err
	}
	user, err := templates.Fill(task, data)
	if err != nil {
		return nil, err
	}

	return []llm.Message{
		{Role: llm.RoleSystem, Content: system}, {Role: llm.RoleUser, Content: user},
	}, nil
}

package agents

import (
	"cmp"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/rlmhq/rlm/internal/text/texts"
)

// maxLogins bounds the ways to log in that an error names.
const maxLogins = 5

// loginsOf returns the ways to log in that an agent program offers, for people. Command is the
// command that started the program.
func loginsOf(command string, methods []acp.AuthMethod) string {
	var all []string
	for i := range methods[:min(len(methods), maxLogins)] {
		m := &methods[i]
		switch {
		case m.Terminal != nil:
			all = append(all, "run "+strings.Join(append([]string{command}, m.Terminal.Args...), " "))
		case m.EnvVar != nil:
			names := make([]string, len(m.EnvVar.Vars))
			for n := range m.EnvVar.Vars {
				names[n] = m.EnvVar.Vars[n].Name
			}
			all = append(all, "set "+strings.Join(names, " and "))
		case m.Agent != nil:
			all = append(all, agentLogin(m.Agent))
		}
	}
	return texts.Truncate(texts.OneLine(strings.Join(all, "; or ")), maxShown)
}

// agentLogin describes a method of the program itself. Some programs give the command in the form
// that Zed reads.
func agentLogin(m *acp.AuthMethodAgent) string {
	if terminal, is := m.Meta["terminal-auth"].(map[string]any); is {
		command, _ := terminal["command"].(string)
		words := []string{command}
		args, _ := terminal["args"].([]any)
		for _, one := range args {
			word, _ := one.(string)
			words = append(words, word)
		}
		if command != "" {
			return "run " + strings.Join(words, " ")
		}
	}

	text := "choose " + cmp.Or(m.Name, m.Id)
	if m.Description != nil && *m.Description != "" {
		text += " (" + *m.Description + ")"
	}
	return text
}

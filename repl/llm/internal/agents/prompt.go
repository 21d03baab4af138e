package agents

import (
	"encoding/base64"
	"errors"
	"strings"

	"github.com/coder/acp-go-sdk"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/chat"
)

// rules precede each prompt, because the program is an agent but the caller needs only a reply.
const rules = "You are asked as a language model, by a program. Write the reply alone. Do not use tools, " +
	"and do not read or write files: all requests for permission are refused."

// promptOf returns a request as one prompt: agents accept no system messages and no replies from
// other sources.
func promptOf(r llm.Request, takesImages bool) ([]acp.ContentBlock, error) {
	messages := r.Messages
	if r.Schema != nil {
		messages = chat.AskInPrompt(messages, r.Schema)
	}

	var system, rest []string
	var images []acp.ContentBlock
	spoken, last := 0, ""
	for _, m := range messages {
		if m.Role == llm.RoleSystem {
			system = append(system, m.Content)
			continue
		}
		spoken, last = spoken+1, m.Content
		rest = append(rest, "<"+string(m.Role)+">\n"+m.Content+"\n</"+string(m.Role)+">")
		for _, image := range m.Images {
			images = append(images, acp.ImageBlock(base64.StdEncoding.EncodeToString(image.Data), image.Type))
		}
	}
	if len(images) > 0 && !takesImages {
		return nil, errors.New("the agent takes no images")
	}

	parts := append([]string{rules}, system...)
	if spoken == 1 {
		parts = append(parts, last)
	} else {
		parts = append(parts, "This is the conversation so far. Write the next reply of the assistant, without tags.")
		parts = append(parts, rest...)
	}

	return append([]acp.ContentBlock{acp.TextBlock(strings.Join(parts, "\n\n"))}, images...), nil
}

// cutAtStop returns text up to the first stop sequence.
func cutAtStop(text string, stops []string) (cut string, isStopped bool) {
	for _, stop := range stops {
		if at := strings.Index(text, stop); at >= 0 && stop != "" {
			text, isStopped = text[:at], true
		}
	}

	return text, isStopped
}

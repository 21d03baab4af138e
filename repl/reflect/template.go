package reflect

import (
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/rlmhq/rlm/repl/internal/agenttrace"
)

// defaultPromptTemplate is the first message of a reflection.
//
//go:embed prompts/reflector.md
var defaultPromptTemplate string

// synthesisPrompt asks for the best assessment when the iterations are used up.
//
//go:embed prompts/synthesis.md
var synthesisPrompt string

// promptVariables returns the names in braces that a prompt template must contain.
// Lengths are in characters; a preview is one line of at most 150 characters.
func promptVariables() []string {
	return []string{
		"question_length", "question_preview", "reasoning_length", "reasoning_preview",
		"answer_length", "answer_preview", "ground_truth_length", "ground_truth_preview",
		"feedback_length", "feedback_preview", "skillbook_length", "step_count",
	}
}

// variables returns the values of the template's names for a subject.
func variables(s *Subject) map[string]string {
	agent := s.agent()
	values := map[string]string{
		"skillbook_length": length(s.Skillbook), "step_count": "0",
	}
	if s.trace != nil {
		values["step_count"] = strconv.Itoa(s.trace.Len())
	}

	for name, text := range map[string]string{
		"question": s.Question, "reasoning": agent.Reasoning, "answer": agent.Answer,
		"ground_truth": orEmpty(s.GroundTruth), "feedback": orEmpty(s.Feedback),
	} {
		values[name+"_length"], values[name+"_preview"] = length(text), preview(text)
	}

	return values
}

func length(text string) string { return strconv.Itoa(utf8.RuneCountInString(text)) }

func orEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// maxPreview bounds a preview, in characters.
const maxPreview = 150

// preview returns the beginning of text on one line. A trace is untrusted, and with line breaks it
// could be mistaken for part of the prompt.
func preview(text string) string {
	head, _ := agenttrace.HeadOf(strings.ToValidUTF8(text, "\uFFFD"), 4*maxPreview)
	line := strings.Join(
		strings.FieldsFunc(
			head,
			func(r rune) bool { return r <= ' ' || r == 0x7f || r == '\u2028' || r == '\u2029' || r == 0x85 },
		),
		" ",
	)

	short, left := agenttrace.HeadOf(line, maxPreview-1)
	if left > 1 || len(head) < len(text) {
		return short + "…"
	}

	return line
}

// fill replaces the names in a template, like Python's str.format: {name} with its value,
// {{ and }} with a brace.
func fill(template string, values map[string]string) (string, error) {
	var out strings.Builder
	used := map[string]bool{}
	for rest := template; rest != ""; {
		at := strings.IndexAny(rest, "{}")
		if at < 0 {
			out.WriteString(rest)
			break
		}
		out.WriteString(rest[:at])
		brace := rest[at : at+1]
		rest = rest[at+1:]
		if strings.HasPrefix(rest, brace) {
			out.WriteString(brace)
			rest = rest[1:]
			continue
		}

		name, after, closed := strings.Cut(rest, "}")
		if brace == "}" || !closed {
			return "", errors.New("the prompt template has a single brace: write it twice, {{ or }}")
		}
		value, known := values[name]
		if !known {
			return "", fmt.Errorf(
				"the prompt template has the unknown variable {%s}: use only %s",
				agenttrace.Shorten(name, 60), strings.Join(promptVariables(), ", "),
			)
		}

		used[name] = true
		out.WriteString(value)
		rest = after
	}

	missing := slices.DeleteFunc(promptVariables(), func(name string) bool { return used[name] })
	if len(missing) > 0 {
		return "", fmt.Errorf("the prompt template lacks {%s}", strings.Join(missing, "}, {"))
	}
	return strings.TrimSpace(out.String()), nil
}

package skillbook

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// columns contains the members of a skill that are shown to an agent.
const columns = "id\tsection\tcontent\thelpful\tharmful\tneutral"

// Prompt returns the active skills in the form that the original shows to an agent: a table in the
// format TOON, with tabs.
func (b *Book) Prompt() string {
	count := b.Len()
	if count == 0 {
		return "skills: []"
	}

	var out strings.Builder
	fmt.Fprintf(&out, "skills[%d\t]{%s}:", count, columns)
	for _, s := range b.skills {
		if s.isActive() {
			fmt.Fprintf(&out, "\n  %s\t%s\t%s\t%d\t%d\t%d", quoted(s.ID), quoted(s.Section),
				quoted(s.Content), s.Helpful, s.Harmful, s.Neutral)
		}
	}
	return out.String()
}

// number matches strings that a TOON reader would parse as a number.
var number = lazyregexp.New(`^-?\d+(\.\d+)?([eE][+-]?\d+)?$`)

// quoted returns a string for a table, in quotes if its meaning would change without them.
func quoted(text string) string {
	plain := text != "" && strings.TrimSpace(text) == text && !number.MatchString(text) &&
		text != "true" && text != "false" && text != "null" && text[0] != '-' &&
		!strings.ContainsAny(text, `:"\[]{}`) && !strings.ContainsFunc(text, unicode.IsControl)
	if plain {
		return text
	}

	var out strings.Builder
	out.WriteByte('"')
	for _, r := range text {
		switch r {
		case '"', '\\':
			out.WriteByte('\\')
			out.WriteRune(r)
		case '\n':
			out.WriteString(`\n`)
		case '\r':
			out.WriteString(`\r`)
		case '\t':
			out.WriteString(`\t`)
		default:
			if unicode.IsControl(r) {
				fmt.Fprintf(&out, `\u%04x`, r)
				continue
			}
			out.WriteRune(r)
		}
	}
	out.WriteByte('"')
	return out.String()
}

package config

import (
	"fmt"
	"strings"
)

const manualHead = "| setting | takes | default | meaning |\n| --- | --- | --- | --- |\n"

// Manual returns the reference of all settings in Markdown, as docs/reference/configuration.md
// contains it between its marks.
func Manual() string {
	var b strings.Builder
	group := Group("")
	for _, s := range Settings(&Config{}) {
		if s.Group != group {
			group = s.Group
			fmt.Fprintf(&b, "\n### %s\n\n%s", group, manualHead)
		}

		standard := ""
		if s.Default != "" {
			standard = "`" + s.Default + "`"
		}
		doc := strings.ReplaceAll(s.Doc, "|", `\|`)
		if s.NoFlag {
			doc += "; has no flag"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Key, s.Value.Type(), standard, doc)
	}

	b.WriteString("\n### names of agent-utilities\n\n| name | setting of rlm |\n| --- | --- |\n")
	for _, f := range foreigners {
		name := "`" + f.key + "`"
		if f.variable != "" {
			name += ", environment variable `" + f.variable + "`"
		}
		fmt.Fprintf(&b, "| %s | %s |\n", name, f.doc)
	}

	return b.String()
}

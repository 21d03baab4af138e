package prompts

import (
	"fmt"
	"io/fs"
	"strings"
	"text/template"
)

// Templates are the prompts of a loop: templates in the files prompts/*.md beside it.
// In them {{fence .Text}} shows a foreign text as a block that it cannot leave.
type Templates struct{ templates *template.Template }

// New reads the prompts that a loop embeds. It panics if one of them is no
// template.
func New(files fs.FS) Templates {
	base := template.New("").Funcs(template.FuncMap{"fence": Fence})
	return Templates{template.Must(base.ParseFS(files, "prompts/*.md"))}
}

// Fill fills the prompt of a name, without its ending. The error is a mistake of the
// loop's: data lacks what the template asks for.
func (p Templates) Fill(name string, data any) (string, error) {
	var b strings.Builder
	if err := p.templates.ExecuteTemplate(&b, name+".md", data); err != nil {
		return "", fmt.Errorf("cannot write the prompt %s: %w", name, err)
	}
	return strings.TrimSpace(b.String()), nil
}

// Fence puts a text between two lines of backticks, more than stand anywhere in the
// text, so that no text can end its own block.
func Fence(text string) string {
	longest, run := 2, 0
	for i := range len(text) {
		if text[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}

	mark := strings.Repeat("`", longest+1)
	return mark + "text\n" + strings.TrimRight(text, "\n") + "\n" + mark
}

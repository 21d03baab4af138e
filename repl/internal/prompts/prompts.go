package prompts

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"strings"
	"text/template/parse"
)

// Templates are the prompts of a loop: templates in the files prompts/*.md next to it, in the
// language of text/template. {{fence .Text}} shows untrusted text as a block that it cannot escape.
type Templates struct{ trees map[string]*parse.Tree }

// New parses the prompts that a loop embeds. It panics if one of them is not a valid template.
func New(files fs.FS) Templates {
	all := map[string]*parse.Tree{}
	names, err := fs.Glob(files, "prompts/*.md")
	if err != nil {
		panic(err) // the pattern is a constant
	}

	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			panic(fmt.Sprintf("prompts: cannot read %s: %v", name, err))
		}

		trees, err := parse.Parse(path.Base(name), string(text), "", "", functions)
		if err != nil {
			panic(fmt.Sprintf("prompts: cannot parse %s: %v", name, err))
		}
		maps.Copy(all, trees)
	}
	return Templates{all}
}

// Fill fills in the prompt with a name, given without the file extension. An error is a bug of the
// loop: data lacks a field that the template needs.
func (p Templates) Fill(name string, data any) (string, error) {
	x := &execution{trees: p.trees}
	if err := x.template(name+".md", data); err != nil {
		return "", fmt.Errorf("cannot write the prompt %s: %w", name, err)
	}
	return strings.TrimSpace(x.out.String()), nil
}

// Fence puts text between two lines of backticks that are longer than any run of backticks in it,
// so that no text can end its own block.
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

package loops

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/internal/keep/skillbook"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/distill"
	"github.com/rlmhq/rlm/repl/reflect"
)

// skillbookFlags name the skillbooks that a command reads and writes.
type skillbookFlags struct {
	in, out string

	text string          // the content of in
	book *skillbook.Book // for out; nil without that flag
}

// addIn adds the flag of the skillbook that is read.
func (f *skillbookFlags) addIn(flags *pflag.FlagSet) {
	flags.StringVar(&f.in, "skillbook", "",
		"`file` with the strategies that the agent had: text, or JSON of the Agentic Context Engine")
}

// addOut adds the flag of the skillbook that is written.
func (f *skillbookFlags) addOut(flags *pflag.FlagSet, what string) {
	flags.StringVar(&f.out, "skillbook-out", "",
		"`file` for the skillbook with "+what+": a new file, or the file of --skillbook")
}

// read reads the skillbook, and checks that the output file can be written.
func (f *skillbookFlags) read(e *cli.Env) (err error) {
	if f.in != "" {
		if f.text, err = cli.ReadFile(e, f.in, skillbook.MaxBytes, "the skillbook"); err != nil {
			return err
		}
		if isOtherJSON(f.in, f.text) {
			return fmt.Errorf(`the skillbook %s is no JSON of the Agentic Context Engine, which has an object `+
				`"skills": give such a file, or text`, f.in)
		}
	}
	if f.out == "" {
		return nil
	}

	if err := cli.CheckFolder("skillbook-out", f.out); err != nil {
		return err
	}
	_, err = os.Lstat(f.out)
	isSame := f.in != "" && filepath.Clean(f.in) == filepath.Clean(f.out)
	switch {
	case err == nil && !isSame:
		return fmt.Errorf("--skillbook-out %s: the file exists: give it to --skillbook, too, or name "+
			"a new one", f.out)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--skillbook-out: %w", err)
	case f.text == "":
		f.book = &skillbook.Book{}
		return nil
	case !skillbook.IsBook(f.text):
		return fmt.Errorf("--skillbook-out needs a skillbook in JSON, but %s is text: "+
			"omit --skillbook to begin a new one", f.in)
	}

	f.book, err = skillbook.Parse(f.text)
	return err
}

// isOtherJSON reports whether a file contains JSON that is not a skillbook. The JSON may be
// damaged.
func isOtherJSON(name, text string) bool {
	text = strings.TrimSpace(text)
	begins := strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")
	return begins && !skillbook.IsBook(text) && (json.Valid([]byte(text)) || filepath.Ext(name) == ".json")
}

// maxTask bounds the question in the sources of a skill, in characters.
const maxTask = 300

// learnFromReflection adds the lessons of an analysis to the skillbook and counts its tags.
func (f *skillbookFlags) learnFromReflection(
	question string, o *reflect.Outcome, note func(string, ...any),
) error {
	if f.book == nil {
		return nil
	}
	now := time.Now()
	tagged := 0
	for _, tag := range o.Output.SkillTags {
		if f.book.Tag(tag.ID, tag.Tag, now) {
			tagged++
			continue
		}
		note("the skillbook has no skill %s to mark as %s", cli.Escape(tag.ID), cli.Escape(tag.Tag))
	}

	var lessons []skillbook.Lesson
	for _, l := range o.Output.ExtractedLearnings {
		lessons = append(lessons, skillbook.Lesson{
			Section: "learnings", Content: l.Learning, Evidence: l.Evidence,
			Question: texts.Truncate(question, maxTask),
		})
	}
	return f.write(lessons, tagged, note)
}

// promptKinds are the kinds of edits that an agent can follow, because they change what the agent
// reads.
var promptKinds = map[string]bool{"skill": true, "system_prompt": true, "memory": true}

// learnFromEdits adds to the skillbook the edits that an agent can follow.
func (f *skillbookFlags) learnFromEdits(o *distill.Outcome, note func(string, ...any)) error {
	if f.book == nil {
		return nil
	}
	var lessons []skillbook.Lesson
	others := 0
	for _, edit := range o.Edits {
		if !promptKinds[edit.Kind] {
			others++
			continue
		}
		lessons = append(lessons, skillbook.Lesson{
			Section: edit.Component, Content: edit.Change, Justification: edit.Rationale,
			Evidence: strings.Join(edit.Evidence, ", "),
		})
	}

	if others > 0 {
		note("%s of other kinds than skill, system_prompt and memory: no skill says them",
			quantity.Plural(others, "edit", ""))
	}
	return f.write(lessons, 0, note)
}

// write writes the skillbook with new lessons.
func (f *skillbookFlags) write(
	lessons []skillbook.Lesson, tagged int, note func(string, ...any),
) error {
	added := 0
	for _, l := range lessons {
		id, isNew, err := f.book.Learn(l, time.Now())
		if err != nil {
			return cli.Broken(err)
		}
		if isNew {
			added++
		} else {
			note("the skillbook has this already as %s: %s", cli.Escape(id), cli.Shorten(l.Content, 100))
		}
	}

	data, err := f.book.Encode()
	if err == nil {
		err = cli.ReplaceFile(f.out, func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		})
	}
	if err != nil {
		return cli.Broken(fmt.Errorf("cannot write the skillbook: %w", err))
	}

	note("skillbook %s: %s, %d of them new, %s", cli.Escape(f.out),
		quantity.Plural(f.book.Len(), "skill", ""), added, quantity.Plural(tagged, "tag", "")+" counted")
	return nil
}

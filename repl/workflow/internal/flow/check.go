package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rlmhq/rlm/repl/internal/evaluators"
)

func contains(list []string, s string) bool { return slices.Contains(list, s) }

func nodeNumber(i int) string { return "node " + strconv.Itoa(i+1) }

// Check finds unknown actions and parameters, missing parameters and wrong types, contracts that
// do not compile, and unreadable templates. The error is a [*FileError], the context's error, or
// reports that the jail for templates is missing.
func (f *File) Check(ctx context.Context) error {
	c := f.checked()
	if err := c.readTemplates(ctx); err != nil {
		return err
	}
	return fileError(f.Name, c.found)
}

// checked checks everything except the templates.
func (f *File) checked() *checker {
	c := &checker{actions: f.actions, folder: f.Folder}
	for _, n := range f.Nodes {
		if n.Uses == "" {
			continue
		}
		with := n.With
		if with == nil {
			with = &Tree{Line: n.at.Line, Column: n.at.Column, Kind: Object}
		}

		c.use(n.uses, with)
	}

	return c
}

// Models returns the names of models in the file, except templates. It may return a name twice.
func (f *File) Models() []string {
	var names []string
	for _, at := range f.checked().models {
		names = append(names, at.Text)
	}
	return names
}

// Notes returns the differences between the apparent and the actual behaviour of the file: keys
// without effect, and the notes of actions. It is empty for most files.
func (f *File) Notes() []*Problem {
	notes := append(slices.Clone(f.ignored), f.checked().notes...)
	for _, note := range notes {
		note.File, note.Message = f.Name, "note: "+strings.TrimPrefix(note.Message, "note: ")
	}
	return notes
}

// checker collects the problems of a file, its templates and its models.
type checker struct {
	actions   actionTable
	folder    string
	found     []*Problem
	notes     []*Problem
	templates []*Tree
	models    []*Tree
	asks      []*Tree // the names of actions that ask a model
}

func (c *checker) fail(at *Tree, format string, args ...any) {
	c.found = append(
		c.found, &Problem{Line: at.Line, Column: at.Column, Message: fmt.Sprintf(format, args...)},
	)
}

// use checks that an action is known, and checks its parameters.
func (c *checker) use(name, with *Tree) {
	action, known := c.actions[name.Text]
	if !known {
		c.fail(name, "%s", describeUnknown("action", name.Text, c.actions.names()))
		return
	}
	if action.Asks {
		c.asks = append(c.asks, name)
	}

	c.members(with, action.Params, action.Open, "parameter of "+action.Name)
	if action.Verify != nil {
		c.found = append(c.found, action.Verify(with)...)
	}
	if action.Note != nil {
		c.notes = append(c.notes, action.Note(with)...)
	}
}

// members checks the members of an object against params.
func (c *checker) members(tree *Tree, params []Param, open bool, what string) {
	for i, key := range tree.Keys {
		p := find(params, key.Text)
		switch {
		case p != nil:
			c.value(tree.Items[i], p)
		case open:
			c.template(tree.Items[i])
		default:
			c.fail(key, "%s", describeUnknown(what, key.Text, namesOf(params)))
		}
	}

	for i := range params {
		if params[i].Required && tree.Get(params[i].Name) == nil {
			c.fail(tree, "%q is missing: %s", params[i].Name, params[i].Doc)
		}
	}
}

// value checks one parameter.
func (c *checker) value(v *Tree, p *Param) {
	if v.Kind == Text && !p.verbatim() && evaluators.IsTemplate(v.Text) {
		c.templates = append(c.templates, v)
		return
	}
	if wrong := p.mismatch(v); wrong != "" {
		c.fail(v, "%q must be %s", p.Name, wrong)
		return
	}

	switch p.Type {
	case ModelType:
		c.models = append(c.models, v)
	case ActionType:
		if _, known := c.actions[v.Text]; !known {
			c.fail(v, "%s", describeUnknown("action", v.Text, c.actions.names()))
		}
	case SchemaType:
		c.schema(v)
	case StepType:
		c.step(v, p)
	case ObjectType, ListType:
		c.fields(v, p)
	case AnyType:
		c.template(v)
	default:
	}

	if p.Verify != nil {
		c.found = append(c.found, p.Verify(v)...)
	}
}

// fields checks the members of an object, or of each item of a list.
func (c *checker) fields(v *Tree, p *Param) {
	switch {
	case p.Fields == nil:
		c.template(v)
	case p.Type == ObjectType:
		c.members(v, p.Fields, false, "key of "+p.Name)
	default:
		for _, item := range v.Items {
			if item.Kind != Object {
				c.fail(item, "an item of %q must be an object", p.Name)
				continue
			}
			c.members(item, p.Fields, false, "key of "+p.Name)
		}
	}
}

// step checks an action with its parameters, or code.
func (c *checker) step(v *Tree, p *Param) {
	action, run := v.Get(stepAction), v.Get(stepRun)
	switch {
	case (action == nil) == (run == nil):
		c.fail(
			v, `%q needs exactly one of "action" (the name of an action) and "run" (Python code)`,
			p.Name,
		)
	case run != nil:
		c.members(
			v, []Param{{Name: stepRun, Type: CodeType}}, false, "key of "+p.Name+" beside run",
		)
	case action.Kind != Text:
		c.fail(action, `"action" must be the name of an action`)
	default:
		c.use(action, without(v, stepAction))
	}
}

// without returns an object without one of its members.
func without(t *Tree, key string) *Tree {
	rest := *t
	rest.Keys, rest.Items = nil, nil
	for i, k := range t.Keys {
		if k.Text != key {
			rest.Keys, rest.Items = append(rest.Keys, k), append(rest.Items, t.Items[i])
		}
	}

	return &rest
}

// schema compiles a contract, including the files that it refers to.
func (c *checker) schema(v *Tree) {
	if _, err := contractIn(c.folder, v.Plain()); err != nil {
		c.fail(v, "%s", shortenText(err.Error(), 500))
	}
}

// template collects the templates in a value.
func (c *checker) template(v *Tree) {
	if v.Kind == Text && evaluators.IsTemplate(v.Text) {
		c.templates = append(c.templates, v)
	}
	for _, item := range v.Items {
		c.template(item)
	}
}

// readTemplates checks all templates in the jail.
func (c *checker) readTemplates(ctx context.Context) error {
	texts := make([]string, len(c.templates))
	for i, t := range c.templates {
		texts[i] = t.Text
	}
	mistakes, err := evaluators.Jail{}.CheckTemplates(ctx, texts)
	if err != nil {
		return fmt.Errorf("cannot check the templates: %w", err)
	}

	for _, m := range mistakes {
		at := *c.templates[m.Index]
		if at.literal {
			at.Line, at.Column = at.Line+m.Line, 1
		} else if m.Line > 1 {
			at.Line, at.Column = at.Line+m.Line-1, 1
		}
		c.fail(&at, "the template cannot be read: %s", shortenText(m.Message, 300))
	}

	return nil
}

// mismatch describes how v deviates from the type of a parameter, or returns "". It also checks
// the results of templates.
func (p *Param) mismatch(v *Tree) string {
	kinds := map[Type]Kind{
		TextType: Text, ModelType: Text, ActionType: Text, CodeType: Text, ListType: List,
		ObjectType: Object, StepType: Object, WholeType: Other, NumberType: Other,
	}

	kind, fixed := kinds[p.Type]
	if fixed && v.Kind != kind {
		return p.article()
	}
	switch p.Type {
	case TextType:
		if p.Values != nil && !contains(p.Values, v.Text) {
			return "one of " + strings.Join(p.Values, ", ") + ", not " + quoteName(v.Text)
		}
	case WholeType:
		number, _ := v.scalar.(json.Number)
		n, err := strconv.Atoi(string(number))
		if err != nil || p.Least != p.Most && (n < p.Least || n > p.Most) {
			return p.article()
		}
	case NumberType:
		if _, ok := v.scalar.(json.Number); !ok {
			return p.article()
		}
	default:
	}

	return ""
}

// article returns the type of a parameter, with its article.
func (p *Param) article() string {
	switch p.Type {
	case TextType:
		return "a text"
	case ModelType:
		return "the name of a model"
	case ActionType:
		return "the name of an action"
	case CodeType:
		return "a text with code"
	case ListType:
		return "a list"
	case ObjectType:
		return "an object"
	case StepType:
		return "an object with action and its parameters, or run"
	case WholeType:
		if p.Least == p.Most {
			return "a whole number"
		}
		return fmt.Sprintf("a whole number from %d to %d", p.Least, p.Most)
	case NumberType:
		return "a number"
	default:
		return "a value of another type"
	}
}

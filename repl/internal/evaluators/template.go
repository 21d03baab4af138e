package evaluators

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	minijinja "github.com/mitsuhiko/minijinja/minijinja-go/v2"
	"github.com/mitsuhiko/minijinja/minijinja-go/v2/filters"
	"github.com/mitsuhiko/minijinja/minijinja-go/v2/value"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// Bounds that stop a template with an error of the engine. The jail bounds everything else, such as
// a string that repeatedly doubles.
const (
	maxFuel      = 2_000_000 // steps of one template
	maxRecursion = 100       // levels of macros and loops
)

// keep is the filter that stores the value of an expression.
const keep = "_rlm_keep"

// environment returns an engine without a loader, whose filter keep stores values in kept.
func environment(kept *value.Value) *minijinja.Environment {
	env := minijinja.NewEnvironment()
	env.SetAutoEscapeFunc(func(string) minijinja.AutoEscape { return minijinja.AutoEscapeNone })
	fuel := uint64(maxFuel)
	env.SetFuel(&fuel)
	env.SetRecursionLimit(maxRecursion)
	env.SetUndefinedBehavior(minijinja.UndefinedSemiStrict) // misspelt names are errors
	env.AddFilter(
		keep,
		func(
			_ minijinja.FilterState, v value.Value, _ []value.Value, _ map[string]value.Value,
		) (value.Value, error) {
			*kept = v
			return value.FromString(""), nil
		},
	)

	return env
}

// checkTemplates returns the mistakes in templates.
func checkTemplates(texts []string) []Mistake {
	var kept value.Value
	env := environment(&kept)
	found := []Mistake{}
	for i, text := range texts {
		if _, err := env.TemplateFromString(text); err != nil {
			line, message := explained(err)
			found = append(found, Mistake{Index: i, Line: line, Message: clip(message)})
		}
	}

	return found
}

// parserLine matches the position in an error of the engine's parser.
var parserLine = lazyregexp.New(`\s*\(line (\d+)\)$`)

// explained returns the line and the message of an error from the engine.
func explained(err error) (line int, message string) {
	var e *minijinja.Error
	if errors.As(err, &e) {
		if e.Span != nil {
			line = int(e.Span.StartLine)
		}
		return max(1, line), e.Kind.String() + ": " + e.Message
	}

	message = strings.TrimPrefix(err.Error(), "SyntaxError: ")
	if m := parserLine.FindStringSubmatch(message); m != nil {
		line, err = strconv.Atoi(m[1])
		if err != nil {
			line = 1
		}
		message = strings.TrimSuffix(message, m[0])
	}

	return max(1, line), message
}

// whole matches a string that consists of one expression.
var whole = lazyregexp.New(`(?s)\A\s*\{\{-?(.*?)-?\}\}\s*\z`)

// renderer renders the templates in a value.
type renderer struct {
	env       *minijinja.Environment
	kept      value.Value
	variables any
	counter   counter
}

// renderAll renders the templates in a value with the given variables.
func renderAll(v any, variables map[string]any) (any, error) {
	r := &renderer{variables: plainNumbers(variables), counter: counter{left: maxValues}}
	r.env = environment(&r.kept)
	return r.value(v, 0)
}

func (r *renderer) value(v any, depth int) (any, error) {
	if err := r.counter.take(depth); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case string:
		if !IsTemplate(v) {
			return v, nil
		}
		return r.text(v)
	case map[string]any:
		made := make(map[string]any, len(v))
		for key, member := range v {
			var err error
			if made[key], err = r.value(member, depth+1); err != nil {
				return nil, err
			}
		}
		return made, nil
	case []any:
		made := make([]any, len(v))
		for i, item := range v {
			var err error
			if made[i], err = r.value(item, depth+1); err != nil {
				return nil, err
			}
		}
		return made, nil
	}

	return v, nil
}

// text renders one string.
func (r *renderer) text(text string) (any, error) {
	inner := whole.FindStringSubmatch(text)
	if len(inner) == 2 && !strings.Contains(inner[1], "}}") && !strings.Contains(inner[1], "{{") {
		return r.expression(text, inner[1])
	}
	return r.render(text, text)
}

// render renders a template. Its errors quote the template as the author wrote it.
func (r *renderer) render(text, written string) (string, error) {
	template, err := r.env.TemplateFromString(text)
	if err != nil {
		return "", failed(Syntax, err, written)
	}
	out, err := template.Render(r.variables)
	if err != nil {
		return "", r.addKnown(failed(Raised, err, written), err)
	}

	return out, nil
}

// addKnown adds the known keys of the state to the error of a template that uses an unknown key.
func (r *renderer) addKnown(err, cause error) error {
	var ended *ProgramError
	mistake, ok := errors.AsType[*minijinja.Error](cause)
	variables, _ := r.variables.(map[string]any)
	state, hasState := variables["state"].(map[string]any)
	if !ok || mistake.Kind != minijinja.ErrUndefinedVar || !hasState || !errors.As(err, &ended) {
		return err
	}

	const most = 20
	keys := slices.Sorted(maps.Keys(state))
	known := "the state is empty"
	if len(keys) > 0 {
		known = "the state has " + strings.Join(keys[:min(most, len(keys))], ", ")
	}
	if len(keys) > most {
		known += " and " + strconv.Itoa(len(keys)-most) + " more keys"
	}
	return &ProgramError{ended.Kind, ended.Message + " (" + clip(known) + ")"}
}

// maxShown bounds the part of a template in an error, in characters.
const maxShown = 80

// failed describes the mistake in a template, with its line.
func failed(kind Kind, err error, written string) error {
	line, message := explained(err)
	lines := strings.Split(written, "\n")
	if line > len(lines) {
		return &ProgramError{kind, message}
	}
	shown := []rune(strings.TrimSpace(lines[line-1]))
	if len(shown) > maxShown {
		shown = append(shown[:maxShown], '…')
	}

	return &ProgramError{kind, message + ", in line " + strconv.Itoa(line) + ": " + string(shown)}
}

// expression evaluates a string that is one expression.
func (r *renderer) expression(text, inner string) (any, error) {
	// Check the author's template before it is wrapped, so that the error quotes it.
	if _, err := r.env.TemplateFromString(text); err != nil {
		return nil, failed(Syntax, err, text)
	}
	if _, err := r.render("{{ ("+inner+")|"+keep+" }}", text); err != nil {
		return nil, err
	}

	encoded, err := filters.FilterTojson(nil, r.kept, nil, nil)
	if err != nil {
		return nil, failed(Raised, err, text)
	}
	data, _ := encoded.AsString()
	return decodeValue([]byte(data))
}

// plainNumbers converts the numbers in a value to Go's.
func plainNumbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		made := make(map[string]any, len(v))
		for key, member := range v {
			made[key] = plainNumbers(member)
		}
		return made
	case []any:
		made := make([]any, len(v))
		for i, item := range v {
			made[i] = plainNumbers(item)
		}
		return made
	case json.Number:
		return numberOf(v)
	}

	return v
}

package correct

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rlmhq/rlm/repl/internal/evaluators"
	"github.com/rlmhq/rlm/repl/workflow/internal/flow"
)

// Config configures a loop.
type Config struct {
	Generator Step
	Evaluator Evaluator
	// Corrector makes the next output from an invalid one. If it is nil, the generator also
	// makes the next output.
	Corrector *Step
	// Iterations bounds the attempts; 0 is [DefaultIterations].
	Iterations int
	// OnFailure is ReturnBest, ReturnLast or Raise; empty means ReturnBest.
	OnFailure string
}

// Step makes an output: with an action, whose parameters may contain templates, or with Python,
// as the body of a function of state.
type Step struct {
	Action string
	With   map[string]any
	Run    string
}

// Evaluator judges an output.
type Evaluator struct {
	// Type is SchemaEvaluator, LLMEvaluator or CustomEvaluator.
	Type string
	// Schema is a JSON Schema in the types of encoding/json, for type schema.
	Schema any
	// Prompt, Model and Examples are for type llm. All may contain templates.
	Prompt, Model string
	Examples      []any
	// Run and Language are for type custom; an empty Language means Python.
	Run, Language string
}

// configOf reads the parameters of reflection.loop.
func configOf(with map[string]any) (Config, error) {
	generator, _ := with["generator"].(map[string]any)
	evaluator, _ := with["evaluator"].(map[string]any)
	cfg := Config{Generator: stepOf(generator), Evaluator: evaluatorOf(evaluator, "type")}
	if corrector, ok := with["corrector"].(map[string]any); ok {
		step := stepOf(corrector)
		cfg.Corrector = &step
	}

	cfg.OnFailure, _ = with["on_failure"].(string)
	switch n := with["max_iterations"].(type) {
	case int:
		cfg.Iterations = n
	case json.Number:
		var err error
		if cfg.Iterations, err = strconv.Atoi(string(n)); err != nil {
			return cfg, fmt.Errorf("max_iterations must be a whole number: %w", err)
		}
	}

	err := cfg.validate()
	return cfg, err
}

// validate reports the first invalid field.
func (c *Config) validate() error {
	if c.Iterations == 0 {
		c.Iterations = DefaultIterations
	}
	if c.OnFailure == "" {
		c.OnFailure = ReturnBest
	}

	switch {
	case c.Iterations < 0 || c.Iterations > MaxIterations:
		return fmt.Errorf(
			"max_iterations is %d: give a number from 1 to %d", c.Iterations, MaxIterations,
		)
	case !slices.Contains([]string{ReturnBest, ReturnLast, Raise}, c.OnFailure):
		return fmt.Errorf("on_failure is %q: give return_best, return_last or raise", c.OnFailure)
	case (c.Generator.Action == "") == (c.Generator.Run == ""):
		return errors.New("the generator needs exactly one of action and run")
	}

	return nil
}

// stepOf reads a generator or a corrector.
func stepOf(with map[string]any) Step {
	var s Step
	s.Action, _ = with["action"].(string)
	s.Run, _ = with["run"].(string)
	s.With = maps.Clone(with)
	delete(s.With, "action")
	delete(s.With, "run")
	return s
}

// evaluatorOf reads an evaluator. typeName is the member that holds its type.
func evaluatorOf(with map[string]any, typeName string) Evaluator {
	e := Evaluator{Schema: with["schema"]}
	e.Type, _ = with[typeName].(string)
	e.Prompt, _ = with["prompt"].(string)
	e.Model, _ = with["model"].(string)
	e.Examples, _ = with["examples"].([]any)
	e.Run, _ = with["run"].(string)
	e.Language, _ = with["language"].(string)
	return e
}

// correctorOf reads the parameters of reflection.correct.
func correctorOf(with map[string]any) Step {
	var s Step
	s.Action, _ = with["corrector_action"].(string)
	s.Run, _ = with["run"].(string)
	if s.Action == "" && s.Run == "" {
		s.Action = flow.LLMCall
	}

	s.With = maps.Clone(with)
	for _, own := range []string{"data", "errors", "corrector_action", "run"} {
		delete(s.With, own)
	}
	return s
}

// problem returns a problem at the position of a value.
func problem(at *flow.Tree, format string, args ...any) *flow.Problem {
	return &flow.Problem{Line: at.Line, Column: at.Column, Message: fmt.Sprintf(format, args...)}
}

// verifyEvaluator finds missing and misplaced parameters of an evaluator.
func verifyEvaluator(with *flow.Tree, typeName string) []*flow.Problem {
	kind := SchemaEvaluator
	if given := with.Get(typeName); given != nil {
		kind = given.Text
	} else if typeName == "type" {
		return nil // already reported
	}

	needs := map[string]string{SchemaEvaluator: "schema", LLMEvaluator: "prompt", CustomEvaluator: "run"}[kind]
	if needs == "" {
		return nil
	}
	var found []*flow.Problem
	if with.Get(needs) == nil {
		found = append(
			found, problem(with, "%q is missing: an evaluator of type %s needs it", needs, kind),
		)
	}

	for _, other := range []string{"schema", "prompt", "model", "examples", "run", "language"} {
		if value := with.Get(other); value != nil && !belongs(other, kind) {
			found = append(
				found, problem(value, "%q is not used by an evaluator of type %s: remove it", other, kind),
			)
		}
	}

	if examples := with.Get("examples"); examples != nil && kind == LLMEvaluator {
		found = append(found, verifyExamples(examples)...)
	}
	return found
}

// noteJudge notes that a judge's prompt lacks the output; data is the expression for the output.
func noteJudge(with *flow.Tree, data string) []*flow.Problem {
	prompt := with.Get("prompt")
	if prompt == nil || showsOutput(prompt.Text) || data != "" && strings.Contains(prompt.Text, data) {
		return nil
	}
	return []*flow.Problem{problem(
		prompt, "the prompt lacks {{ state.%s }}: a run appends the output to it", stateOutput,
	)}
}

// belongs reports whether a parameter belongs to a type of evaluator.
func belongs(name, kind string) bool {
	return map[string]string{
		"schema": SchemaEvaluator, "prompt": LLMEvaluator, "model": LLMEvaluator, "examples": LLMEvaluator,
		"run": CustomEvaluator, "language": CustomEvaluator,
	}[name] == kind
}

// verifyExamples checks the verdicts of few-shot examples against the contract, because a judge
// imitates these verdicts.
func verifyExamples(examples *flow.Tree) []*flow.Problem {
	var found []*flow.Problem
	for _, example := range examples.Items {
		output := example.Get("output")
		if output == nil || evaluators.HasTemplate(output.Plain()) {
			continue // already reported, or only known at run time
		}
		if _, err := verdictOf(output.Plain(), judgeContract()); err != nil {
			found = append(found, problem(output, "the output of an example must be a verdict: %v", err))
		}
	}
	return found
}

// verifyCorrect finds missing and misplaced parameters of reflection.correct.
func verifyCorrect(with *flow.Tree) []*flow.Problem {
	action, run, prompt := with.Get("corrector_action"), with.Get("run"), with.Get("prompt")
	var found []*flow.Problem
	switch {
	case action == nil && run == nil && prompt == nil:
		found = append(
			found,
			problem(
				with, `"corrector_action", "run" and "prompt" are missing: give one of them`,
			),
		)
	case action != nil && run != nil || run != nil && prompt != nil:
		found = append(
			found, problem(run, `"run" excludes "corrector_action" and "prompt": `+
				`remove "run" or the others`),
		)
	}

	if action != nil {
		return found
	}
	own := []string{"data", "errors", "corrector_action", "run", "prompt", "model"}
	for _, key := range with.Keys {
		if !slices.Contains(own, key.Text) {
			found = append(
				found,
				problem(
					key,
					"unknown parameter %q of reflection.correct: only corrector_action takes further parameters",
					key.Text,
				),
			)
		}
	}

	return found
}

package correct

import (
	"context"
	"strings"

	"github.com/rlmhq/rlm/repl/workflow/internal/flow"
)

// Defaults and bounds of a loop.
const (
	DefaultIterations = 3
	MaxIterations     = 100
)

// The strategies of on_failure.
const (
	ReturnBest = "return_best" // the attempt with the highest score
	ReturnLast = "return_last" // the final attempt
	Raise      = "raise"       // a *FailedError with the history
)

// The types of evaluators.
const (
	SchemaEvaluator = "schema" // JSON Schema
	LLMEvaluator    = "llm"    // a model as judge
	CustomEvaluator = "custom" // code
)

// The languages of a custom evaluator.
const (
	Python = "python"
	Lua    = "lua"
	Prolog = "prolog"
)

// exampleFields are the members of a few-shot example.
var exampleFields = []flow.Param{
	{Name: "input", Type: flow.AnyType, Required: true, Doc: "the value that was judged"},
	{Name: "output", Type: flow.AnyType, Required: true, Doc: "the verdict on that value, as JSON"},
}

// judgement returns the parameters of an evaluator, in reflection.loop and reflection.evaluate.
func judgement(typeName string, standard any) []flow.Param {
	return []flow.Param{
		{
			Name: typeName, Type: flow.TextType, Required: standard == nil,
			Default: standard, Values: []string{SchemaEvaluator, LLMEvaluator, CustomEvaluator},
			Doc: "schema, llm or custom",
		},
		{Name: "schema", Type: flow.SchemaType, Doc: "the JSON Schema (type schema)"},
		{
			Name: "prompt", Type: flow.TextType, Late: true,
			Doc: "the question to the judge (type llm)",
		},
		{
			Name: "model", Type: flow.ModelType, Late: true,
			Doc: "the judge (type llm); by default the state's model, otherwise the run's model",
		},
		{
			Name: "examples", Type: flow.ListType, Fields: exampleFields, Late: true,
			Doc: "few-shot examples (type llm)",
		},
		{Name: "run", Type: flow.CodeType, Doc: "the code (type custom)"},
		{
			Name: "language", Type: flow.TextType, Default: Python,
			Values: []string{Python, Lua, Prolog},
			Doc:    "the code's language: python, lua or prolog (type custom)",
		},
	}
}

// Actions returns reflection.loop, reflection.evaluate and reflection.correct.
func Actions() []flow.Action {
	return []flow.Action{loopAction, evaluateAction, correctAction}
}

var loopAction = flow.Action{
	Name: "reflection.loop",
	Doc:  "Makes an output, and judges and corrects it until it is valid or the iterations are used up.",
	Params: []flow.Param{
		{
			Name: "generator", Type: flow.StepType, Required: true, Late: true,
			Doc: "the step that makes the output: action with its parameters, or run",
		},
		{
			Name: "evaluator", Type: flow.ObjectType, Required: true, Late: true,
			Fields: judgement("type", nil), Doc: "the judge of the output",
			Verify: func(v *flow.Tree) []*flow.Problem { return verifyEvaluator(v, "type") },
		},
		{
			Name: "corrector", Type: flow.StepType, Late: true,
			Doc: "the step that corrects the output: action with its parameters, or run",
		},
		{
			Name: "max_iterations", Type: flow.WholeType, Default: DefaultIterations,
			Least: 1, Most: MaxIterations, Doc: "maximum number of attempts",
		},
		{
			Name: "on_failure", Type: flow.TextType, Default: ReturnBest,
			Values: []string{ReturnBest, ReturnLast, Raise},
			Doc:    "the end of a loop without a valid output: return_best, return_last or raise",
		},
	},
	Note: func(with *flow.Tree) []*flow.Problem { return noteJudge(with.Get("evaluator"), "") },
	Do: func(ctx context.Context, r *flow.Run, with map[string]any) (any, error) {
		cfg, err := configOf(with)
		if err != nil {
			return nil, err
		}
		outcome, err := Loop(ctx, r, cfg)
		if err != nil {
			return nil, err
		}

		values := outcome.Values()
		return values, r.Set(values)
	},
}

var evaluateAction = flow.Action{
	Name: "reflection.evaluate",
	Doc:  "Judges a value.",
	Params: append([]flow.Param{
		{
			Name: "data", Type: flow.AnyType,
			Doc: "the value to judge; by default the state's reflection_output",
		},
	}, judgement("evaluator_type", SchemaEvaluator)...),
	Verify: func(with *flow.Tree) []*flow.Problem { return verifyEvaluator(with, "evaluator_type") },
	Note: func(with *flow.Tree) []*flow.Problem {
		data := with.Get("data")
		if data == nil {
			return noteJudge(with, "")
		}
		return noteJudge(with, strings.Trim(data.Text, "{} "))
	},
	Do: func(ctx context.Context, r *flow.Run, with map[string]any) (any, error) {
		data, given := with["data"]
		if !given {
			data = r.State[stateOutput]
		}
		_, verdict, err := Evaluate(ctx, r, evaluatorOf(with, "evaluator_type"), data)
		if err != nil {
			return nil, err
		}

		return verdict.Values(), nil
	},
}

var correctAction = flow.Action{
	Name: "reflection.correct",
	Doc:  "Corrects a value.",
	Params: []flow.Param{
		{
			Name: "data", Type: flow.AnyType,
			Doc: "the value to correct; by default the state's reflection_output",
		},
		{
			Name: "errors", Type: flow.ListType,
			Doc: "the errors to correct; by default the state's reflection_errors",
		},
		{
			Name: "corrector_action", Type: flow.ActionType,
			Doc: "the action that corrects the value, and gets all further parameters",
		},
		{Name: "run", Type: flow.CodeType, Doc: "Python code that corrects the value"},
		{
			Name: "prompt", Type: flow.TextType, Late: true,
			Doc: "the prompt for a model that corrects the value, by llm.call",
		},
		{
			Name: "model", Type: flow.ModelType, Late: true,
			Doc: "the model; by default the state's model, otherwise the run's model",
		},
	},
	Open:   true,
	Verify: verifyCorrect,
	Do: func(ctx context.Context, r *flow.Run, with map[string]any) (any, error) {
		data, given := with["data"]
		if !given {
			data = r.State[stateOutput]
		}
		errs, _ := with["errors"].([]any)
		if errs == nil {
			errs, _ = r.State[stateErrors].([]any)
		}

		return Correct(ctx, r, correctorOf(with), data, errs)
	},
}

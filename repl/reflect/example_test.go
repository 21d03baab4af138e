package reflect_test

import (
	"context"
	"fmt"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/scripted"
	"github.com/rlmhq/rlm/repl/reflect"
	"github.com/rlmhq/rlm/router"
)

// script returns a model that looks at the trace, builds its result in two blocks, and submits it.
func script() (llm.Provider, error) {
	replies := []string{
		"```python\nprint(trace.summary())\nprint(trace.to_markdown())\n```",
		"```python\n# BATCH\nresult = {\"reasoning\": \"Step \" + " +
			"str(trace.get_errors()[0].index) + \" lost count.\"}\n```\n" +
			"```python\nresult[\"extracted_learnings\"] = [{\"learning\": \"Count twice.\", " +
			"\"atomicity_score\": 0.9, \"evidence\": \"step 0\"}]\n```",
		"```python\nFINAL_VAR(\"result\")\n```",
	}
	var rules []scripted.Rule
	for i := range replies {
		rules = append(rules, scripted.Rule{When: scripted.When{Said: &i}, Reply: &replies[i]})
	}
	return scripted.New(rules...)
}

// one is a registry with one model.
type one struct{ llm.Provider }

// Resolve implements repl.Models.
func (o one) Resolve(name string) (llm.Model, error) {
	return llm.Model{Name: name, ID: name, Provider: o.Provider}, nil
}

// A reflector explores a trace with snippets, then submits a lesson.
func ExampleRun() {
	model, err := script()
	if err != nil {
		fmt.Println(err)
		return
	}
	subject, err := reflect.ParseTrace([]byte(`{
		"question": "What is 2+2?", "ground_truth": "4", "feedback": "Wrong.",
		"reasoning": "I count: Error, I lost count.", "final_answer": "5", "skill_ids": ["math-00001"]
	}`), "auto")
	if err != nil {
		fmt.Println(err)
		return
	}
	subject.Skillbook = "[math-00001] Count on your fingers."

	outcome, err := reflect.Run(context.Background(), reflect.Config{
		Models: one{model}, Model: "any", Open: shared.Opener(router.Policy{}), MaxIterations: 10,
	}, subject)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(
		outcome.Status, "after", outcome.Iterations, "iterations:", outcome.Output.Reasoning,
	)
	for _, l := range outcome.Output.ExtractedLearnings {
		fmt.Println("-", l.Learning, l.AtomicityScore)
	}
	// Output:
	// answered after 3 iterations: Step 0 lost count.
	// - Count twice. 0.9
}

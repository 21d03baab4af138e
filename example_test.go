package rlm_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/distill"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm/providers"
	"github.com/rlmhq/rlm/repl/reflect"
	"github.com/rlmhq/rlm/repl/reflexion"
	"github.com/rlmhq/rlm/repl/run"
	"github.com/rlmhq/rlm/repl/workflow"
	"github.com/rlmhq/rlm/store"
	"github.com/rlmhq/rlm/tiers"
)

func Example() {
	ctx := context.Background()
	engine, err := rlm.New(rlm.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()

	// The snippets work on contexts and call functions. rlm.File maps a file of any size.
	badge := rlm.Func("badge", "Returns the text for a guest's badge.",
		func(_ context.Context, in struct {
			Name string `json:"name"`
		},
		) (string, error) {
			return strings.ToUpper(in.Name), nil
		})
	session, err := engine.Open(ctx, rlm.SessionConfig{
		Contexts: []rlm.Context{
			rlm.Text("guests", "ada, london\ngrace, new york\nalan, london\n"),
		},
		Functions: []rlm.Function{badge},
		Limits:    tiers.Limits{Wall: time.Minute, Memory: 128 << 20},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()

	for _, source := range []string{
		`london = [line.split(",")[0] for line in context.splitlines() if line.endswith("london")]`,
		`print(len(london), "from London:", [badge(name) for name in london])`,
		`london[2]`,
		`FINAL({"count": len(london)})`,
	} {
		result, err := session.Run(ctx, source)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(result.Stdout)
		if result.Exception != nil {
			fmt.Println(result.Status, result.Exception.Type, result.Exception.Message)
		}
		if result.Final != nil {
			fmt.Println("answer:", string(result.Final.Value))
		}
	}

	// Output:
	// 2 from London: ['ADA', 'ALAN']
	// raised IndexError list index out of range
	// answer: {"count": 2}
}

// A snippet is treated as Python unless it is valid only as Go.
func ExampleEngine_Detect() {
	engine, err := rlm.New(rlm.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()

	for _, source := range []string{"print(1)", "fmt.Println(1)\nx := 2", "x := :="} {
		fmt.Println(engine.Detect(context.Background(), source))
	}

	// Output:
	// python
	// go
	// python
}

func ExampleSession_Set() {
	ctx := context.Background()
	engine, err := rlm.New(rlm.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()
	session, err := engine.Open(ctx, rlm.SessionConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()

	if err := session.Set(ctx, "prices", map[string]float64{"tea": 3.5, "rice": 2}); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := session.Run(ctx, "total = sum(prices.values())\nkinds = set(prices)"); err != nil {
		fmt.Println(err)
		return
	}
	var total float64
	fmt.Println(session.Get(ctx, "total", &total), total)
	var kinds []string
	fmt.Println(session.Get(ctx, "kinds", &kinds))

	// Output:
	// <nil> 5.5
	// cannot get "kinds": JSON cannot represent the value: kinds is of type set
}

func ExampleSession_Snapshot() {
	ctx := context.Background()
	engine, err := rlm.New(rlm.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()

	var file bytes.Buffer
	first, err := engine.Open(ctx, rlm.SessionConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer first.Close()
	if _, err := first.Run(ctx, "def double(n):\n    return 2 * n\nseen = [1, 2]"); err != nil {
		fmt.Println(err)
		return
	}
	if err := first.Snapshot(ctx, &file); err != nil {
		fmt.Println(err)
		return
	}

	second, err := engine.Open(ctx, rlm.SessionConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer second.Close()
	report, err := second.Restore(ctx, &file)
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := second.Run(ctx, "print([double(n) for n in seen])")
	fmt.Println(report.Moved, "variables:", result.Stdout, err)

	// Output:
	// 2 variables: [2, 4]
	//  <nil>
}

func ExampleFunc() {
	type order struct {
		Article string `json:"article" jsonschema:"the article's name"`
		Number  int    `json:"number,omitempty"`
	}
	stock := map[string]int{"tea": 4, "rice": 3}
	price := rlm.Func("price", "Returns the price of an order, in euros.",
		func(_ context.Context, in order) (int, error) {
			euros, known := stock[in.Article]
			if !known {
				return 0, fmt.Errorf("there is no %q", in.Article) // an exception in the snippet
			}
			return euros * max(in.Number, 1), nil
		})

	ctx := context.Background()
	engine, err := rlm.New(rlm.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()
	session, err := engine.Open(ctx, rlm.SessionConfig{Functions: []rlm.Function{price}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()

	for _, source := range []string{
		`print(price("tea"), price("rice", number=2))`,
		`price("gold")`,
		`price("tea", colour="green")`,
	} {
		result, err := session.Run(ctx, source)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(result.Stdout)
		if result.Exception != nil {
			fmt.Println(result.Exception.Message)
		}
	}

	// Output:
	// 4 6
	// there is no "gold"
	// price has no parameter "colour": it takes article, number
}

func ExampleEngine_Ask() {
	engine, err := rlm.New(rlm.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()
	// Keys and addresses of real models come from the environment: Env: os.Getenv.
	models, err := providers.New(providers.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer models.Close()

	// The prompt lists the functions for the model.
	stock := map[string]int{"tea": 4, "rice": 3}
	price := rlm.Func("price", "What one of it costs, in euros.",
		func(_ context.Context, in struct {
			Name string `json:"name"`
		},
		) (int, error) {
			euros, known := stock[in.Name]
			if !known {
				return 0, fmt.Errorf("there is no %q", in.Name)
			}
			return euros, nil
		})
	outcome, err := engine.Ask(context.Background(), rlm.Task{
		Contexts:  []rlm.Context{rlm.Text("the list", "tea rice")},
		Functions: []rlm.Function{price},
		Config: run.Config{
			Question: "What does the list cost?",
			Models:   models, Model: "scripted/examples/tool.yaml", // or openai/gpt-5
			Budget: ledger.Budget{Calls: 20, Wall: 5 * time.Minute},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(outcome.Status, "after", outcome.Spent.Calls, "call:", outcome.Text())

	// Output:
	// answered after 1 call: 7 euros for tea, rice
}

// A named run is stored in a folder, and continues where its process ended. Here the first call
// completed the run, so the second call returns the stored answer and asks no model.
func ExampleEngine_Runs() {
	folder, err := os.MkdirTemp("", "runs-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	engine, err := rlm.New(rlm.Options{Store: store.Folder(folder)})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()
	models, err := providers.New(providers.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer models.Close()

	price := rlm.Func("price", "What one of it costs, in euros.",
		func(_ context.Context, in struct {
			Name string `json:"name"`
		},
		) (int, error) {
			return len(in.Name), nil
		})
	for range 2 {
		outcome, err := engine.Ask(context.Background(), rlm.Task{
			Task:      repl.Task{Name: "shopping"},
			Contexts:  []rlm.Context{rlm.Text("the list", "tea rice")},
			Functions: []rlm.Function{price},
			Config: run.Config{
				Question: "What does the list cost?",
				Models:   models, Model: "scripted/examples/tool.yaml",
			},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(outcome.Text())
	}

	runs, err := engine.Runs(context.Background(), rlm.RunFilter{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(runs[0].Name, "is", runs[0].Status, "and has cost", runs[0].Spent.Calls, "call")

	// Output:
	// 7 euros for tea, rice
	// 7 euros for tea, rice
	// shopping is answered and has cost 1 call
}

func Example_reflect() {
	engine, err := rlm.New(rlm.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()
	models, err := providers.New(providers.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer models.Close()

	record, err := os.ReadFile("examples/reflect/refund.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	subject, err := reflect.ParseTrace(record, "auto")
	if err != nil {
		fmt.Println(err)
		return
	}
	outcome, err := reflect.RunOn(context.Background(), engine, reflect.Task{
		Subject: subject,
		Config: reflect.Config{
			Models: models, Model: "scripted/examples/reflect/refund.yaml", // or openai/gpt-5
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(outcome.Status, "after", outcome.Iterations, "iterations")
	fmt.Println(outcome.Output.KeyInsight)

	// Output:
	// answered after 5 iterations
	// A failed lookup is no permission.
}

// The judge finds a critical issue in the first draft and none in the second.
func Example_reflexion() {
	engine, err := rlm.New(rlm.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()
	models, err := providers.New(providers.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer models.Close()

	facts, err := os.Open("examples/reflexion/facts.json")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer facts.Close()
	memory, err := reflexion.ParseMemory(facts)
	if err != nil {
		fmt.Println(err)
		return
	}
	outcome, err := reflexion.RunOn(context.Background(), engine, reflexion.Task{
		Config: reflexion.Config{
			Task:   "How do I set up database migrations?",
			Memory: memory, Paths: []string{"examples/reflexion/project"},
			Models: models, Model: "scripted/examples/reflexion/migrations.yaml", // or openai/gpt-5
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, iteration := range outcome.Iterations {
		fmt.Println("draft", iteration.Number, iteration.Critique)
	}
	fmt.Println(outcome.Status)

	// Output:
	// draft 1 does not pass: 1 critical issue
	// draft 2 passes: no issue
	// passed
}

// A workflow needs a model only for nodes that ask one.
func Example_workflow() {
	engine, err := rlm.New(rlm.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()

	file, err := workflow.Parse("total.yaml", []byte(`
nodes:
  - name: total
    run: |
      return {"total": sum(state["prices"])}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	outcome, err := workflow.RunOn(context.Background(), engine, workflow.Task{
		File: file, Input: map[string]any{"prices": []any{3, 4}},
	})
	fmt.Println(outcome.Status, outcome.Result, err)

	// Output:
	// done map[total:7] <nil>
}

// Without a model, distill clusters failures by their words.
func Example_distill() {
	engine, err := rlm.New(rlm.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer engine.Close()

	corpus, err := distill.Parse(strings.NewReader(`
{"id": "a", "success": false, "error": "database timeout after 5 s"}
{"id": "b", "success": false, "error": "database timeout after 9 s"}
{"id": "c", "success": true}
`), "auto")
	if err != nil {
		fmt.Println(err)
		return
	}
	outcome, err := distill.RunOn(context.Background(), engine, distill.Task{Corpus: corpus})
	fmt.Println(outcome.Method, outcome.Failed, "of", outcome.Failed+outcome.Passed, err)
	for _, cluster := range outcome.Clusters {
		fmt.Println(cluster.Count, cluster.Failures)
	}

	// Output:
	// keywords 2 of 3 <nil>
	// 2 [a b]
}

package rlm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm/providers"
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

	// What the snippets work on, and what they may call. rlm.File would map a
	// file of any size.
	host := tiers.HostFunc(func(_ context.Context, call tiers.Call) (tiers.Value, error) {
		var name string
		if err := json.Unmarshal(call.Args[0], &name); err != nil {
			return nil, err
		}
		return json.Marshal(strings.ToUpper(name))
	})
	session, err := engine.Open(ctx, rlm.SessionConfig{
		Contexts:  []rlm.Context{rlm.Text("guests", "ada, london\ngrace, new york\nalan, london\n")},
		Functions: []tiers.Function{{Name: "badge", Doc: "badge(name): what to print on a guest's badge."}},
		Host:      host,
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

func ExampleEngine_Answer() {
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

	// A function of our own, which the prompt tells the model of.
	stock := map[string]int{"tea": 4, "rice": 3}
	tools, err := repl.NewTools(repl.Tool{
		Name: "price", Signature: "price(name)", Doc: "What one of it costs, in euros.",
		Schema: json.RawMessage(`{"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}`),
		Call: func(_ context.Context, args map[string]tiers.Value) (tiers.Value, error) {
			var name string
			if err := json.Unmarshal(args["name"], &name); err != nil {
				return nil, err
			}
			euros, known := stock[name]
			if !known {
				return nil, fmt.Errorf("there is no %q", name) // an exception in the snippet
			}
			return json.Marshal(euros)
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	outcome, err := engine.Answer(context.Background(), rlm.Task{
		Contexts: []rlm.Context{rlm.Text("the list", "tea rice")},
		Run: rlm.RunConfig{
			Question: "What does the list cost?", Tools: tools,
			Models: models, Model: "scripted/examples/tool.yaml", // or openai/gpt-5
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

package rlm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/rlmhq/rlm"
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

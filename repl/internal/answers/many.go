package answers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/rlmhq/rlm/repl/internal/fanout"
	"github.com/rlmhq/rlm/tiers"
)

func (p dialects) llmBatch(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	queries, err := p.batch(p.model(call, 1), "prompts", "model", "schema", "contexts")
	if err != nil {
		return nil, err
	}
	return p.many(ctx, queries, false)
}

func (p dialects) rlmBatch(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	queries, err := p.batch(p.model(call, 1), "prompts", "contexts", "schema", "model")
	if err != nil {
		return nil, err
	}
	return p.many(ctx, queries, true)
}

// batch makes the queries of a call with a list of prompts. Each item is a prompt or a dict with
// its own arguments. A list in place of the model holds the contexts.
func (p dialects) batch(call tiers.Call, params ...string) ([]Query, error) {
	if len(call.Args) > 1 && len(call.Args[1]) > 0 && call.Args[1][0] == '[' {
		call.Named = with(call.Named, "contexts", call.Args[1])
		call.Args = slices.Clone(call.Args)
		call.Args[1] = tiers.Value("null")
	}
	a, err := accept(call, params...)
	if err != nil {
		return nil, err
	}

	prompts, err := a.list("prompts")
	if err != nil {
		return nil, err
	}
	contexts, err := a.contexts(len(prompts))
	if err != nil {
		return nil, err
	}

	if len(prompts) > maxList {
		return nil, fmt.Errorf("%s: %d prompts, but at most %d are allowed",
			call.Function, len(prompts), maxList)
	}

	queries := make([]Query, len(prompts))
	for i, prompt := range prompts {
		common := arguments{
			call,
			map[string]tiers.Value{
				"prompt": prompt,
				"model":  a.values["model"],
				"schema": a.values["schema"],
			},
		}
		if contexts != nil {
			common.values["context"] = contexts[i]
		}
		if queries[i], err = p.entry(common, i); err != nil {
			return nil, err
		}
	}

	return queries, nil
}

// contexts returns one context per prompt, or nil without contexts.
func (a arguments) contexts(n int) ([]tiers.Value, error) {
	if _, ok := a.values["contexts"]; !ok {
		return nil, nil
	}
	contexts, err := a.list("contexts")
	if err == nil && len(contexts) != n {
		err = fmt.Errorf(
			"%s: there are %d prompts and %d contexts; give one context for each prompt",
			a.call.Function, n, len(contexts),
		)
	}

	return contexts, err
}

// entry makes the query of one item of a list. A dict with a prompt has its own context, schema and
// model.
func (p dialects) entry(common arguments, i int) (Query, error) {
	var own map[string]tiers.Value
	if prompt := common.values["prompt"]; len(prompt) > 0 && prompt[0] == '{' &&
		json.Unmarshal(prompt, &own) == nil {
		values := map[string]tiers.Value{}
		for name, value := range own {
			if other, ok := synonyms[name]; ok {
				name = other
			}
			values[name] = value
		}
		if values["prompt"] != nil {
			for name, value := range common.values {
				if name != "prompt" && values[name] == nil && value != nil {
					values[name] = value
				}
			}
			common.values = values
		}
	}

	for name, value := range common.values {
		if value == nil || string(value) == "null" {
			delete(common.values, name)
		}
	}
	q, err := p.query(common)
	q.Slot = i
	if err != nil {
		err = fmt.Errorf("entry %d: %w", i, err)
	}

	return q, err
}

// parallel answers run_parallel_sub_calls. It accepts a single dict as a list of one.
func (p dialects) parallel(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	if len(call.Args) == 1 && len(call.Args[0]) > 0 && call.Args[0][0] == '{' {
		call.Args = []tiers.Value{tiers.Value("[" + string(call.Args[0]) + "]")}
	}
	queries, err := p.batch(call, "prompts", "schema")
	if err != nil {
		return nil, err
	}

	return p.many(ctx, queries, true)
}

// many answers queries with a list.
func (p dialects) many(ctx context.Context, queries []Query, sub bool) (tiers.Value, error) {
	slots, err := p.Many(ctx, queries, sub)
	if err != nil {
		return nil, err
	}
	return encode(slots, queries)
}

// encode writes the slots of queries as a JSON list.
func encode(slots []fanout.Slot[json.RawMessage], queries []Query) (tiers.Value, error) {
	values := make([]json.RawMessage, len(slots))
	for i, s := range slots {
		values[i] = s.Value
		if s.Err == nil {
			continue
		}
		failed, err := encodeFailure(queries[i].Schema != nil, s.Err)
		if err != nil {
			return nil, err
		}
		values[i] = failed
	}

	return json.Marshal(values)
}

// items makes a query for each item: the prompt, with the item as its context.
func (p dialects) items(call tiers.Call, params ...string) ([]Query, arguments, error) {
	a, err := accept(call, params...)
	if err != nil {
		return nil, a, err
	}
	list, err := a.list("items")
	if err != nil {
		return nil, a, err
	}

	if len(list) > maxList {
		return nil, a, fmt.Errorf("%s: %d items, but at most %d are allowed",
			call.Function, len(list), maxList)
	}

	q := Query{}
	if len(list) > 0 {
		if q, err = p.query(a); err != nil {
			return nil, a, err
		}
	}

	queries := make([]Query, len(list))
	for i, item := range list {
		queries[i] = q
		queries[i].Context, queries[i].Slot = item, i
	}
	return queries, a, nil
}

// answerIfAffordable answers the queries of a combinator if they fit the budget.
func (p dialects) answerIfAffordable(
	ctx context.Context, queries []Query,
) ([]fanout.Slot[json.RawMessage], error) {
	if err := p.Foresee(ctx, queries); err != nil {
		return nil, err
	}
	return p.Many(ctx, queries, false)
}

func (p dialects) mapLLM(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	queries, a, err := p.items(call, "prompt", "items", "schema", "model", "cover")
	if err != nil {
		return nil, err
	}

	answer := p.answerIfAffordable
	if string(a.values["cover"]) == "true" {
		answer = func(ctx context.Context, queries []Query) ([]fanout.Slot[json.RawMessage], error) {
			return p.cover(ctx, queries, a)
		}
	}
	slots, err := answer(ctx, queries)
	if err != nil {
		return nil, err
	}

	return encode(slots, queries)
}

// filterLLM answers with a list of booleans; the guest then selects its own objects. If a slot
// fails, the call fails, because an item must not vanish when its query fails.
func (p dialects) filterLLM(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	queries, _, err := p.items(call, "prompt", "items", "model")
	if err != nil {
		return nil, err
	}
	for i := range queries {
		queries[i].Schema = json.RawMessage(`{"type":"boolean"}`)
	}

	return p.all(ctx, "filter_llm", queries)
}

// all answers queries and fails if one of them fails.
func (p dialects) all(ctx context.Context, name string, queries []Query) (tiers.Value, error) {
	slots, err := p.answerIfAffordable(ctx, queries)
	if err != nil {
		return nil, err
	}
	for i, s := range slots {
		if s.Err != nil {
			return nil, fmt.Errorf("%s: item %d: %w", name, i, s.Err)
		}
	}

	return encode(slots, queries)
}

// tally answers with a label for each item; the guest counts them. It requires a prompt.
func (p dialects) tally(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	queries, a, err := p.items(call, "items", "labels", "prompt", "model")
	if err != nil {
		return nil, err
	}
	labels, err := a.list("labels")
	if err != nil {
		return nil, err
	}
	if len(labels) == 0 {
		return nil, errors.New("tally: a prompt needs labels, the list of possible answers")
	}

	contract, err := json.Marshal(map[string]any{"enum": labels})
	if err != nil {
		return nil, err
	}
	for i := range queries {
		queries[i].Schema = contract
	}

	return p.all(ctx, "tally", queries)
}

const defaultFanIn = 8

// reduceLLM combines items fan_in at a time, level by level, until one remains. The contract
// applies to every level, because each answer is an item of the next.
func (p dialects) reduceLLM(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	queries, a, err := p.items(call, "prompt", "items", "schema", "model", "fan_in")
	if err != nil {
		return nil, err
	}
	fanIn := defaultFanIn
	if value, ok := a.values["fan_in"]; ok &&
		(json.Unmarshal(value, &fanIn) != nil || fanIn < 2 || fanIn > 1000) {
		return nil, fmt.Errorf(
			"reduce_llm: fan_in must be an int from 2 to 1000, not %s", clip(value),
		)
	}

	if len(queries) == 0 {
		return nil, errors.New("reduce_llm: there are no items")
	}
	level := make([]json.RawMessage, len(queries))
	for i, q := range queries {
		level[i] = q.Context
	}

	ahead, err := planLevels(queries[0], level, fanIn)
	if err != nil {
		return nil, err
	}
	if err := p.Foresee(ctx, ahead); err != nil {
		return nil, err
	}

	for first := true; first || len(level) > 1; first = false {
		wave, err := groupLevel(queries[0], level, fanIn)
		if err != nil {
			return nil, err
		}
		slots, err := p.Many(ctx, wave, false)
		if err != nil {
			return nil, err
		}

		level = make([]json.RawMessage, len(slots))
		for i, s := range slots {
			if s.Err != nil {
				return nil, fmt.Errorf("reduce_llm: group %d: %w", i, s.Err)
			}
			level[i] = s.Value
		}
	}

	return level[0], nil
}

// groupLevel returns the queries of one level.
func groupLevel(q Query, level []json.RawMessage, fanIn int) ([]Query, error) {
	var queries []Query
	for at := 0; at < len(level); at += fanIn {
		group, err := json.Marshal(level[at:min(at+fanIn, len(level))])
		if err != nil {
			return nil, err
		}
		q.Context, q.Slot = group, len(queries)
		queries = append(queries, q)
	}

	return queries, nil
}

// planLevels returns the queries of all levels. For lack of a better estimate, it assumes that
// an answer is as long as the first item.
func planLevels(q Query, level []json.RawMessage, fanIn int) ([]Query, error) {
	queries, err := groupLevel(q, level, fanIn)
	for n := len(queries); n > 1; n = (n + fanIn - 1) / fanIn {
		for i := range (n + fanIn - 1) / fanIn {
			q.Context, q.Slot = level[0], i
			queries = append(queries, q)
		}
	}

	return queries, err
}

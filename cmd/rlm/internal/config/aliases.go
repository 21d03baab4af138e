package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
)

// foreign is the name of a setting in agent-utilities, and its meaning here.
type foreign struct {
	key string
	// variable is its environment variable, if the variable lacks the project's prefix.
	variable string
	// words are the allowed values; nil means any value that the setting accepts.
	words []string
	// means returns the settings that a value stands for. An empty result means the default, which
	// both programs share.
	means func(value string) map[string]string
	doc   string
}

// renamesTo returns the meaning of a name whose values need no translation.
func renamesTo(key string) func(string) map[string]string {
	return func(value string) map[string]string { return map[string]string{key: value} }
}

// pinsTier returns the meaning of a switch for one tier.
func pinsTier(tier string) func(string) map[string]string {
	return func(value string) map[string]string {
		if value != "true" {
			return nil
		}
		return map[string]string{"tier": tier}
	}
}

var onOff = []string{"true", "false"}

// foreigners are the accepted foreign names.
var foreigners = []foreign{
	{
		key:      "enable_rlm",
		variable: "ENABLE_RLM",
		means:    renamesTo("trigger_always"),
		doc:      "trigger_always",
	},
	{
		key:   "sandbox",
		words: []string{"auto", "monty", "wasm", "docker", "local"},
		means: func(value string) map[string]string {
			if value == "monty" {
				value = "interp"
			}
			return map[string]string{"tier": value}
		},
		doc: "tier; monty means interp",
	},
	{key: "use_monty", words: onOff, means: pinsTier("interp"), doc: "true means tier: interp"},
	{key: "use_wasm", words: onOff, means: pinsTier("wasm"), doc: "true means tier: wasm"},
	{key: "use_container", words: onOff, means: pinsTier("docker"), doc: "true means tier: docker"},
	{key: "async_enabled", words: onOff, means: func(value string) map[string]string {
		if value == "true" {
			return nil
		}
		return map[string]string{"calls_at_once": "1", "loops_at_once": "1"}
	}, doc: "false means calls_at_once: 1 and loops_at_once: 1"},
	{key: "sub_llm_model_large", means: renamesTo("model"), doc: "model"},
	{key: "sub_llm_model_small", means: renamesTo("sub_model"), doc: "sub_model"},
	{key: "trajectory_storage", means: func(value string) map[string]string {
		if value == "process_flow" {
			value = "auto"
		}
		return map[string]string{"trace": value}
	}, doc: "trace; process_flow means auto"},
	{key: "metadata_only_root", words: onOff, means: func(value string) map[string]string {
		return map[string]string{
			"bypass": map[string]string{"true": "0", "false": strconv.FormatInt(most, 10)}[value],
		}
	}, doc: "true means bypass: 0; false means that every input that fits is asked about directly"},
	{
		key:   "trigger_on_ahe_distillation",
		means: renamesTo("trigger_on_many_traces"),
		doc:   "trigger_on_many_traces",
	},
	{
		key:   "trigger_on_kg_bulk_analysis",
		means: renamesTo("trigger_on_many_nodes"),
		doc:   "trigger_on_many_nodes",
	},
	{key: "ahe_trace_threshold", means: renamesTo("trace_threshold"), doc: "trace_threshold"},
	{key: "kg_bulk_threshold", means: renamesTo("node_threshold"), doc: "node_threshold"},
}

// foreignByKey finds a foreign name.
func foreignByKey(key string) *foreign {
	i := slices.IndexFunc(foreigners, func(f foreign) bool { return f.key == key })
	if i < 0 {
		return nil
	}
	return &foreigners[i]
}

// translate adds the meaning of a foreign name to a layer.
func (l layer) translate(f *foreign, g Given) error {
	value, isText := g.Raw.(string)
	if !isText {
		return errors.New("give one value")
	}

	if slices.Equal(f.words, onOff) {
		value = normaliseBool(value)
	}
	if f.words != nil && !slices.Contains(f.words, value) {
		return fmt.Errorf("%s: give %s", quoted(value), orList(f.words))
	}

	for key, text := range f.means(value) {
		if err := l.addValue(key, Given{Raw: text, By: g.By, Origin: g.Origin}); err != nil {
			return err
		}
	}
	return nil
}

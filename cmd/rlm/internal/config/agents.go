package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/rlmhq/rlm/repl"
)

// Agent is an entry of the setting agents.
type Agent struct {
	// Description is a sentence for the prompt of a loop that may call the agent.
	Description string `json:"description,omitempty"`
	// Instructions are the agent's system prompt.
	Instructions string `json:"instructions"`
	// Model is the agent's model; empty means the loop's.
	Model string `json:"model,omitempty"`
	// Tools are the tools that the agent may call, in its own loop. Nil means an agent without a
	// loop.
	Tools []string `json:"tools,omitzero"`
	// Contract is a type such as "list[str]", or a JSON Schema. Nil allows any answer.
	Contract json.RawMessage `json:"contract,omitempty"`
}

// agents maps names to agents; its text form is JSON.
type agents struct{ to *map[string]Agent }

func (a agents) Set(s string) error {
	all := map[string]Agent{}
	if s != "" {
		decoder := json.NewDecoder(bytes.NewReader([]byte(s)))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&all); err != nil {
			return fmt.Errorf("give a mapping of names to agents, each with instructions, and "+
				"optionally description, model, tools (a list) and contract: %w", err)
		}
	}

	for _, name := range slices.Sorted(maps.Keys(all)) {
		agent := all[name]
		switch {
		case name == "" || len(name) > 100 || (text{new(string)}).Set(name) != nil:
			return fmt.Errorf("cannot use the name %q: give 1 to 100 characters on one line", name)
		case agent.Instructions == "":
			return fmt.Errorf("agent %q has no instructions", name)
		}

		var contract bytes.Buffer // without white space, so that equal agents have equal strings
		if err := json.Compact(&contract, agent.Contract); agent.Contract != nil && err == nil {
			agent.Contract = contract.Bytes()
			all[name] = agent
		}
	}
	*a.to = all
	return nil
}

func (a agents) String() string {
	if a.to == nil || len(*a.to) == 0 {
		return ""
	}
	data, err := json.Marshal(*a.to)
	if err != nil {
		return err.Error() // for a contract that is not JSON, which Set refuses
	}
	return string(data)
}

func (a agents) Type() string { return "agents" }
func (a agents) JSON() any    { return *a.to }

// agentsText converts a mapping in a file to the text form of the setting.
func agentsText(n *yaml.Node) (string, error) {
	if n.Kind != yaml.MappingNode {
		return "", errors.New("give a mapping of names to agents")
	}
	var all map[string]any
	if err := n.Decode(&all); err != nil {
		return "", errors.New("a key in it is repeated, or not a text")
	}
	data, err := json.Marshal(all)
	if err != nil {
		return "", errors.New("a key in it is not a text")
	}
	return string(data), nil
}

// ReplAgents returns the agents of the configuration for a run.
func (c *Config) ReplAgents() map[string]repl.Agent {
	all := make(map[string]repl.Agent, len(c.Agents))
	for name, a := range c.Agents {
		all[name] = repl.Agent{
			Doc: a.Description, System: a.Instructions, Model: a.Model, Tools: a.Tools,
			Schema: a.Contract,
		}
	}
	return all
}

package connect

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/jsonrpc"
	"github.com/rlmhq/rlm/tiers"
)

// maxContexts bounds the contexts of one request.
const maxContexts = 1000

// contextParams is a context: exactly one of Path, Paths, Text and Value is set.
type contextParams struct {
	Name  string      `json:"name,omitempty" jsonschema:"a further variable for snippets"`
	Path  string      `json:"path,omitempty" jsonschema:"a file, folder, archive or address"`
	Paths []string    `json:"paths,omitempty"`
	Text  *string     `json:"text,omitempty"`
	Value jsonrpc.Raw `json:"value,omitempty" jsonschema:"plain JSON"`
}

// makeContexts makes the contexts of a request.
func (s *server) makeContexts(list []contextParams) ([]rlm.Context, error) {
	if len(list) > maxContexts {
		return nil, invalid("%d contexts are more than %d", len(list), maxContexts)
	}

	var all []rlm.Context
	for i, c := range list {
		paths := c.Paths
		if c.Path != "" {
			paths = append(slices.Clone(paths), c.Path)
		}

		forms := 0
		for _, has := range []bool{c.Path != "", len(c.Paths) > 0, c.Text != nil, c.Value != nil} {
			if has {
				forms++
			}
		}

		var made rlm.Context
		name := cmp.Or(c.Name, "value")
		switch {
		case forms != 1:
			return nil, invalid("context %d: give one of path, paths, text and value", i)
		case len(paths) > 0 && !s.options.Files:
			return nil, invalid("context %d: this connection cannot read files of the server: send the text", i)
		case len(paths) > 0:
			made = rlm.Files(s.options.Inputs, paths...)
		case c.Text != nil:
			made = rlm.Text(cmp.Or(c.Name, "text"), *c.Text)
		default:
			made = rlm.Value(name, json.RawMessage(c.Value))
		}
		all = append(all, made.As(c.Name))
	}
	return all, nil
}

// limits are those of tiers.Limits.
type limits struct {
	Wall    float64 `json:"wall_ms,omitempty"`
	Active  float64 `json:"active_ms,omitempty"`
	Memory  int64   `json:"memory_bytes,omitempty"`
	Output  int64   `json:"output_bytes,omitempty"`
	Calls   int     `json:"host_calls,omitempty"`
	AtOnce  int     `json:"host_calls_at_once,omitempty"`
	MaxFuel uint64  `json:"fuel,omitempty"`
}

func describeLimits(l tiers.Limits) limits {
	return limits{
		Wall: ms(l.Wall), Active: ms(l.Active), Memory: l.Memory, Output: l.Output,
		Calls: l.HostCalls, AtOnce: l.HostCallsAtOnce, MaxFuel: l.Fuel,
	}
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// maxTime is the longest limit of a snippet, in milliseconds: 30 days.
const maxTime = 30 * 24 * 3600 * 1000

// replace returns the limits with those that the client has set.
func (l limits) replace(base tiers.Limits) (tiers.Limits, error) {
	for _, time := range []float64{l.Wall, l.Active} {
		if time < 0 || time > maxTime || time > 0 && time < 1 {
			return base, invalid("a limit of %v ms is not between 1 and %d", time, maxTime)
		}
	}

	base.Wall = cmp.Or(time.Duration(l.Wall*1e6), base.Wall)
	base.Active = cmp.Or(time.Duration(l.Active*1e6), base.Active)
	base.Memory = cmp.Or(l.Memory, base.Memory)
	base.Output = cmp.Or(l.Output, base.Output)
	base.HostCalls = cmp.Or(l.Calls, base.HostCalls)
	base.HostCallsAtOnce = cmp.Or(l.AtOnce, base.HostCallsAtOnce)
	base.Fuel = cmp.Or(l.MaxFuel, base.Fuel)

	if err := base.Validate(); err != nil {
		return base, invalid("%v", err)
	}
	return base, nil
}

// policyParams narrow the policy of the connection.
type policyParams struct {
	Tier         string   `json:"tier,omitempty" jsonschema:"the one tier that may run snippets"`
	MinIsolation string   `json:"min_isolation,omitempty" jsonschema:"process, container, wasm or kernel"`
	AllowLocal   *bool    `json:"allow_local,omitempty"`
	Hosts        []string `json:"hosts,omitempty" jsonschema:"servers that snippets reach, as HOST:PORT"`
}

// narrow returns the policy of a session. It never has more than that of the connection.
func (s *server) narrow(p policyParams) (rlm.Policy, error) {
	policy := s.options.Policy

	if p.AllowLocal != nil {
		if *p.AllowLocal && !policy.AllowLocal {
			return policy, invalid("this connection does not allow tier local")
		}
		policy.AllowLocal = *p.AllowLocal
	}
	if p.Tier != "" {
		if err := s.checkPin(p.Tier, policy); err != nil {
			return policy, err
		}
		policy.Pin = p.Tier
	}

	if p.MinIsolation != "" {
		level := tiers.IsolationProcess
		for level <= tiers.IsolationKernel && level.String() != p.MinIsolation {
			level++
		}
		if level > tiers.IsolationKernel {
			return policy, invalid("min_isolation %.40q: give process, container, wasm or kernel", p.MinIsolation)
		}
		policy.MinIsolation = max(policy.MinIsolation, level)
	}
	for _, host := range p.Hosts {
		if !slices.Contains(policy.Hosts, host) {
			return policy, invalid("this connection does not allow the host %.200q", host)
		}
	}
	if p.Hosts != nil {
		policy.Hosts = p.Hosts
	}
	return policy, nil
}

// checkPin refuses a tier that does not exist, or that the policy does not allow.
func (s *server) checkPin(name string, policy rlm.Policy) error {
	for _, tier := range s.engine.Tiers() {
		info := tier.Info()
		if info.Name != name {
			continue
		}

		isOther := policy.Pin != "" && policy.Pin != name
		isUnnamed := len(policy.Tiers) > 0 && !slices.Contains(policy.Tiers, name)
		isClosed := info.OnRequest && !policy.AllowLocal && policy.Pin != name
		if isOther || isUnnamed || isClosed || info.Isolation < policy.MinIsolation {
			return invalid("this connection does not allow tier %s", name)
		}
		return nil
	}
	return invalid("there is no tier %.40q", name)
}

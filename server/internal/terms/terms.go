// Package terms defines what a client may request for a session, within the server's limits and
// tiers. The session protocol and the native API share it.
package terms

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/tiers"
)

// Limits are the wire format of tiers.Limits. A zero field means the server's limit.
type Limits struct {
	Wall    float64 `json:"wall_ms,omitempty"`
	Active  float64 `json:"active_ms,omitempty"`
	Memory  int64   `json:"memory_bytes,omitempty"`
	Output  int64   `json:"output_bytes,omitempty"`
	Calls   int     `json:"host_calls,omitempty"`
	AtOnce  int     `json:"host_calls_at_once,omitempty"`
	MaxFuel uint64  `json:"fuel,omitempty"`
}

// Describe returns limits in the wire format.
func Describe(l tiers.Limits) Limits {
	return Limits{
		Wall: ms(l.Wall), Active: ms(l.Active), Memory: l.Memory, Output: l.Output,
		Calls: l.HostCalls, AtOnce: l.HostCallsAtOnce, MaxFuel: l.Fuel,
	}
}

func ms(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// maxTime is the highest time limit of a snippet, in milliseconds: 30 days.
const maxTime = 30 * 24 * 3600 * 1000

// Replace returns base with the client's limits applied.
func (l *Limits) Replace(base tiers.Limits) (tiers.Limits, error) {
	for _, time := range []float64{l.Wall, l.Active} {
		if time < 0 || time > maxTime || time > 0 && time < 1 {
			return base, fmt.Errorf("a limit of %v ms is not between 1 and %d", time, maxTime)
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
		return base, err
	}
	return base, nil
}

// Within is like Replace, for a client that must not exceed the server's limits.
func (l *Limits) Within(most tiers.Limits) (tiers.Limits, error) {
	got, err := l.Replace(most)
	if err != nil {
		return got, err
	}
	have, bound := got.WithDefaults(), most.WithDefaults()
	for _, one := range []struct {
		name      string
		has, most int64
	}{
		{"wall_ms", have.Wall.Milliseconds(), bound.Wall.Milliseconds()},
		{"active_ms", have.Active.Milliseconds(), bound.Active.Milliseconds()},
		{"memory_bytes", have.Memory, bound.Memory},
		{"output_bytes", have.Output, bound.Output},
		{"host_calls", int64(have.HostCalls), int64(bound.HostCalls)},
		{"host_calls_at_once", int64(have.HostCallsAtOnce), int64(bound.HostCallsAtOnce)},
	} {
		if one.has > one.most {
			return got, fmt.Errorf("%s: this server allows %d", one.name, one.most)
		}
	}

	if have.Fuel > bound.Fuel {
		return got, fmt.Errorf("fuel: this server allows %d", bound.Fuel)
	}
	return got, nil
}

// Policy is a client's restriction of the server's policy.
type Policy struct {
	Tier         string   `json:"tier,omitempty" jsonschema:"the one tier that may run snippets"`
	MinIsolation string   `json:"min_isolation,omitempty" jsonschema:"process, container, wasm or kernel"`
	AllowLocal   *bool    `json:"allow_local,omitempty"`
	Hosts        []string `json:"hosts,omitempty" jsonschema:"servers that snippets reach, as HOST:PORT"`
}

// Narrow returns the policy of a session, which never allows more than the given policy.
func (p *Policy) Narrow(policy rlm.Policy, all []tiers.Tier) (rlm.Policy, error) {
	if p.AllowLocal != nil {
		if *p.AllowLocal && !policy.AllowLocal {
			return policy, fmt.Errorf("this server does not allow tier local")
		}
		policy.AllowLocal = *p.AllowLocal
	}
	if p.Tier != "" {
		if err := checkPin(p.Tier, policy, all); err != nil {
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
			return policy, fmt.Errorf("min_isolation %.40q: give process, container, wasm or kernel", p.MinIsolation)
		}
		policy.MinIsolation = max(policy.MinIsolation, level)
	}
	for _, host := range p.Hosts {
		if !slices.Contains(policy.Hosts, host) {
			return policy, fmt.Errorf("this server does not allow the host %.200q", host)
		}
	}
	if p.Hosts != nil {
		policy.Hosts = p.Hosts
	}
	return policy, nil
}

// checkPin refuses a tier that does not exist or that the policy forbids.
func checkPin(name string, policy rlm.Policy, all []tiers.Tier) error {
	for _, tier := range all {
		info := tier.Info()
		if info.Name != name {
			continue
		}

		isOther := policy.Pin != "" && policy.Pin != name
		isUnnamed := len(policy.Tiers) > 0 && !slices.Contains(policy.Tiers, name)
		isClosed := info.OnRequest && !policy.AllowLocal && policy.Pin != name
		if isOther || isUnnamed || isClosed || info.Isolation < policy.MinIsolation {
			return fmt.Errorf("this server does not allow tier %s", name)
		}
		return nil
	}
	return fmt.Errorf("there is no tier %.40q", name)
}

// Tier describes a tier.
type Tier struct {
	Name      string           `json:"name"`
	Isolation string           `json:"isolation"`
	Languages []tiers.Language `json:"languages"`
	OnRequest bool             `json:"on_request,omitempty" jsonschema:"whether the policy must allow it"`
}

// List describes tiers.
func List(all []tiers.Tier) []Tier {
	list := make([]Tier, 0, len(all))
	for _, tier := range all {
		info := tier.Info()
		list = append(list, Tier{info.Name, info.Isolation.String(), info.Languages, info.OnRequest})
	}
	return list
}

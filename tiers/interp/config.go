package interp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rlmhq/rlm/internal/gohost"
	"github.com/rlmhq/rlm/internal/gorun"
	"github.com/rlmhq/rlm/internal/protocol"
	"github.com/rlmhq/rlm/tiers"
)

// newSandbox checks a configuration and returns a sandbox without a worker.
func newSandbox(ctx context.Context, p *pool, cfg tiers.Config) (*sandbox, error) {
	if err := cfg.Limits.Validate(); err != nil {
		return nil, err
	}
	if f := cfg.Limits.Fuel; f != 0 && f != tiers.DefaultLimits().Fuel {
		return nil, reject(string(tiers.FeatureFuel), "it does not count fuel")
	}
	s := &sandbox{pool: p, host: gohost.NewSession(cfg)}
	s.setup.Memory = s.host.Config.Limits.Memory
	for _, f := range cfg.Functions {
		if err := protocol.CheckName(f.Name); err != nil {
			return nil, err
		}
		s.setup.Functions = append(s.setup.Functions, f.Name)
	}
	for i, in := range cfg.Inputs {
		message, err := inputMessage(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("cannot use input %d (%s): %w", i, in.Name, err)
		}
		s.setup.Inputs = append(s.setup.Inputs, message)
	}
	s.enforced = enforced(s.host.Config.Limits)
	return s, nil
}

func inputMessage(ctx context.Context, in tiers.Input) (gorun.Input, error) {
	set := 0
	for _, has := range []bool{in.Text != nil, in.Dir != nil, in.Value != nil} {
		if has {
			set++
		}
	}
	switch {
	case set != 1:
		return gorun.Input{}, errors.New("set exactly one of Text, Dir and Value")
	case in.Dir != nil:
		return gorun.Input{}, reject("directory inputs", "it has no directories as inputs")
	case in.Value != nil && !json.Valid(in.Value):
		return gorun.Input{}, errors.New("its value is not JSON")
	}
	return gohost.Input(ctx, in)
}

// enforced says how each limit is kept.
func enforced(l tiers.Limits) []tiers.Enforcement {
	return []tiers.Enforcement{
		{Limit: tiers.LimitWall, Value: l.Wall.String(), Mechanism: "the host's clock, every 20 ms; kill"},
		{Limit: tiers.LimitActive, Value: l.Active.String(), Mechanism: "the jail's processor time, every 20 ms, or the host's clock; kill"},
		{Limit: tiers.LimitMemory, Value: fmt.Sprintf("%d bytes", l.Memory), Mechanism: "the jail's limit, with 64 MiB for the worker itself; kill"},
		{Limit: tiers.LimitOutput, Value: fmt.Sprintf("%d bytes", l.Output), Mechanism: "the host counts and drops the rest"},
		{Limit: tiers.LimitHostCalls, Value: fmt.Sprint(l.HostCalls), Mechanism: "the host counts and refuses"},
	}
}

//go:build linux && (amd64 || arm64)

package jail

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Time limits, far above the times on a healthy machine.
const (
	startTimeout = 30 * time.Second
	stopTimeout  = 10 * time.Second
)

// insideUID is the guest's user ID and group ID inside the jail.
const insideUID = 65532

// nestable lists the layers whose absence reduces class Full to Nested.
const nestable = Namespaces | Mounts | Network

// Start starts a jail. It returns once the guest has attested every layer that the class promises,
// which is when the guest begins. The end of the context kills the jail.
//
// Start fails closed: it starts no process if a promised layer is missing. Class Full promises
// every layer except Cgroup, which needs root or delegation. Without a cgroup, the init samples the
// memory of the tree, and Limits.AddressSpace bounds each process. The samples miss some of the
// kernel's memory, so Start then refuses all profiles except Compute, unless Config.AllowSampled is
// set. The default of AddressSpace is Memory plus 4 GiB, because every guest begins with the Go
// runtime, which reserves far more than it uses.
//
// The caller must always call Kill.
func Start(ctx context.Context, cfg Config) (*Process, error) {
	return startFailing(ctx, cfg, "")
}

// startFailing is like Start, but a step fails, for tests. If step is empty, no step fails.
func startFailing(ctx context.Context, cfg Config, step string) (*Process, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("cannot start a jail: %w", err)
	}

	if cfg.Off&Namespaces == 0 {
		p, err := launch(ctx, plan{Config: cfg, Class: Full, FailAt: step})
		l, ok := errors.AsType[*layerError](err)
		if err == nil || cfg.MinClass == Full || !ok || l.layer&nestable == 0 {
			return p, err
		}
	}
	return launch(ctx, plan{Config: cfg, Class: Nested, FailAt: step})
}

// withDefaults completes a configuration and checks it.
func (c Config) withDefaults() (Config, error) {
	if c.Profile == "" {
		c.Profile = Compute
	}
	if c.MinClass == "" {
		c.MinClass = Full
	}
	if c.Dir == "" {
		c.Dir = "/sandbox"
	}
	c.Limits = c.Limits.withDefaults()
	return c, c.check()
}

// withDefaults replaces unset fields.
func (l Limits) withDefaults() Limits {
	fill := func(value *int64, fallback int64) {
		if *value <= 0 {
			*value = fallback
		}
	}
	fill(&l.Memory, 512<<20)
	fill(&l.FileSize, 64<<20)
	fill(&l.TmpBytes, 64<<20)
	fill(&l.TmpInodes, 4096)
	fill(&l.CPUSeconds, 3600)
	fill(&l.AddressSpace, l.Memory+4<<30)

	if l.Processes <= 0 {
		l.Processes = 128 // pools of a hundred threads are common
	}
	if l.OpenFiles <= 0 {
		l.OpenFiles = 256
	}
	return l
}

// check returns an error if the configuration contradicts itself.
func (c Config) check() error {
	switch {
	case (c.Path == "") == (c.Worker == ""):
		return errors.New("exactly one of Path and Worker must be set")
	case !slices.Contains([]Profile{Compute, Engine, Programs}, c.Profile):
		return fmt.Errorf("unknown profile %q", c.Profile)
	case c.MinClass != Full && c.MinClass != Nested:
		return fmt.Errorf("unknown class %q", c.MinClass)
	case c.Path != "" && c.Profile != Programs:
		return fmt.Errorf("program %s needs profile %s: %s cannot execute anything",
			c.Path, Programs, c.Profile)
	case c.Path != "" && (!filepath.IsAbs(c.Path) || len(c.Args) == 0):
		return fmt.Errorf("program %q must be an absolute path, with its name as first argument",
			c.Path)
	case c.Proxy && (c.Profile != Programs || c.MinClass != Full || c.Off&Network != 0):
		return fmt.Errorf("a proxy needs profile %s and class %s, which has a separate network",
			Programs, Full)
	case c.Worker != "" && !isRegistered(c.Worker):
		return fmt.Errorf("no worker is registered as %q", c.Worker)
	case c.Off != 0 && flag.Lookup("test.v") == nil:
		return errors.New("only tests may disable layers")
	}
	return nil
}

// launch starts a jail of one class. After an error, nothing of the jail remains.
func launch(ctx context.Context, pl plan) (*Process, error) {
	p := &Process{
		plan:     pl,
		output:   newTail(),
		launched: make(chan struct{}),
		done:     make(chan struct{}),
		replies:  map[int]chan struct{}{},
	}
	err := p.launch(ctx)
	close(p.launched)
	if err == nil {
		return p, nil
	}

	err = fmt.Errorf("cannot start a jail of class %s: %w", pl.Class, err)
	if text := strings.TrimSpace(string(p.output.bytes())); text != "" {
		err = fmt.Errorf("%w (it wrote %q)", err, text)
	}
	return nil, errors.Join(err, p.undoLaunch())
}

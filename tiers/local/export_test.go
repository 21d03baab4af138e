//go:build unix

package local

import (
	"context"

	"github.com/rlmhq/rlm/internal/wall/egress"
	"github.com/rlmhq/rlm/internal/wall/jail"
	"github.com/rlmhq/rlm/tiers"
)

// Tier exports the methods below to external tests.
type Tier = tier

// Without leaves out layers of the jail, for tests that prove the effect of each.
func (t *tier) Without(layers jail.Layers) { t.off = layers }

// Reach makes proxies resolve and dial as a test requires.
func (t *tier) Reach(o egress.Options) { t.reach = o }

// Bare starts the interpreter in the jail with a program of the test instead of the runtime.
func (t *tier) Bare(
	ctx context.Context, limits tiers.Limits, program string,
) (*jail.Process, error) {
	python, err := t.interpreter(ctx)
	if err != nil {
		return nil, err
	}
	return jail.Start(ctx, t.jailFor(python, needs{limits: limits}, program))
}

// Kept counts the processes that wait for a session.
func (t *tier) Kept() int { return len(t.ready) }

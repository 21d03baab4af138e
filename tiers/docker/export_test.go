package docker

import (
	"context"
	"errors"

	"github.com/rlmhq/rlm/internal/wall/dockerapi"
	"github.com/rlmhq/rlm/internal/wall/egress"
	"github.com/rlmhq/rlm/tiers"
)

// Tier exports the methods below to external tests.
type Tier = tier

// Reach makes proxies resolve and dial as a test requires.
func (t *tier) Reach(o egress.Options) { t.reach = o }

// Without leaves out layers of the wall, for tests that prove the effect of each.
func (t *tier) Without(layers []dockerapi.Layer) { t.off = layers }

// StartBetween starts a container with mounts. It calls between after the tier has checked them and
// before the daemon mounts them.
func (t *tier) StartBetween(ctx context.Context, mounts []tiers.Mount, between func()) error {
	files, _ := show(nil)
	if err := files.mount(mounts); err != nil {
		return err
	}
	between()
	p, err := t.start(ctx, needs{limits: tiers.DefaultLimits(), files: files})
	if p != nil {
		err = errors.Join(err, p.Close())
	}
	return err
}

// ContainerOf returns the container of a sandbox, or "" if it has none.
func ContainerOf(b tiers.Sandbox) string {
	if s, ok := b.(*sandbox); ok {
		if p, ok := s.python.Process().(*process); ok {
			return p.box.ID
		}
	}
	return ""
}

// Waiting returns the containers started in advance. No sandbox may be opened during the call.
func (t *tier) Waiting() []string {
	var ids []string
	for range len(t.pool.ready) {
		p := <-t.pool.ready
		ids = append(ids, p.box.ID)
		t.pool.ready <- p
	}
	return ids
}

// RemoveAbandoned removes the containers of dead programs and returns their number.
func (t *tier) RemoveAbandoned(ctx context.Context) (int, error) { return t.removeAbandoned(ctx) }

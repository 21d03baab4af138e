package docker

import (
	"context"
	"errors"
	"time"

	"github.com/rlmhq/rlm/internal/wall/dockerapi"
	"github.com/rlmhq/rlm/internal/wall/egress"
	"github.com/rlmhq/rlm/tiers"
)

// Tier gives the tests of the package's users the methods below.
type Tier = tier

// Reach makes proxies resolve and dial as a test wants.
func (t *tier) Reach(o egress.Options) { t.reach = o }

// Without leaves layers of the wall out, for tests that prove what each is good for.
func (t *tier) Without(layers []dockerapi.Layer) { t.off = layers }

// StartBetween starts a container with mounts, and does something after they were
// looked at and before the daemon mounts them.
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

// ContainerOf is the container of a sandbox, empty if it has none.
func ContainerOf(b tiers.Sandbox) string {
	if s, ok := b.(*sandbox); ok {
		if p, ok := s.python.Process().(*process); ok {
			return p.box.ID
		}
	}
	return ""
}

// Waiting are the containers that were started ahead. Nobody may open sandboxes
// meanwhile.
func (t *tier) Waiting() []string {
	var ids []string
	for range len(t.pool.ready) {
		p := <-t.pool.ready
		ids = append(ids, p.box.ID)
		t.pool.ready <- p
	}
	return ids
}

// BuildIn bounds compilations by another time.
func (t *tier) BuildIn(d time.Duration) { t.buildIn = d }

// RemoveAbandoned removes the containers of dead programs and returns their number.
func (t *tier) RemoveAbandoned(ctx context.Context) (int, error) { return t.removeAbandoned(ctx) }

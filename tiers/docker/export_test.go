package docker

import (
	"time"

	"github.com/rlmhq/rlm/internal/daemon"
	"github.com/rlmhq/rlm/internal/egress"
)

// Reach makes proxies resolve and dial as a test wants.
func (t *Tier) Reach(o egress.Options) { t.reach = o }

// Without leaves layers of the wall out, for tests that prove what each is good for.
func (t *Tier) Without(layers []daemon.Layer) { t.off = layers }

// BuildIn bounds compilations by another time.
func (t *Tier) BuildIn(d time.Duration) { t.buildIn = d }

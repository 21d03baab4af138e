package local

import (
	"github.com/rlmhq/rlm/internal/egress"
	"github.com/rlmhq/rlm/internal/jail"
)

// Without leaves layers of the jail out, for tests that prove what each is good
// for.
func (t *Tier) Without(layers jail.Layers) { t.off = layers }

// Reach makes proxies resolve and dial as a test wants.
func (t *Tier) Reach(o egress.Options) { t.reach = o }

package docker

import "github.com/rlmhq/rlm/internal/egress"

// Reach makes proxies resolve and dial as a test wants.
func (t *Tier) Reach(o egress.Options) { t.reach = o }

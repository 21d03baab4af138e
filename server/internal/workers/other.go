//go:build !linux || (!amd64 && !arm64)

package workers

import (
	"errors"

	"github.com/rlmhq/rlm/tiers"
)

// New returns an error, because jails require Linux.
func New(tiers.Tier, Options) (Tier, error) {
	return nil, errors.New("workers need the jails of Linux on amd64 or arm64")
}

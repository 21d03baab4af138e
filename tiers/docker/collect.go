package docker

import (
	"context"

	"github.com/rlmhq/rlm/internal/python/pykernel"
	"github.com/rlmhq/rlm/internal/snippet/outfiles"
	"github.com/rlmhq/rlm/tiers"
)

// Collect copies the files below /out into a folder of the host.
func (s *sandbox) Collect(ctx context.Context, dir string) (tiers.Collected, error) {
	leave, err := s.Enter()
	if err != nil {
		return tiers.Collected{}, err
	}
	defer leave()
	made, err := s.golang.Collect(ctx, dir)
	if err != nil || s.started == 0 {
		return made, err
	}
	got, err := pykernel.Collect(s.Accounts.Config(), dir, s.started > 1,
		func(limits tiers.Limits, source string) (tiers.Result, error) {
			return s.python.RunAside(ctx, limits, source)
		})
	return outfiles.Join(made, got), err
}

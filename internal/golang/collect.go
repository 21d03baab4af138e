package golang

import (
	"cmp"
	"context"
	"errors"

	"github.com/rlmhq/rlm/internal/snippet/outfiles"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/tiers"
)

// packSource is a snippet that writes the files below /out to standard output, as a tar stream.
const packSource = `import (
	rlmtar "archive/tar"
	rlmio "io"
	rlmfs "io/fs"
	rlmos "os"
)

func() {
	pack := rlmtar.NewWriter(rlmos.NewFile(1, "stdout"))
	err := rlmfs.WalkDir(rlmos.DirFS("/out"), ".", func(name string, entry rlmfs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() && !info.IsDir() {
			return err
		}
		head, err := rlmtar.FileInfoHeader(info, "")
		if err != nil {
			return err
		}
		head.Name = name
		if err := pack.WriteHeader(head); err != nil || info.IsDir() {
			return err
		}
		file, err := rlmos.Open("/out/" + name)
		if err != nil {
			return err
		}
		defer file.Close()
		_, err = rlmio.CopyN(pack, file, info.Size())
		return err
	})
	if err == nil {
		err = pack.Close()
	}
	if err != nil {
		panic(err)
	}
}()`

// Collect copies the files below /out into a folder of the host. It runs the session's program
// again, so that the snippets write the files again. A session without Go snippets has no files.
func (g *Guest) Collect(ctx context.Context, dir string) (tiers.Collected, error) {
	if g.wall == nil || len(g.history.Past()) == 0 {
		return tiers.Collected{}, nil
	}
	cfg := g.Accounts.Config()
	return outfiles.Collect(&cfg, dir, func(limits tiers.Limits) (tiers.Result, error) {
		return g.runAside(ctx, limits, packSource)
	})
}

// runAside runs a snippet that is not part of the session, and whose use is not added to the
// session's accounts.
func (g *Guest) runAside(ctx context.Context, limits tiers.Limits, source string) (tiers.Result, error) {
	own, err := session.NewAccounts(ctx, tiers.Config{Limits: limits})
	if err != nil {
		return tiers.Result{}, err
	}
	program, _, err := g.build(ctx, source)
	if err != nil {
		return tiers.Result{}, err
	}

	g.current = program
	defer g.discard()
	if lost, err := g.replay(ctx); err != nil || lost != nil {
		return tiers.Result{}, cmp.Or(err, errors.New("the snippets gave other results when they ran again"))
	}
	if err := own.Begin(ctx, tiers.Job{}); err != nil {
		return tiers.Result{}, err
	}
	done, err := g.current.run(own, len(g.history.Past())+1, g.about)
	if err != nil {
		done.Code = session.Died
	}
	return own.End(done.Code), context.Cause(ctx)
}

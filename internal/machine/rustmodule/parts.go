package rustmodule

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"

	"github.com/rlmhq/rlm/internal/machine/attached"
	"github.com/rlmhq/rlm/internal/machine/codecache"
)

// linked contains the modules of this program.
var linked []Files

// Link adds a module to those that Parts compiles. It is for the initialisation of packages.
func Link(f Files) Files {
	linked = append(linked, f)
	return f
}

// Parts compiles the linked modules, and returns their code as parts for [attached.Write]. The
// cache directory keeps the code for the next call.
func Parts(ctx context.Context, cacheDir string) ([]attached.New, error) {
	parts, errs := make([]attached.New, len(linked)), make([]error, len(linked))
	var group sync.WaitGroup
	for i, f := range linked {
		group.Go(func() { parts[i], errs[i] = f.part(ctx, cacheDir) })
	}
	group.Wait()

	return parts, errors.Join(errs...)
}

func (f Files) part(ctx context.Context, cacheDir string) (attached.New, error) {
	log := slog.New(slog.DiscardHandler)
	module, err := Compile(ctx, f, Options{CacheDir: cacheDir, Log: log})
	if err != nil {
		return attached.New{}, err
	}
	if err := module.Close(); err != nil {
		return attached.New{}, err
	}

	var m Manifest
	if err := json.Unmarshal(f.Manifest, &m); err != nil {
		return attached.New{}, err
	}

	cache, err := codecache.Look(cacheDir, log)
	if err != nil {
		return attached.New{}, err
	}
	return cache.Part(m.Module.SHA256)
}

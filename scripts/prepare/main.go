// Command prepare writes the files tiers/wasm/prepared.*, with which a program starts without
// preparing Python. With -check, it only compares the files.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rlmhq/rlm/internal/plan/analyser/python"
	"github.com/rlmhq/rlm/tiers/wasm"
)

const folder = "tiers/wasm"

func main() {
	check := flag.Bool("check", false, "compare the files instead of writing them")
	flag.Parse()
	if err := prepare(context.Background(), *check); err != nil {
		fmt.Fprintln(os.Stderr, "prepare:", err)
		os.Exit(1)
	}
}

func prepare(ctx context.Context, check bool) error {
	about, data, err := difference(ctx, wasm.Options{})
	if err != nil {
		return err
	}

	var errs []error
	for name, content := range map[string][]byte{"prepared.json": about, "prepared.zst": data} {
		path := filepath.Join(folder, name)
		if check {
			errs = append(errs, compare(path, content))
		} else {
			errs = append(errs, os.WriteFile(path, content, 0o644)) //nolint:gosec // it is source
		}
	}
	return errors.Join(errs...)
}

// difference prepares the image with which the engine of package rlm starts.
func difference(ctx context.Context, o wasm.Options) (about, data []byte, err error) {
	o.CacheDir, o.Preload = "none", python.Preload()
	tier := wasm.New(o)
	defer func() { _ = tier.Close() }() // only the files matter
	return tier.(interface {
		Difference(ctx context.Context) (about, data []byte, err error)
	}).Difference(ctx)
}

func compare(path string, want []byte) error {
	got, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("%s is not what its sources give: run make image", path)
	}
	return nil
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/tiers"
)

// files are the flags about files of the host that a snippet reads, and about its
// own that come back.
type files struct {
	mounts []string
	out    string
}

func (f *files) add(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.mounts, "mount", nil,
		"file or folder to show, as `SRC:DST`, read-only (tier docker); may be repeated")

	flags.StringVar(&f.out, "out", "",
		"empty or new `folder` for the files that snippets write below /out (tier docker)")
}

// check makes the folder for the files that come back, before anything runs for them.
func (f *files) check() error {
	if f.out == "" {
		return nil
	}
	err := os.MkdirAll(f.out,
		0o755) //nolint:gosec // as every program makes them; the umask decides

	if err == nil {
		var entries []os.DirEntry
		if entries, err = os.ReadDir(f.out); err == nil && len(entries) > 0 {
			err = errors.New("it is not empty")
		}
	}

	if err != nil {
		return fmt.Errorf("--out %s: %w", f.out, err)
	}
	return nil
}

// mounted reads the mounts: SRC:DST, or SRC:DST:ro.
func (f *files) mounted() ([]tiers.Mount, error) {
	var list []tiers.Mount
	for _, given := range f.mounts {
		text, mode := given, "ro"
		if head, last, found := cutLast(given); found && !strings.Contains(last, "/") &&
			strings.Contains(head, ":") {
			text, mode = head, last
		}

		source, target, found := cutLast(text)
		switch {
		case mode != "ro":
			return nil, fmt.Errorf(
				"--mount %s: what is mounted can only be read (ro); files come back by --out",
				given,
			)
		case !found || source == "" || target == "":
			return nil, fmt.Errorf(
				"--mount %s: give a file or folder and where snippets find it, such as ./data:/data",
				given,
			)
		}

		absolute, err := filepath.Abs(source)
		if err != nil {
			return nil, fmt.Errorf("--mount %s: %w", given, err)
		}
		if _, err := os.Stat(absolute); err != nil {
			return nil, fmt.Errorf("--mount %s: %w", given, err)
		}

		list = append(list, tiers.Mount{Source: absolute, Target: target})
	}

	return list, nil
}

func cutLast(text string) (head, last string, found bool) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}

// collect brings the files back, however the snippets ended; ended is how. An
// interrupt has ended the snippets, not this: the tier bounds how long it takes.
func (f *files) collect(
	ctx context.Context, s *rlm.Session, note func(string, ...any), ended error,
) error {
	if f.out == "" {
		return ended
	}
	got, err := s.Files(context.WithoutCancel(ctx), f.out)
	for _, why := range got.Refused {
		note("not collected: %s", why)
	}

	if got.Lost != "" {
		note("not collected: %s", got.Lost)
	}
	if err == nil {
		note("collected %s with %s in %s", english.Plural(got.Files, "file", ""),
			english.Plural(int(got.Bytes), "byte", ""), printable(f.out))
		return ended
	}

	if ended != nil {
		note("%v", err)
		return ended
	}
	return &exitError{exitBroken, err}
}

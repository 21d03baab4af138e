package wiring

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/tiers"
)

// FileFlags are the flags for files that a snippet reads from the host or returns.
type FileFlags struct {
	mounts []string
	Out    string
}

// Add adds the flags.
func (f *FileFlags) Add(flags *pflag.FlagSet) {
	f.AddMount(flags)
	f.AddOut(flags)
}

// AddMount adds the flag --mount.
func (f *FileFlags) AddMount(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.mounts, "mount", nil,
		"host file or folder to mount read-only, as `SRC:DST` (tier docker); repeatable")
}

// AddOut adds the flag --out.
func (f *FileFlags) AddOut(flags *pflag.FlagSet) {
	flags.StringVar(&f.Out, "out", "",
		"empty or new `folder` for figures, and for the files that snippets write below /out")
}

// MakeOutFolder creates the folder of --out, so that an unusable folder is an error before any code
// runs.
func (f *FileFlags) MakeOutFolder() error {
	if f.Out == "" {
		return nil
	}
	err := os.MkdirAll(f.Out, 0o755) //nolint:gosec // the umask decides

	if err == nil {
		var entries []os.DirEntry
		if entries, err = os.ReadDir(f.Out); err == nil && len(entries) > 0 {
			err = errors.New("the folder is not empty")
		}
	}

	if err != nil {
		return fmt.Errorf("--out %s: %w", f.Out, err)
	}
	return nil
}

// ParseMounts parses the flags --mount: SRC:DST, or SRC:DST:ro.
func (f *FileFlags) ParseMounts() ([]tiers.Mount, error) {
	var list []tiers.Mount
	for _, given := range f.mounts {
		text, mode := given, "ro"
		mount, last, found := cutLastColon(given)
		if found && !strings.Contains(last, "/") && strings.Contains(mount, ":") {
			text, mode = mount, last
		}

		source, target, found := cutLastColon(text)
		switch {
		case mode != "ro":
			return nil, fmt.Errorf("--mount %s: mounts are read-only (ro); "+
				"snippets write files below /out, see --out", given)
		case !found || source == "" || target == "":
			return nil, fmt.Errorf("--mount %s: give a file or folder and its place in the "+
				"sandbox, such as ./data:/data", given)
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

func cutLastColon(text string) (head, last string, found bool) {
	i := strings.LastIndexByte(text, ':')
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+1:], true
}

// Collect copies the files from the sandbox after the snippets ended with the error ended. It
// ignores an interrupt, which was meant for the snippets. The tier bounds the time of the copying.
func (f *FileFlags) Collect(
	ctx context.Context, s *rlm.Session, note func(string, ...any), ended error,
) error {
	if f.Out == "" {
		return ended
	}
	got, err := s.Files(context.WithoutCancel(ctx), f.Out)
	if err == nil {
		f.Tell(got, note)
		return ended
	}

	if ended != nil {
		note("%v", err)
		return ended
	}
	return cli.Broken(err)
}

// Tell reports which files were copied.
func (f *FileFlags) Tell(got tiers.Collected, note func(string, ...any)) {
	for _, why := range got.Refused {
		note("not collected: %s", why)
	}
	if got.Lost != "" {
		note("not collected: %s", got.Lost)
	}
	if got.Files == 0 {
		made, err := os.ReadDir(f.Out) // figures are saved as soon as they are made
		if err != nil || len(made) == 0 {
			note("no files below %s to collect", tiers.OutFolder)
		}
		return
	}
	note("collected %s with %s in %s", quantity.Plural(got.Files, "file", ""),
		quantity.Plural(got.Bytes, "byte", ""), cli.Escape(f.Out))
}

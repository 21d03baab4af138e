package docker

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/daemon"
	"github.com/rlmhq/rlm/internal/pykernel"
	"github.com/rlmhq/rlm/tiers"
)

// show returns the mounts that let a guest read the files of long texts, and where
// it finds the file of each input, empty where it does not.
func show(inputs []tiers.Input) ([]daemon.Mount, []string) {
	paths := make([]string, len(inputs))
	var mounts []daemon.Mount
	for i, in := range inputs {
		if source := pykernel.FileOf(in, true); source != "" {
			paths[i] = fmt.Sprintf("/context/%d", i)
			mounts = append(mounts, daemon.Mount{Source: source, Target: paths[i]})
		}
	}
	return mounts, paths
}

// hidden are where nothing may be mounted: it would stand before what the container
// is made of, or what the tier mounts itself.
var hidden = []string{"/", "/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr", "/context", "/egress", "/out", "/tmp", "/sandbox"}

// secret are files of the host that would give a snippet the host, or other
// processes of it.
var secret = []string{"/", "/boot", "/dev", "/etc", "/proc", "/root", "/run", "/sys", "/var/lib/docker", "/var/run"}

// checkMounts looks whether what the caller wants to show may be shown. Sources are
// followed to where they really lie.
func checkMounts(list []tiers.Mount) ([]daemon.Mount, error) {
	var mounts []daemon.Mount
	taken := map[string]bool{}
	for _, m := range list {
		if !path.IsAbs(m.Target) || path.Clean(m.Target) != m.Target || within(m.Target, hidden) {
			return nil, fmt.Errorf("cannot mount %s at %q: give an absolute path of its own, such as /data", m.Source, m.Target)
		}
		if taken[m.Target] {
			return nil, fmt.Errorf("cannot mount two things at %s", m.Target)
		}
		taken[m.Target] = true
		source, err := filepath.EvalSymlinks(m.Source)
		if err == nil {
			source, err = filepath.Abs(source)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot mount %s: %w", m.Source, err)
		}
		info, err := os.Lstat(source)
		if err != nil {
			return nil, fmt.Errorf("cannot mount %s: %w", m.Source, err)
		}
		if !info.IsDir() && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("cannot mount %s: it is neither a file nor a folder", m.Source)
		}
		if within(source, secret) {
			return nil, fmt.Errorf("cannot mount %s: it belongs to the system of the host", m.Source)
		}
		mounts = append(mounts, daemon.Mount{Source: source, Target: m.Target})
	}
	return mounts, nil
}

// within reports whether a path is one of the folders or lies in one; the root has
// everything in it and only counts itself.
func within(name string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		return name == folder || folder != "/" && strings.HasPrefix(name, folder+"/")
	})
}

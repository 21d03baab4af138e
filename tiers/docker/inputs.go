package docker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/wall/dockerapi"
	"github.com/rlmhq/rlm/tiers"
)

// shown lists the host files that a container can read.
type shown struct {
	mounts []dockerapi.Mount
	// folders reports whether mounts contains folders.
	folders bool
	// inodes are the inodes of the checked files, by mount point. The daemon resolves paths
	// again, and in the meantime another file may have been put there.
	inodes map[string][]uint64
}

func (s *shown) add(source, target string, info fs.FileInfo) {
	s.mounts = append(s.mounts, dockerapi.Mount{Source: source, Target: target})
	if at := inode(info); at != nil {
		s.inodes[target] = at
	}
}

// with returns a copy that also shows a folder of the tier. That folder needs no check: only the
// tier writes to it.
func (s *shown) with(source, target string) *shown {
	all := *s
	all.mounts = append(slices.Clone(s.mounts), dockerapi.Mount{Source: source, Target: target})
	return &all
}

// show returns the mounts for the files of long texts, and the path of each input's file in the
// guest, or "" for inputs without one.
func show(inputs []tiers.Input) (*shown, []string) {
	all, paths := &shown{inodes: map[string][]uint64{}}, make([]string, len(inputs))
	for i, in := range inputs {
		source := session.FileOf(in, true)
		text, mapped := in.Text.(interface{ File() *os.File })
		if source == "" || !mapped {
			continue
		}
		if info, err := text.File().Stat(); err == nil { // otherwise the host serves the text
			paths[i] = fmt.Sprintf("/context/%d", i)
			all.add(source, paths[i], info)
		}
	}

	return all, paths
}

// hidden holds the paths at which nothing may be mounted. A mount would hide the container's system
// or the tier's own mounts.
var hidden = []string{
	"/", "/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr", "/context",
	"/egress", "/out", "/tmp", "/sandbox",
}

// secret holds host folders that would give a snippet control over the host or its processes.
var secret = []string{
	"/", "/boot", "/dev", "/etc", "/proc", "/root", "/run", "/sys", "/var/lib/docker", "/var/run",
}

// maxMounts bounds the mounts of a session.
const maxMounts = 100

// mount adds the caller's mounts after a check. It resolves the links of sources.
func (s *shown) mount(list []tiers.Mount) error {
	if len(list) > maxMounts {
		return fmt.Errorf("cannot mount %d files and folders: the maximum is %d", len(list), maxMounts)
	}
	taken := map[string]bool{}
	for _, m := range list {
		if !path.IsAbs(m.Target) || path.Clean(m.Target) != m.Target || within(m.Target, hidden) ||
			strings.ContainsFunc(m.Target, unprintable) {
			return fmt.Errorf(
				"cannot mount %s at %q: give an absolute path such as /data", m.Source,
				m.Target,
			)
		}

		if taken[m.Target] {
			return fmt.Errorf("cannot mount two files or folders at %s", m.Target)
		}
		taken[m.Target] = true
		source, info, err := resolve(m.Source)
		if err != nil {
			return fmt.Errorf("cannot mount %s: %w", m.Source, err)
		}

		s.folders = s.folders || info.IsDir()
		s.add(source, m.Target, info)
	}

	return nil
}

func unprintable(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }

// resolve follows the links of a source and checks that snippets may read it.
func resolve(name string) (string, fs.FileInfo, error) {
	source, err := filepath.EvalSymlinks(name)
	if err == nil {
		source, err = filepath.Abs(source)
	}
	if err != nil {
		return "", nil, err
	}

	info, err := os.Lstat(source)
	switch {
	case err != nil:
		return "", nil, err
	case !info.IsDir() && !info.Mode().IsRegular():
		return "", nil, errors.New("it is neither a file nor a folder")
	case within(source, secret):
		return "", nil, errors.New("it is one of the host's system folders")
	case info.IsDir():
		return source, info, checkFolder(source)
	}

	return source, info, nil
}

// maxEntries bounds the check of a folder.
const maxEntries = 1_000_000

// checkFolder rejects a folder with an entry that leads to host programs even if it is mounted
// read-only: a socket or pipe that all users may open, or a device.
func checkFolder(folder string) error {
	entries := 0
	return filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrPermission) && d != nil && isClosed(d):
			return fs.SkipDir // to snippets, too
		case errors.Is(err, fs.ErrNotExist) && name != folder:
			return nil // another program has removed it in the meantime
		}
		if err != nil {
			return err
		}
		if entries++; entries > maxEntries {
			return fmt.Errorf("it has more than %d entries: mount a folder below it", maxEntries)
		}
		if d.IsDir() || d.Type().IsRegular() || d.Type() == fs.ModeSymlink {
			return nil
		}

		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().Perm()&0o006 == 0 {
			return nil
		}
		if err != nil {
			return err
		}

		return fmt.Errorf(
			"%s is a socket, a pipe or a device, through which snippets could reach the host: "+
				"mount a folder without it",
			name,
		)
	})
}

// isClosed reports whether a folder is closed to other users.
func isClosed(d fs.DirEntry) bool {
	info, err := d.Info()
	return err == nil && info.Mode().Perm()&0o001 == 0
}

// within reports whether a path is one of the folders or below one. The root folder matches only
// itself.
func within(name string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		return name == folder || folder != "/" && strings.HasPrefix(name, folder+"/")
	})
}

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

	"github.com/rlmhq/rlm/internal/dockerapi"
	"github.com/rlmhq/rlm/internal/session"
	"github.com/rlmhq/rlm/tiers"
)

// shown is what a container sees of the host's files.
type shown struct {
	mounts []dockerapi.Mount
	// folders says that there are folders among them.
	folders bool
	// inodes are what was looked at, by where it must be mounted: the daemon follows
	// paths once more, and somebody may have put something else there meanwhile.
	inodes map[string][]uint64
}

func (s *shown) add(source, target string, info fs.FileInfo) {
	s.mounts = append(s.mounts, dockerapi.Mount{Source: source, Target: target})
	if at := inode(info); at != nil {
		s.inodes[target] = at
	}
}

// with is what is shown and a folder of the tier's own, in which there is nothing to
// connect to and nothing that others could have put there.
func (s *shown) with(source, target string) *shown {
	all := *s
	all.mounts = append(slices.Clone(s.mounts), dockerapi.Mount{Source: source, Target: target})
	return &all
}

// show returns what lets a guest read the files of long texts, and where it finds
// the file of each input, empty where it does not.
func show(inputs []tiers.Input) (*shown, []string) {
	all, paths := &shown{inodes: map[string][]uint64{}}, make([]string, len(inputs))
	for i, in := range inputs {
		source := session.FileOf(in, true)
		text, mapped := in.Text.(interface{ File() *os.File })
		if source == "" || !mapped {
			continue
		}
		if info, err := text.File().Stat(); err == nil { // it could, a moment ago
			paths[i] = fmt.Sprintf("/context/%d", i)
			all.add(source, paths[i], info)
		}
	}

	return all, paths
}

// hidden are where nothing may be mounted: it would stand before what the container
// is made of, or what the tier mounts itself.
var hidden = []string{
	"/", "/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr", "/context",
	"/egress", "/out", "/tmp", "/sandbox",
}

// secret are files of the host that would give a snippet the host, or other
// processes of it.
var secret = []string{
	"/", "/boot", "/dev", "/etc", "/proc", "/root", "/run", "/sys", "/var/lib/docker", "/var/run",
}

// maxMounts bounds the list.
const maxMounts = 100

// mount adds what the caller wants to show, if it may be shown. Sources are followed
// to where they really lie.
func (s *shown) mount(list []tiers.Mount) error {
	if len(list) > maxMounts {
		return fmt.Errorf("cannot mount %d files and folders: at most %d", len(list), maxMounts)
	}
	taken := map[string]bool{}
	for _, m := range list {
		if !path.IsAbs(m.Target) || path.Clean(m.Target) != m.Target || within(m.Target, hidden) ||
			strings.ContainsFunc(m.Target, unprintable) {
			return fmt.Errorf(
				"cannot mount %s at %q: give an absolute path of its own, such as /data", m.Source,
				m.Target,
			)
		}

		if taken[m.Target] {
			return fmt.Errorf("cannot mount two things at %s", m.Target)
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

// resolve finds where a source really lies, and whether snippets may see it.
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
		return "", nil, errors.New("it belongs to the system of the host")
	case info.IsDir():
		return source, info, harmless(source)
	}

	return source, info, nil
}

// maxEntries bounds how much of a folder is looked at.
const maxEntries = 1_000_000

// harmless looks for what in a folder leads to programs of the host, though it is
// mounted read-only: sockets and pipes that every user may use, and devices.
func harmless(folder string) error {
	entries := 0
	return filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrPermission) && d != nil && closed(d) {
			return fs.SkipDir // to snippets, too
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
			"%s is no file, but a socket, a pipe or a device, by which snippets could reach the "+
				"host: mount a folder without it",
			name,
		)
	})
}

// closed reports whether others may not enter a folder.
func closed(d fs.DirEntry) bool {
	info, err := d.Info()
	return err == nil && info.Mode().Perm()&0o001 == 0
}

// within reports whether a path is one of the folders or lies in one; the root has
// everything in it and only counts itself.
func within(name string, folders []string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		return name == folder || folder != "/" && strings.HasPrefix(name, folder+"/")
	})
}

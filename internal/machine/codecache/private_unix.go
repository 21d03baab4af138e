//go:build unix

package codecache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// checkPrivate rejects a cache to which other users could have added files, because the code in it
// is executed. It checks the folders on the path to the cache, and everything below the folders of
// compiled code and images, without following links there.
func checkPrivate(dir string) error {
	for _, path := range []string{absolute(dir), resolved(dir)} {
		if err := checkParents(dir, path); err != nil {
			return err
		}
	}
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it will be created for its owner only
	}
	if err != nil {
		return fmt.Errorf("cannot use the cache directory: %w", err)
	}
	if reason := distrust(info); reason != "" {
		return untrusted(dir, dir, reason)
	}

	for _, name := range []string{CodeDir, ImageDir} {
		if err := checkTree(dir, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// checkTree checks everything in one of the cache's folders.
func checkTree(dir, folder string) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another process is removing its temporary files
		}
		if err != nil {
			return fmt.Errorf("cannot use the cache directory: %w", err)
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot use the cache directory: %w", err)
		}

		switch reason := distrust(info); {
		case reason != "":
			return untrusted(dir, path, reason)
		case !info.IsDir() && !info.Mode().IsRegular():
			return untrusted(dir, path, "is neither a file nor a directory")
		}
		return nil
	})
}

// checkParents checks that no other user can replace a folder on dir's path by renaming it. In a
// sticky folder, such as /tmp, users can rename only their own files.
func checkParents(dir, path string) error {
	for folder := filepath.Dir(path); ; folder = filepath.Dir(folder) {
		info, err := os.Stat(folder)
		if err == nil {
			reason := distrust(info)
			if reason == reasonWritable && (info.Mode()&fs.ModeSticky != 0 || isOfOwnGroup(info)) {
				reason = ""
			}
			if reason != "" {
				return untrusted(dir, folder, reason)
			}
		}
		if folder == filepath.Dir(folder) {
			return nil
		}
	}
}

const reasonWritable = "is writable by other users"

// distrust returns the reason why other users may have changed a file or folder, or an empty string
// if only this user and root may write to it.
func distrust(info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid():
		return fmt.Sprintf("belongs to user %d", stat.Uid)
	case info.Mode().Perm()&0o022 != 0:
		return reasonWritable
	}
	return ""
}

// isOfOwnGroup reports whether only the process's own group may write to a folder of its user. On
// many systems, each user has a private group that may write to the user's home folder.
func isOfOwnGroup(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().Perm()&0o002 == 0 && int(stat.Gid) == os.Getegid()
}

// noFollow opens a file itself rather than the target of a link, and does not wait for the writer
// of a FIFO.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// distrustKey returns the reason why other users may have read a key, or an empty string if only
// this user and root can read it.
func distrustKey(f *os.File) string {
	info, err := f.Stat()
	if err != nil {
		return fmt.Sprintf("cannot be read (%v)", err)
	}
	if reason := distrust(info); reason != "" {
		return reason
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "can be read by other users"
	}
	return ""
}

func absolute(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}

// resolved follows the links in a path as far as the path exists.
func resolved(path string) string {
	path = absolute(path)
	if whole, err := filepath.EvalSymlinks(path); err == nil || path == filepath.Dir(path) {
		return whole
	}
	return filepath.Join(resolved(filepath.Dir(path)), filepath.Base(path))
}

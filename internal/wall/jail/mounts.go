//go:build linux && (amd64 || arm64)

package jail

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// scratch lists the folders that the guest may write to, one tmpfs each. Programs use the last one
// for semaphores and shared memory.
var scratch = []string{"/tmp", "/sandbox", "/dev/shm"}

// devices are the device files of the jail.
var devices = []string{"/dev/null", "/dev/urandom", "/dev/zero"}

// isZero reports whether a tree is /dev/zero. A shared mapping of /dev/zero is memory that belongs
// to no file; see private.
func isZero(t tree) bool { return t.Source == "/dev/zero" }

// newRoot is where the file tree is built before it becomes the root. Mounts there are visible only
// in the jail's namespace.
const newRoot = "/tmp"

// planTrees returns the trees to attach for the binds and devices, parents first.
func planTrees(binds []Bind) ([]tree, error) {
	var trees []tree
	for _, b := range binds {
		t, err := planTree(b)
		if err != nil {
			return nil, err
		}
		trees = append(trees, t)
	}

	slices.SortStableFunc(trees, func(a, b tree) int { return strings.Compare(a.Target, b.Target) })
	for i := 1; i < len(trees); i++ {
		if trees[i].Target == trees[i-1].Target {
			return nil, fmt.Errorf("cannot bind %s twice", trees[i].Target)
		}
	}

	for _, device := range devices {
		trees = append(trees, tree{Source: device, Target: device, Write: true, Device: true})
	}
	return trees, nil
}

// planTree checks one bind and returns the tree to attach for it.
func planTree(b Bind) (tree, error) {
	if b.Target == "" {
		b.Target = b.Source
	}
	if !isCleanPath(b.Source) || !isCleanPath(b.Target) {
		return tree{}, fmt.Errorf("cannot bind %q to %q: both must be clean absolute paths below /",
			b.Source, b.Target)
	}
	inside := func(dir string) bool { return b.Target == dir || isBelow(dir, b.Target) }
	if inside("/proc") || inside("/dev") || slices.Contains(scratch, b.Target) {
		return tree{}, fmt.Errorf("cannot bind to %s: the jail has its own /proc, /dev, /tmp "+
			"and /sandbox", b.Target)
	}

	info, err := os.Stat(b.Source)
	if err != nil {
		return tree{}, fmt.Errorf("cannot bind %s: %w", b.Source, err)
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return tree{}, fmt.Errorf("cannot bind %s: it is neither a file nor a folder", b.Source)
	}
	return tree{
		Source: b.Source, Target: b.Target, Folder: info.IsDir(), Write: b.Writable,
	}, nil
}

// findMounts records which trees have other mounts below them. An overlayfs would hide these
// mounts.
func findMounts(trees []tree) error {
	mounts, err := readMounts()
	if err != nil {
		return err
	}

	for i := range trees {
		source, err := filepath.EvalSymlinks(trees[i].Source)
		if err != nil {
			return fmt.Errorf("cannot bind %s: %w", trees[i].Source, err)
		}
		trees[i].HasMounts = slices.ContainsFunc(mounts, func(m mounted) bool {
			return isBelow(source, m.point)
		})
	}
	return nil
}

// isCleanPath reports whether a path is absolute, clean and not the root.
func isCleanPath(path string) bool {
	return filepath.IsAbs(path) && filepath.Clean(path) == path && path != "/" &&
		!strings.ContainsRune(path, 0)
}

// isBelow reports whether a clean path is below a clean folder.
func isBelow(folder, path string) bool {
	return folder == "/" || strings.HasPrefix(path, folder+"/")
}

// openDetached returns a detached copy of the tree with its restrictions. A launcher that is root
// calls openDetached itself, because it can reach files that the guest's user cannot reach.
// Otherwise, the init calls it.
func (t *tree) openDetached() (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, t.Source,
		unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return -1, fmt.Errorf("cannot open %s for binding: %w", t.Source, err)
	}

	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID, Propagation: unix.MS_PRIVATE}
	if !t.Device {
		attr.Attr_set |= unix.MOUNT_ATTR_NODEV
	}
	if t.Write || t.Device {
		attr.Attr_set |= unix.MOUNT_ATTR_NOEXEC
	}
	if !t.Write {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}

	err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr)
	if err != nil {
		_ = unix.Close(fd) // the function returns the first error
		return -1, fmt.Errorf("cannot restrict the bind of %s: %w", t.Source, err)
	}
	return fd, nil
}

// buildTree makes the file tree of the jail the root of its mount namespace.
func buildTree(p *plan) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot detach from the mounts of the host: %w", err)
	}

	// Open all binds first, because the new root hides the host's files below newRoot.
	for i := range p.Trees {
		t := &p.Trees[i]
		if t.FD != 0 {
			continue
		}
		fd, err := t.openDetached()
		if err != nil {
			return err
		}
		t.FD = fd
	}

	err := mountNew("tmpfs", newRoot, unix.MS_NOSUID|unix.MS_NODEV,
		"size=1m,nr_inodes=1024,mode=0755")
	if err != nil {
		return err
	}
	if err := populateRoot(p); err != nil {
		return err
	}
	if err := p.failAt("mounts"); err != nil {
		return err
	}
	return enterRoot()
}

// populateRoot fills the new root.
func populateRoot(p *plan) error {
	// The scratch folders come first, because binds may be below them.
	for _, dir := range p.scratch() {
		if err := mountScratch(p, newRoot+dir); err != nil {
			return err
		}
	}
	proc := newRoot + "/proc"
	if err := os.Mkdir(proc, 0o555); err != nil {
		return fmt.Errorf("cannot make a folder: %w", err)
	}
	// Nothing is mounted there yet, so it serves as the empty folder that an overlayfs needs.
	if err := attachTrees(p, proc); err != nil {
		return err
	}
	return mountNew("proc", proc, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC,
		"hidepid=invisible,subset=pid")
}

// mountScratch mounts one scratch folder.
func mountScratch(p *plan, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make a folder: %w", err)
	}
	options := fmt.Sprintf("size=%d,nr_inodes=%d,mode=0700,uid=%d,gid=%d",
		p.Limits.TmpBytes, p.Limits.TmpInodes, p.UID, p.UID)
	return mountNew("tmpfs", dir, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, options)
}

// mountNew mounts a new file system below the new root.
func mountNew(kind, target string, flags uintptr, options string) error {
	if err := unix.Mount(kind, target, kind, flags, options); err != nil {
		return fmt.Errorf("cannot mount %s at %s with %s: %w",
			kind, strings.TrimPrefix(target, newRoot), options, err)
	}
	return nil
}

// attachTrees attaches the trees to the new root, and covers the folders.
func attachTrees(p *plan, empty string) error {
	for i := range p.Trees {
		t := &p.Trees[i]
		if err := t.attach(); err != nil {
			return err
		}
		if t.Folder && !t.Write && !t.HasMounts {
			_ = t.cover(empty) // an old kernel, or a file system that overlayfs refuses
		}
	}
	return nil
}

// cover mounts a read-only overlayfs of an attached folder over that folder. Locks, leases and
// watches then belong to the inodes of the overlayfs, so they reach neither the host nor other
// jails. Pages of files are still shared with the host. An overlayfs without a writable folder
// needs a second readable folder. This is empty, which must stay empty.
func (t *tree) cover(empty string) error {
	fs, err := unix.Fsopen("overlay", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return fmt.Errorf("cannot open overlayfs: %w", err)
	}
	defer func() { _ = unix.Close(fs) }() // the mount stays

	target := newRoot + t.Target
	escaped := strings.NewReplacer(`\`, `\\`, ":", `\:`).Replace(target)
	err = errors.Join(
		unix.FsconfigSetString(fs, "lowerdir", escaped+":"+empty),
		unix.FsconfigCreate(fs),
	)
	if err != nil {
		return fmt.Errorf("cannot set up overlayfs over %s: %w", t.Target, err)
	}

	attributes := unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	mount, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attributes)
	if err != nil {
		return fmt.Errorf("cannot mount overlayfs over %s: %w", t.Target, err)
	}
	err = unix.MoveMount(mount, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH)
	return errors.Join(err, unix.Close(mount))
}

// attach attaches a detached tree to the new root, at its target. A target inside another bind must
// exist there already.
func (t *tree) attach() error {
	target := newRoot + t.Target
	err := os.MkdirAll(filepath.Dir(target), 0o755)
	if err == nil {
		err = makeMountPoint(target, t.Folder)
	}
	if err != nil {
		return fmt.Errorf("cannot make the mount point %s "+
			"(a mount point inside another bind must already exist): %w", t.Target, err)
	}

	err = unix.MoveMount(t.FD, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH)
	if err != nil {
		return fmt.Errorf("cannot bind %s to %s: %w", t.Source, t.Target, err)
	}
	return unix.Close(t.FD)
}

// makeMountPoint creates an empty folder or file, unless it exists.
func makeMountPoint(target string, folder bool) error {
	if folder {
		if err := os.Mkdir(target, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
		return nil
	}

	f, err := os.OpenFile(target, os.O_CREATE|os.O_RDONLY, 0o444)
	if err != nil {
		return err
	}
	return f.Close()
}

// enterRoot makes newRoot the root, detaches the old root, and makes the new root read-only.
func enterRoot() error {
	if err := unix.Chdir(newRoot); err != nil {
		return fmt.Errorf("cannot enter the new root: %w", err)
	}
	// With the same name twice, the old root ends up on top of the new one.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("cannot change the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("cannot detach the old root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return fmt.Errorf("cannot enter the new root: %w", err)
	}

	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID |
		unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", 0, &attr); err != nil {
		return fmt.Errorf("cannot make the root read-only: %w", err)
	}
	return nil
}

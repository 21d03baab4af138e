//go:build linux && (amd64 || arm64)

package jail

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// scratch are the folders that the guest may write, one tmpfs each. Programs
// expect the last one for semaphores and shared memory.
var scratch = []string{"/tmp", "/sandbox", "/dev/shm"}

// devices are the device files of the jail.
var devices = []string{"/dev/null", "/dev/urandom", "/dev/zero"}

// newRoot is where the file tree grows before it becomes the root. It is only
// ever mounted on in the namespace of the jail.
const newRoot = "/tmp"

// planTrees returns what to attach for the binds and devices, parents first.
func planTrees(binds []Bind) ([]tree, error) {
	var trees []tree
	for _, b := range binds {
		if b.Target == "" {
			b.Target = b.Source
		}
		for _, path := range []string{b.Source, b.Target} {
			if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" || strings.ContainsRune(path, 0) {
				return nil, fmt.Errorf("cannot bind %q to %q: both must be clean absolute paths below /", b.Source, b.Target)
			}
		}
		inside := func(dir string) bool { return b.Target == dir || below(dir, b.Target) }
		if inside("/proc") || inside("/dev") || slices.Contains(scratch, b.Target) {
			return nil, fmt.Errorf("cannot bind to %s: the jail has its own /proc, /dev, /tmp and /sandbox", b.Target)
		}
		info, err := os.Stat(b.Source)
		if err != nil {
			return nil, fmt.Errorf("cannot bind %s: %w", b.Source, err)
		}
		if !info.IsDir() && !info.Mode().IsRegular() {
			return nil, fmt.Errorf("cannot bind %s: neither file nor folder", b.Source)
		}
		trees = append(trees, tree{Source: b.Source, Target: b.Target, Folder: info.IsDir(), Write: b.Writable})
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

// below reports whether a clean path lies below a clean folder.
func below(folder, path string) bool {
	return folder == "/" || strings.HasPrefix(path, folder+"/")
}

// open returns a detached copy of the tree with its restrictions. A launcher
// that is root does it, because it can reach what the guest's user cannot;
// otherwise the init does.
func (t *tree) open() (int, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, t.Source, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
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
		_ = unix.Close(fd) // the first error counts
		return -1, fmt.Errorf("cannot restrict the bind of %s: %w", t.Source, err)
	}
	return fd, nil
}

// buildTree makes the file tree of the jail the root of its mount namespace.
func buildTree(p *plan) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("cannot detach from the mounts of the host: %w", err)
	}
	// What is below newRoot on the host is hidden by the new root.
	for i := range p.Trees {
		t := &p.Trees[i]
		if t.FD != 0 {
			continue
		}
		fd, err := t.open()
		if err != nil {
			return err
		}
		t.FD = fd
	}
	if err := mountNew("tmpfs", newRoot, unix.MS_NOSUID|unix.MS_NODEV, "size=1m,nr_inodes=1024,mode=0755"); err != nil {
		return err
	}
	if err := populate(p); err != nil {
		return err
	}
	if err := p.fail("mounts"); err != nil {
		return err
	}
	return enter()
}

// populate fills the new root.
func populate(p *plan) error {
	// First the scratch: something may be bound below it.
	for _, dir := range scratch {
		if err := os.MkdirAll(newRoot+dir, 0o755); err != nil {
			return fmt.Errorf("cannot make a folder: %w", err)
		}
		options := fmt.Sprintf("size=%d,nr_inodes=%d,mode=0700,uid=%d,gid=%d",
			p.Limits.TmpBytes, p.Limits.TmpInodes, p.UID, p.UID)
		if err := mountNew("tmpfs", newRoot+dir, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, options); err != nil {
			return err
		}
	}
	for i := range p.Trees {
		if err := attach(&p.Trees[i]); err != nil {
			return err
		}
	}
	proc := newRoot + "/proc"
	if err := os.Mkdir(proc, 0o555); err != nil {
		return fmt.Errorf("cannot make a folder: %w", err)
	}
	err := mountNew("proc", proc, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "hidepid=invisible,subset=pid")
	if err != nil {
		return err
	}
	return nil
}

func mountNew(kind, target string, flags uintptr, options string) error {
	if err := unix.Mount(kind, target, kind, flags, options); err != nil {
		return fmt.Errorf("cannot mount %s at %s with %s: %w", kind, strings.TrimPrefix(target, newRoot), options, err)
	}
	return nil
}

// attach makes the mount point of one tree and puts the tree there.
func attach(t *tree) error {
	target := newRoot + t.Target
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("cannot make a place for %s (a place in another bind must be there already): %w", t.Target, err)
	}
	if err := mountPoint(target, t.Folder); err != nil {
		return fmt.Errorf("cannot make a place for %s (a place in another bind must be there already): %w", t.Target, err)
	}
	if err := unix.MoveMount(t.FD, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("cannot bind %s to %s: %w", t.Source, t.Target, err)
	}
	return unix.Close(t.FD)
}

// mountPoint makes an empty folder or file unless it is there.
func mountPoint(target string, folder bool) error {
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

// enter makes newRoot the root, forgets the old one, and closes the new one
// for writing.
func enter() error {
	if err := unix.Chdir(newRoot); err != nil {
		return fmt.Errorf("cannot enter the new root: %w", err)
	}
	// Both names the same: the old root ends up on top of the new one.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("cannot change the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("cannot detach the old root: %w", err)
	}
	if err := unix.Chdir("/"); err != nil {
		return fmt.Errorf("cannot enter the new root: %w", err)
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", 0, &attr); err != nil {
		return fmt.Errorf("cannot make the root read-only: %w", err)
	}
	return nil
}

// mounted is one line of /proc/self/mountinfo.
type mounted struct {
	point   string
	options string // separated by commas
	kind    string
}

// has reports whether a mount has all of the options.
func (m mounted) has(options ...string) bool {
	have := strings.Split(m.options, ",")
	for _, option := range options {
		if !slices.Contains(have, option) {
			return false
		}
	}
	return true
}

// readMounts lists the mounts that this process sees.
func readMounts() ([]mounted, error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []mounted
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		before, after, _ := strings.Cut(lines.Text(), " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if len(fields) < 6 || len(kind) < 1 {
			return nil, fmt.Errorf("cannot understand the mount %q", lines.Text())
		}
		all = append(all, mounted{point: unescape(fields[4]), options: fields[5], kind: kind[0]})
	}
	return all, lines.Err()
}

// unescape undoes the kernel's way to write blanks in paths.
func unescape(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}

// checkMounts returns what is mounted that should not be, or not as it should.
func checkMounts(p *plan, all []mounted) error {
	for _, m := range all {
		if err := checkMount(p, m); err != nil {
			return err
		}
	}
	if want := 2 + len(scratch) + len(p.Trees); len(all) < want {
		return fmt.Errorf("%d mounts instead of at least %d", len(all), want)
	}
	return nil
}

// checkMount judges one mount.
func checkMount(p *plan, m mounted) error {
	bad := func(what string) error {
		return fmt.Errorf("the mount at %s (%s, %s) %s", m.point, m.kind, m.options, what)
	}
	switch {
	case !m.has("nosuid"):
		return bad("allows set-user-ID programs")
	case m.point == "/":
		if m.kind != "tmpfs" || !m.has("ro") {
			return bad("is not an own read-only root")
		}
		return nil
	case m.point == "/proc":
		if m.kind != "proc" || !m.has("noexec", "nodev") {
			return bad("is not an own process list")
		}
		return nil
	case slices.Contains(scratch, m.point):
		if m.kind != "tmpfs" || !m.has("noexec", "nodev") {
			return bad("is not an own scratch folder")
		}
		return nil
	}
	for _, t := range p.Trees {
		if m.point != t.Target && !below(t.Target, m.point) {
			continue
		}
		if !t.Write && !m.has("ro") || !t.Device && !m.has("nodev") || t.Write && !m.has("noexec") {
			return bad("is less restricted than its bind")
		}
		return nil
	}
	return bad("does not belong there")
}

package images

import (
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/golang/guest/build"
	"github.com/rlmhq/rlm/internal/golang/guest/relay"
	"github.com/rlmhq/rlm/internal/golang/guest/run"
	"github.com/rlmhq/rlm/internal/python/pykernel"
	"github.com/rlmhq/rlm/internal/snippet/frame"
	"github.com/rlmhq/rlm/internal/snippet/session/wire"
	"github.com/rlmhq/rlm/internal/wall/dockerapi"
)

// isWanted says which of the files that were fetched come into an image. At first all of Go's
// toolchain does: it compiles what the image is to have.
func (r Recipe) isWanted(name string) bool {
	if dir, base := path.Split(name); dir == "usr/bin/" && r.Kind == Python {
		return slices.Contains(r.programs, base)
	}
	return r.Kind == Go || wantedPackage(name)
}

// Parts of Debian's packages that no image gets.
var (
	unwantedFolders = []string{"usr/sbin/", "usr/include", "usr/games", "var/", "etc/"}
	unwantedEndings = []string{".a", ".pyx", ".pxd"}
)

// neededTest lies among tests, and numpy itself imports it.
const neededTest = "numpy/_core/tests/_natype.py"

// wantedPackage says which files of Debian's packages, other than programs, come into an image: no
// documents, no tests, nothing to compile with.
func wantedPackage(name string) bool {
	below := func(folder string) bool { return strings.HasPrefix(name, folder) }
	if name == "usr/sbin" || slices.ContainsFunc(unwantedFolders, below) {
		return false
	}
	if rest, ok := strings.CutPrefix(name, "usr/share/"); ok {
		return wantedShare(rest)
	}
	if slices.Contains(unwantedEndings, path.Ext(name)) {
		return false
	}
	return !strings.Contains(name+"/", "/tests/") || strings.Contains(name, neededTest)
}

// wantedShare says which files below usr/share come into an image.
func wantedShare(name string) bool {
	top, _, _ := strings.Cut(name, "/")
	switch top {
	case "zoneinfo", "rlm", "python3", "mime", "ca-certificates":
		return true
	}
	return false
}

// skeleton lists the files of every image besides those of the packages.
func skeleton() []extra {
	list := []extra{
		{name: "usr", dir: true}, {name: "usr/lib", dir: true}, {name: "etc", dir: true},
	}
	for _, name := range []string{"bin", "lib", "sbin", "lib64"} {
		list = append(list, extra{name: name, link: "usr/" + name})
	}
	for _, name := range []string{
		"dev", "proc", "sys", "tmp", "sandbox", "context", "out", "program",
	} {
		list = append(list, extra{name: name, dir: true})
	}

	sandbox := fmt.Sprintf("sandbox:x:%d:%d::/sandbox:/nonexistent\n", dockerapi.User, dockerapi.User)
	return append(list,
		extra{name: "etc/passwd", text: "root:x:0:0::/nonexistent:/nonexistent\n" + sandbox},
		extra{
			name: "etc/group", text: fmt.Sprintf("root:x:0:\nsandbox:x:%d:\n", dockerapi.User),
		},
		// Hosts without files: there is no network whose names could be looked up.
		extra{name: "etc/nsswitch.conf", text: "passwd: files\ngroup: files\nhosts: dns\n"},
	)
}

// extras lists the further files of one kind of image.
func extras(kind string) ([]extra, error) {
	if kind == Go {
		return goSources()
	}

	// Scripts of packages would make these links. They are not run.
	machine := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	library := "usr/lib/" + machine + "-linux-gnu/"
	list := []extra{
		{name: library + "libopenblas.so.0", link: "openblas-pthread/libopenblas.so.0"},
		{name: library + "libblas.so.3", link: "openblas-pthread/libblas.so.3"},
		{name: library + "liblapack.so.3", link: "openblas-pthread/liblapack.so.3"},
		{name: "build", dir: true},
		{name: kernelFolder, dir: true},
	}

	for name, source := range pykernel.Sources() {
		list = append(list, extra{name: kernelFolder + "/" + name + ".py", text: source})
	}
	return list, nil
}

// kernelFolder is where the runtime lies while the image python is finished, which compiles
// it ahead. It is not part of the recipe's hash: it is sent to each container, which
// compiles what the image does not have.
const kernelFolder = "build/kernel"

// goFolder is where the sources of the programs of the image go lie while it is finished.
const goFolder = "build/src"

// goSources are those sources, and the module that they are in.
func goSources() ([]extra, error) {
	const module = "github.com/rlmhq/rlm"
	list := []extra{
		{name: "build", dir: true},
		{name: goFolder + "/go.mod", text: "module " + module + "\n\ngo 1.26\n"},
	}
	for _, of := range []struct {
		folder string
		files  fs.FS
	}{
		{"images", recipes},
		{"internal/snippet/frame", frame.Source},
		{"internal/golang/guest/build", build.Source},
		{"internal/golang/guest/relay", relay.Source},
		{"internal/golang/guest/run", run.Source},
		{"internal/snippet/session/wire", wire.Source},
	} {
		err := fs.WalkDir(of.files, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || path.Ext(name) != ".go" {
				return err
			}
			if of.folder == "images" && !strings.HasPrefix(name, "go/") {
				return nil
			}
			text, err := fs.ReadFile(of.files, name)
			place := path.Join(goFolder, of.folder, name)
			list = append(list, extra{name: place, text: string(text)})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Parts of a finished container that the image does not get: what the daemon puts there,
// and what only the finishing needed.
var (
	leftOutFiles = []string{
		".dockerenv", "build", "etc/hosts", "etc/hostname", "etc/resolv.conf", "etc/mtab",
		"usr/lib/go",
	}
	leftOutFolders = []string{
		"build/", "dev/", "proc/", "sys/", "tmp/", "sandbox/", "usr/lib/go/",
	}
)

// isFinished says which files of a finished container come into the image.
func isFinished(name string) bool {
	if slices.Contains(leftOutFiles, name) {
		return false
	}
	return !slices.ContainsFunc(leftOutFolders, func(folder string) bool {
		return strings.HasPrefix(name, folder)
	})
}

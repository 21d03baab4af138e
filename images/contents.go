package images

import (
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/dockerapi"
	"github.com/rlmhq/rlm/internal/frame"
	"github.com/rlmhq/rlm/internal/gobuild"
	"github.com/rlmhq/rlm/internal/gopipes"
	"github.com/rlmhq/rlm/internal/gorelay"
	"github.com/rlmhq/rlm/internal/gorun"
	"github.com/rlmhq/rlm/internal/gotool"
	"github.com/rlmhq/rlm/internal/pykernel"
)

// programs are what can be executed in the image python.
var programs = []string{"python3", "python3.13"}

// wantedFile says what of what was fetched comes into an image. All of Go's
// toolchain does at first: it compiles what the image is to have.
func wantedFile(kind string) func(string) bool {
	if kind == Go {
		return func(string) bool { return true }
	}
	return wantedPackage
}

// wantedPackage says what of Debian's packages comes into an image: no shell, no
// program but those named, nothing to read for people, no tests, nothing to compile
// with.
func wantedPackage(name string) bool {
	dir, base := path.Split(name)
	switch {
	case dir == "usr/bin/":
		return slices.Contains(programs, base)
	case name == "usr/sbin", strings.HasPrefix(name, "usr/sbin/"), strings.HasPrefix(name, "usr/include"), strings.HasPrefix(name, "usr/games"):
		return false
	case strings.HasPrefix(name, "var/"), strings.HasPrefix(name, "etc/"):
		return false
	case strings.HasPrefix(name, "usr/share/"):
		return wantedShare(strings.TrimPrefix(name, "usr/share/"))
	case strings.HasSuffix(name, ".a"), strings.HasSuffix(name, ".pyx"), strings.HasSuffix(name, ".pxd"):
		return false
	}
	return !strings.Contains(name+"/", "/tests/") || strings.Contains(name, "numpy/_core/tests/_natype.py") // which numpy itself imports
}

func wantedShare(name string) bool {
	top, _, _ := strings.Cut(name, "/")
	switch top {
	case "zoneinfo", "rlm", "python3", "mime", "ca-certificates":
		return true
	}
	return false
}

// extra is a file that no package has.
type extra struct {
	name, link, text string
	dir              bool
}

// skeleton is what every image has besides what was fetched.
func skeleton() []extra {
	list := []extra{{name: "usr", dir: true}, {name: "usr/lib", dir: true}, {name: "etc", dir: true}}
	for _, name := range []string{"bin", "lib", "sbin", "lib64"} {
		list = append(list, extra{name: name, link: "usr/" + name})
	}
	for _, name := range []string{"dev", "proc", "sys", "tmp", "sandbox", "context", "out", "program"} {
		list = append(list, extra{name: name, dir: true})
	}
	who := fmt.Sprintf("sandbox:x:%d:%d::/sandbox:/nonexistent\n", dockerapi.User, dockerapi.User)
	return append(list,
		extra{name: "etc/passwd", text: "root:x:0:0::/nonexistent:/nonexistent\n" + who},
		extra{name: "etc/group", text: fmt.Sprintf("root:x:0:\nsandbox:x:%d:\n", dockerapi.User)},
		// No files: names are not looked up where there is no network.
		extra{name: "etc/nsswitch.conf", text: "passwd: files\ngroup: files\nhosts: dns\n"},
	)
}

// extras are what an image of a kind has besides the skeleton and what was fetched.
func extras(kind string) ([]extra, error) {
	if kind == Go {
		return goSources()
	}
	library := "usr/lib/" + map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH] + "-linux-gnu/"
	list := []extra{ // Scripts of packages, which are not run, would make these links.
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

// kernelFolder is where the runtime lies while the image python is finished, which
// compiles it ahead. It is no part of the recipe's hash: it is sent to each container,
// which compiles what the image has not.
const kernelFolder = "build/kernel"

// goFolder is where the sources of what the image go runs itself lie while it is
// finished.
const goFolder = "build/src"

// goSources are those sources: the packages' own, and the module that they are in.
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
		{"internal/frame", frame.Source},
		{"internal/gobuild", gobuild.Source},
		{"internal/gopipes", gopipes.Source},
		{"internal/gorelay", gorelay.Source},
		{"internal/gorun", gorun.Source},
		{"internal/gotool", gotool.Source},
	} {
		err := fs.WalkDir(of.files, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || path.Ext(name) != ".go" || of.folder == "images" && !strings.HasPrefix(name, "go/") {
				return err
			}
			text, err := fs.ReadFile(of.files, name)
			list = append(list, extra{name: path.Join(goFolder, of.folder, name), text: string(text)})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return list, nil
}

// finished says what of a finished container stays: not what the daemon puts there,
// nor what only the finishing needed.
func finished(name string) bool {
	switch name {
	case ".dockerenv", "build", "etc/hosts", "etc/hostname", "etc/resolv.conf", "etc/mtab", "usr/lib/go":
		return false
	}
	for _, folder := range []string{"build/", "dev/", "proc/", "sys/", "tmp/", "sandbox/", "usr/lib/go/"} {
		if strings.HasPrefix(name, folder) {
			return false
		}
	}
	return true
}

package images

import (
	"fmt"
	"path"
	"runtime"
	"strings"

	"github.com/rlmhq/rlm/internal/daemon"
)

// programs are what can be executed in the image of a kind.
var programs = map[string][]string{"python": {"python3", "python3.13"}}

// wantedFile says what of Debian's packages comes into an image: no shell, no
// program but those named, nothing to read for people, no tests, nothing to
// compile with.
func wantedFile(programs ...string) func(string) bool {
	return func(name string) bool {
		dir, base := path.Split(name)
		switch {
		case dir == "usr/bin/":
			for _, program := range programs {
				if base == program {
					return true
				}
			}
			return false
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

// skeleton is what every image has besides files of packages.
func skeleton() []extra {
	list := []extra{{name: "usr", dir: true}, {name: "usr/lib", dir: true}, {name: "etc", dir: true}}
	for _, name := range []string{"bin", "lib", "sbin", "lib64"} {
		list = append(list, extra{name: name, link: "usr/" + name})
	}
	for _, name := range []string{"dev", "proc", "sys", "tmp", "sandbox", "context", "out"} {
		list = append(list, extra{name: name, dir: true})
	}
	who := fmt.Sprintf("sandbox:x:%d:%d::/sandbox:/nonexistent\n", daemon.User, daemon.User)
	library := "usr/lib/" + map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH] + "-linux-gnu/"
	return append(list,
		extra{name: "etc/passwd", text: "root:x:0:0::/nonexistent:/nonexistent\n" + who},
		extra{name: "etc/group", text: fmt.Sprintf("root:x:0:\nsandbox:x:%d:\n", daemon.User)},
		// No files: names are not looked up where there is no network.
		extra{name: "etc/nsswitch.conf", text: "passwd: files\ngroup: files\nhosts: dns\n"},
		// Scripts of packages, which are not run, would make these links.
		extra{name: library + "libopenblas.so.0", link: "openblas-pthread/libopenblas.so.0"},
		extra{name: library + "libblas.so.3", link: "openblas-pthread/libblas.so.3"},
		extra{name: library + "liblapack.so.3", link: "openblas-pthread/liblapack.so.3"},
	)
}

// finished leaves out what the daemon puts into a container.
func finished(name string) bool {
	switch name {
	case ".dockerenv", "etc/hosts", "etc/hostname", "etc/resolv.conf", "etc/mtab":
		return false
	}
	for _, folder := range []string{"dev/", "proc/", "sys/", "tmp/", "sandbox/"} {
		if strings.HasPrefix(name, folder) {
			return false
		}
	}
	return true
}

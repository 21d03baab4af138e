//go:build linux

package run

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// workFolder is the working folder and home of every program.
const workFolder = "/sandbox"

// mostNamed bounds the files that a note names, and mostSeen bounds the files that the search
// examines.
const (
	mostNamed = 3
	mostSeen  = 1000
)

// noteFiles names the files that a snippet left in the working folder, which is lost with the
// sandbox. It names each file once. Temporary files are in a different folder.
func (p *program) noteFiles() {
	left := map[string]bool{}
	var added []string
	_ = fs.WalkDir(os.DirFS(workFolder), ".", func(name string, entry fs.DirEntry, _ error) error {
		switch {
		case len(left) == mostSeen:
			return fs.SkipAll
		case entry == nil || name == ".": // an entry that cannot be read is skipped
		case strings.HasPrefix(entry.Name(), ".") && entry.IsDir():
			return fs.SkipDir
		case !strings.HasPrefix(entry.Name(), ".") && entry.Type().IsRegular():
			left[name] = true
			if !p.left[name] {
				added = append(added, name)
			}
		}
		return nil
	})
	p.left = left
	if len(added) > 0 {
		_, _ = syscall.Write(p.streams[1], []byte(describeLeft(added, p.setup.Out)))
	}
}

// describeLeft returns the note about files.
func describeLeft(files []string, hasOut bool) string {
	names := make([]string, min(len(files), mostNamed))
	for i := range names {
		if names[i] = files[i]; strings.ContainsFunc(files[i], func(r rune) bool { return !strconv.IsPrint(r) }) {
			names[i] = strconv.Quote(files[i])
		}
	}

	more, flag := "", " with --out FOLDER"
	if len(files) > mostNamed {
		more = fmt.Sprintf(" and %d more", len(files)-mostNamed)
	}
	if hasOut {
		flag = ""
	}
	return fmt.Sprintf("note: %s%s will be lost with the sandbox: write files to keep below /out%s\n",
		strings.Join(names, ", "), more, flag)
}

package server

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/rlmhq/rlm/server/internal/records"
)

// Folder is the path of a server's data folder. It contains the server's records, keys, audit log,
// uploads, saved sessions, and the store of its runs. One process uses it at a time.
type Folder string

// Store returns the folder of the durable runs, which is the store of the server's engine.
func (f Folder) Store() string { return filepath.Join(string(f), "store") }

// IsUsed reports whether the folder is the data folder of a server, or the remains of one.
func (f Folder) IsUsed() bool {
	dir := string(f)
	return slices.ContainsFunc([]string{filepath.Dir(records.Path(dir)), filepath.Join(dir, "sessions")},
		func(path string) bool {
			info, err := os.Stat(path)
			return err == nil && info.IsDir()
		})
}

// Package testcache says where tests keep the compiled interpreter.
package testcache

import (
	"os"
	"path/filepath"
)

// Home is a folder for user caches, as XDG_CACHE_HOME names one.
func Home() string { return filepath.Join(os.TempDir(), "rlm-test-cache") }

// Dir is the cache that all packages' tests share: with the race detector the
// interpreter takes half a minute to compile, and each of them would.
func Dir() string { return filepath.Join(Home(), "rlm") }

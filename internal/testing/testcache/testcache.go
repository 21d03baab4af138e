// Package testcache says where tests keep the compiled interpreter.
package testcache

import (
	"fmt"
	"os"
	"path/filepath"
)

// Home is a folder for user caches, as XDG_CACHE_HOME names one.
func Home() string { return filepath.Join(os.TempDir(), "rlm-test-cache") }

// Dir is the cache that the tests of all packages share: with the race detector the
// interpreter takes half a minute to compile.
func Dir() string { return filepath.Join(Home(), "rlm") }

// Use makes it the user's cache in this process and its children. Tests and examples use
// it for code that takes the user's cache by default.
func Use() error {
	// These are where os.UserCacheDir looks.
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} {
		if err := os.Setenv(name, Home()); err != nil {
			return fmt.Errorf("cannot set %s: %w", name, err)
		}
	}
	return nil
}

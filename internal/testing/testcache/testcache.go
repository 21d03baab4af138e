// Package testcache says where tests keep the compiled interpreter.
package testcache

import (
	"fmt"
	"os"
	"path/filepath"
)

// Home is a folder for user caches, as XDG_CACHE_HOME names one.
func Home() string { return filepath.Join(os.TempDir(), "rlm-test-cache") }

// Dir is the cache that all packages' tests share: with the race detector the
// interpreter takes half a minute to compile, and each of them would.
func Dir() string { return filepath.Join(Home(), "rlm") }

// Use makes it the user's cache in this process and its children, for tests and
// examples of what takes that one unless it is told otherwise.
func Use() error {
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} { // where os.UserCacheDir looks
		if err := os.Setenv(name, Home()); err != nil {
			return fmt.Errorf("cannot set %s: %w", name, err)
		}
	}
	return nil
}

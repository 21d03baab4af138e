// Package testcache defines where tests keep the compiled interpreter.
package testcache

import (
	"fmt"
	"os"
	"path/filepath"
)

// Home returns a folder for user caches, in the sense of XDG_CACHE_HOME. Each user of a machine has
// a different one.
func Home() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("rlm-test-cache-%d", os.Getuid()))
}

// Dir returns the cache that the tests of all packages share, because compiling the interpreter
// takes half a minute with the race detector.
func Dir() string { return filepath.Join(Home(), "rlm") }

// Use makes Dir the user's cache in this process and its children. Tests and examples call it for
// code that uses the user's cache by default.
func Use() error {
	// The variables that os.UserCacheDir reads.
	for _, name := range []string{"XDG_CACHE_HOME", "HOME", "LocalAppData"} {
		if err := os.Setenv(name, Home()); err != nil {
			return fmt.Errorf("cannot set %s: %w", name, err)
		}
	}
	return nil
}

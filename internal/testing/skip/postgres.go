package skip

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// WithoutPostgres returns the folder with the programs of PostgreSQL: the one named by
// RLM_POSTGRES, or the newest that the packages of this system have installed. Without one, it
// skips the test, or fails it if RLM_REQUIRE_POSTGRES is set.
func WithoutPostgres(tb testing.TB) string {
	tb.Helper()
	if named := os.Getenv("RLM_POSTGRES"); named != "" {
		if !hasServer(named) {
			tb.Fatalf("RLM_POSTGRES: %s has no initdb and postgres", named)
		}
		return named
	}
	for _, dir := range findPostgres(tb) {
		if hasServer(dir) {
			return dir
		}
	}
	const missing = "no server of PostgreSQL: install one, or name its folder of programs with RLM_POSTGRES"
	if os.Getenv(requirePostgres) != "" {
		tb.Fatalf("%s is set: %s", requirePostgres, missing)
	}
	tb.Skipf("%s", missing)
	return ""
}

// findPostgres lists folders that may have the programs, the newest version first.
func findPostgres(tb testing.TB) (dirs []string) {
	tb.Helper()
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin",
		"/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin",
	} {
		found, _ := filepath.Glob(pattern) // the patterns are valid
		dirs = append(dirs, found...)
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return cmp.Compare(versionOf(b), versionOf(a)) })

	if out, err := exec.CommandContext(tb.Context(), "pg_config", "--bindir").Output(); err == nil {
		dirs = append(dirs, strings.TrimSpace(string(out)))
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	return dirs
}

var digits = regexp.MustCompile(`[0-9]+`)

// versionOf returns the version that the path of a folder names, or 0.
func versionOf(dir string) int {
	version, _ := strconv.Atoi(digits.FindString(dir))
	return version
}

// hasServer reports whether a folder has the programs of a server.
func hasServer(dir string) bool {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

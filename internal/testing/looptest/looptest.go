// Package looptest provides one engine per package for the tests of all loops, and shows the
// messages of a conversation as a string.
package looptest

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/standard"
)

// Main creates the engine of a package's tests, runs the tests and ends the process. It fails if a
// goroutine remains. It is meant as the complete body of a TestMain.
func Main(m *testing.M, shared **rlm.Engine, options rlm.Options) {
	options.CacheDir = testcache.Dir()
	if options.Tiers == nil {
		options.Tiers = standard.Tiers(standard.Options{})
	}
	engine, err := rlm.New(options)
	if err != nil {
		panic(err)
	}
	*shared = engine

	code := m.Run()
	if err := engine.Close(); err != nil {
		panic(err)
	}
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}

	os.Exit(code)
}

// Transcript returns messages as a string.
func Transcript(messages []llm.Message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "[%s]\n%s\n\n", m.Role, m.Content)
	}

	return strings.TrimRight(b.String(), "\n")
}

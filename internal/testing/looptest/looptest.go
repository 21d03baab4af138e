// Package looptest holds what the tests of all loops need: one engine for a package, and
// the messages of a conversation as text.
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
)

var engine *rlm.Engine

// Main runs the tests of a package over one engine, ends the process, and fails if a
// goroutine is left behind. It is the whole of a TestMain. The options are the engine's,
// but for its cache.
func Main(m *testing.M, o rlm.Options) {
	o.CacheDir = testcache.Dir()
	var err error
	if engine, err = rlm.New(o); err != nil {
		panic(err)
	}

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

// Engine returns the engine of the package's tests, which Main made.
func Engine() *rlm.Engine { return engine }

// Transcript returns messages as text.
func Transcript(messages []llm.Message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "[%s]\n%s\n\n", m.Role, m.Content)
	}

	return strings.TrimRight(b.String(), "\n")
}

// Package pykernel is the Python runtime that every tier with a CPython runs in its
// guest.
//
// The runtime is the Python code under guest/: it runs snippets in one namespace, and provides an
// event loop over host calls, the lazy context, FINAL and its dialects. It reaches the host only
// through the module _rlm, which has two functions, call and call_str, that send a request and
// return the answer. [session.Accounts] answers them.
//
// Tier wasm implements the module _rlm in C. In a process, native/native.py implements the module
// over a connection, and [Guest] is the host's end.
package pykernel

import (
	"embed"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"strings"
	"sync"

	"github.com/rlmhq/rlm/internal/snippet/protocol"
)

//go:embed guest/*.py
var guest embed.FS

// Modules returns the modules that the runtime adds to the standard library: a look-alike of
// pydantic and the time zones of tzdata. The real modules take precedence over both.
func Modules() []string { return []string{"pydantic", "rlm_models", "tzdata"} }

// Boot returns Python source that loads the runtime and registers its run function with
// _rlm.set_run. It is the same in every process of one build.
var Boot = sync.OnceValue(joinSources)

// bootModule is the name of the module that loads the others.
const bootModule = "boot"

func joinSources() string {
	sources := Sources()
	main := sources[bootModule]
	delete(sources, bootModule)

	// A JSON object of strings is also a valid Python dict display of the same strings.
	dict, err := json.Marshal(sources)
	if err != nil {
		panic(fmt.Sprintf("pykernel: %v", err)) // strings only
	}
	return "sources = " + string(dict) + "\n" + main
}

// HashSources adds everything that determines Boot to a hash, which takes less time than Boot.
func HashSources(h hash.Hash) {
	buffer := make([]byte, 32<<10)
	for _, name := range guestFiles() {
		_, _ = fmt.Fprintf(h, "\x00%s\x00", name)
		source, err := guest.Open(name)
		if err == nil {
			_, err = io.CopyBuffer(h, source, buffer)
		}
		if err != nil {
			panic(fmt.Sprintf("pykernel: %v", err)) // embedded
		}
	}
	_, _ = io.WriteString(h, "\x00"+protocol.Python())
}

// guestFiles returns the names of the runtime's files, in order.
func guestFiles() []string {
	names, err := fs.Glob(guest, "guest/*.py")
	if err != nil {
		panic(fmt.Sprintf("pykernel: %v", err)) // the pattern is a constant
	}
	return names
}

// Sources returns the source code of the runtime's modules, by name. An image may contain them
// precompiled.
func Sources() map[string]string {
	sources := map[string]string{"protocol": protocol.Python()}
	for _, name := range guestFiles() {
		source, err := guest.ReadFile(name)
		if err != nil {
			panic(fmt.Sprintf("pykernel: %v", err)) // embedded
		}
		sources[strings.TrimSuffix(strings.TrimPrefix(name, "guest/"), ".py")] = string(source)
	}
	return sources
}

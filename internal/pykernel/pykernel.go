// Package pykernel is the Python runtime that every tier with a CPython runs in
// its guest, and the host's end of the wire to it.
//
// The guest's half is the Python under guest/: it runs snippets in one
// namespace, brings an event loop over host calls, the lazy context, FINAL and
// its dialects. It knows the host only as the module _rlm with two functions,
// call and call_str, that send a request and return the answer.
//
// The host's half is [Session]: it answers those requests for one sandbox and
// keeps the accounts of the snippet that runs. Every request is written by
// hostile code; see protocol.go for their forms.
package pykernel

import (
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"github.com/rlmhq/rlm/internal/protocol"
)

//go:embed guest/*.py
var guest embed.FS

// Flags of a run, as the guest's run takes them.
const (
	// FlagReseed makes the guest draw new randomness: the sandbox is a copy.
	FlagReseed = 1
	// FlagConfigure makes the guest ask for the session's inputs and functions.
	FlagConfigure = 2
	// FlagExport and FlagImport make the guest give or take a state instead of
	// running a snippet.
	FlagExport = 4
	FlagImport = 8
	// OrdinalShift is where the snippet's ordinal begins in the flags.
	OrdinalShift = 8
)

// What the guest's run returns.
const (
	codeOK     = 0
	codeRaised = 1
	codeExited = 2
)

// Modules are the modules that the runtime brings beside the standard library: a
// look-alike of pydantic, which stands behind a real one.
func Modules() []string { return []string{"pydantic", "rlm_models"} }

// Boot is Python source that loads the runtime and registers its run function
// with _rlm.set_run. It is the same in every process of one build.
var Boot = sync.OnceValue(boot)

func boot() string {
	sources := Sources()
	main := sources[bootModule]
	delete(sources, bootModule)
	// A JSON object of strings is a Python dict display of the same strings.
	dict, err := json.Marshal(sources)
	if err != nil {
		panic(fmt.Sprintf("pykernel: %v", err)) // strings only
	}
	return "sources = " + string(dict) + "\n" + main
}

// bootModule is the name of what loads the others.
const bootModule = "boot"

// Sources are the runtime's modules, by name. An image may have them compiled ahead.
func Sources() map[string]string {
	sources := map[string]string{}
	names, err := fs.Glob(guest, "guest/*.py")
	if err != nil {
		panic(fmt.Sprintf("pykernel: %v", err)) // the pattern is a constant
	}
	for _, name := range names {
		source, err := guest.ReadFile(name)
		if err != nil {
			panic(fmt.Sprintf("pykernel: %v", err)) // embedded
		}
		sources[strings.TrimSuffix(strings.TrimPrefix(name, "guest/"), ".py")] = string(source)
	}
	sources["protocol"] = protocol.Python()
	return sources
}

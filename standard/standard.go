// Package standard contains the four tiers of the command rlm. An engine without this package has
// only the tier wasm, and links neither Docker's client nor Go interpreters.
//
//	engine, err := rlm.New(rlm.Options{Tiers: standard.Tiers(standard.Options{})})
package standard

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"

	"github.com/rlmhq/rlm/internal/wall/egress/endpoints"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/docker"
	"github.com/rlmhq/rlm/tiers/interp"
	"github.com/rlmhq/rlm/tiers/local"
)

// Options configure the tiers. The zero value works.
type Options struct {
	// Python is the path or name of the host's interpreter for tier local. Empty means python3.
	Python string
	// LocalFolders are folders of the host that snippets in tier local can read, in addition to
	// Python's own. A folder with a home directory, keys, .env or .git is refused.
	LocalFolders []string
	// AllowSampled allows tier local to run without a cgroup. The memory of its sandboxes is then
	// sampled, which misses some of the memory that the kernel uses for them.
	AllowSampled bool
	// Processes is the number of Python processes that tier local keeps ready for later sessions,
	// once a session or Warm has used the tier. Zero means one; -1 means none, so that each session
	// waits a tenth of a second for its process.
	Processes int
	// DockerHost is the address of the Docker daemon, in the format of the variable DOCKER_HOST.
	// Empty means the system's socket.
	DockerHost string
	// DockerImage is tier docker's image for Python: either the name of an image with additional
	// packages, or an ID such as "sha256:…", which pins it. Empty means the image that this version
	// builds. DockerGoImage pins the image for Go by its ID.
	DockerImage, DockerGoImage string
	// Containers is the number of containers that tier docker keeps ready for later sessions. With
	// zero, a session waits for its container to start.
	Containers int
	// Inject are headers for snippets' connections to a host, by HOST:PORT as in
	// [router.Policy.Hosts]. The headers are hidden from snippets, which request http:// addresses;
	// the connection to the host uses TLS.
	Inject map[string]http.Header
	// Progress, if set, is called when a slow preparation begins.
	Progress func(what string)
	// Log receives the tiers' messages. Nil discards them.
	Log *slog.Logger
}

// Tiers returns a function for [rlm.Options.Tiers], which returns the tiers interp, wasm, docker
// and local.
func Tiers(o Options) func(wasm tiers.Tier) ([]tiers.Tier, error) {
	log := cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return func(wasm tiers.Tier) ([]tiers.Tier, error) {
		if err := endpoints.Check(slices.Collect(maps.Keys(o.Inject))); err != nil {
			return nil, fmt.Errorf("cannot add headers: %w", err)
		}

		return []tiers.Tier{
			interp.New(interp.Options{}),
			wasm,
			docker.New(docker.Options{
				Host: o.DockerHost, Image: o.DockerImage, GoImage: o.DockerGoImage,
				Warm: cmp.Or(max(0, o.Containers), -1), Inject: o.Inject, Log: log,
			}),
			local.New(local.Options{
				Python: o.Python, Folders: o.LocalFolders, AllowSampled: o.AllowSampled, Warm: o.Processes,
				Inject: o.Inject, Progress: o.Progress, Log: log,
			}),
		}, nil
	}
}

package tiers

import "context"

// Mount shows a file or folder of the host in the sandbox, read-only.
type Mount struct {
	// Source is a path on the host, Target the path in the sandbox. Both are absolute.
	Source, Target string
}

// OutFolder is the folder into which snippets write the files to be collected.
const OutFolder = "/out"

// Collector is a Sandbox whose [OutFolder] can be copied to the host.
type Collector interface {
	// Collect copies the files below OutFolder into the host's folder dir, which must be
	// empty. It refuses links, devices and names that lead outside, and reports them. It
	// must not be called while Run runs.
	Collect(ctx context.Context, dir string) (Collected, error)
}

// Collected reports which files came back.
type Collected struct {
	Files int
	Bytes int64
	// Refused names each entry that was not copied, with the reason; at most a hundred.
	Refused []string
	// Lost says why files that snippets had written are gone, empty if none are.
	Lost string
}

// Artefact is a result of a snippet that is no text, such as a figure. Its bytes come from
// the guest and are hostile.
type Artefact struct {
	// Name is unique in the session, and the name of a file: "figure-2-1.png" is the first
	// figure of the second snippet.
	Name string
	// Type is the media type, "image/png". The guest gives it, or the first bytes show it.
	Type string
	// Data are the bytes.
	Data []byte
}

package tiers

import "context"

// Mount makes a host file or folder visible in the sandbox, read-only.
type Mount struct {
	// Source is the path on the host, and Target the path in the sandbox. Both are absolute.
	Source, Target string
}

// OutFolder is the folder into which snippets write the files to be collected.
const OutFolder = "/out"

// Collector is a Sandbox whose [OutFolder] can be copied to the host.
type Collector interface {
	// Collect copies the files below OutFolder into the host folder dir, which must be empty. It
	// refuses and reports links, devices and names that lead outside OutFolder. It must not be
	// called while Run is running.
	Collect(ctx context.Context, dir string) (Collected, error)
}

// Collected reports which files were copied to the host.
type Collected struct {
	Files int
	Bytes int64
	// Refused names each entry that was not copied, with the reason; at most a hundred.
	Refused []string
	// Lost is the reason why files that snippets wrote are gone; empty if no file is gone.
	Lost string
}

// Artefact is a result of a snippet other than text, such as a figure. Its bytes are from the guest
// and are hostile.
type Artefact struct {
	// Name is unique in the session, and usable as a file name: "figure-2-1.png" is the first
	// figure of the second snippet.
	Name string
	// Type is the media type, such as "image/png". The guest sets it, or it is derived from the
	// first bytes.
	Type string
	// Data are the bytes.
	Data []byte
}

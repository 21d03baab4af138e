package tiers

import "context"

// Mount shows a file or folder of the host in the sandbox, read-only.
type Mount struct {
	// Source is a path of the host, Target where snippets find it: both absolute.
	Source, Target string
}

// OutFolder is where snippets put the files that shall come back.
const OutFolder = "/out"

// Files names what a configuration asks of the file system, empty if nothing: a
// tier without it rejects the session.
func (c Config) Files() string {
	switch {
	case len(c.Mounts) > 0:
		return "files of the host (mounts)"
	case c.Out:
		return "files that come back"
	}
	return ""
}

// RejectFiles is the rejection of a configuration whose files a tier cannot give,
// nil if it asks for none.
func RejectFiles(tier string, cfg Config) error {
	what := cfg.Files()
	if what == "" {
		return nil
	}
	return &RejectedError{
		Tier:    tier,
		Missing: what,
		Effects: EffectsNeverRan,
		Reason:  "it has no place for " + what,
	}
}

// Collector is a Sandbox that gives back the files of OutFolder.
type Collector interface {
	// Collect writes the files below OutFolder into the folder dir of the host, which
	// must be empty. Links, devices and names that lead elsewhere are refused, and
	// said in the report. It must not be called while Run runs.
	Collect(ctx context.Context, dir string) (Collected, error)
}

// Collected is what came back.
type Collected struct {
	Files int
	Bytes int64
	// Refused says of each entry that was left why; at most a hundred are listed.
	Refused []string
	// Lost says that files are gone which snippets had written, and why; empty if none
	// are.
	Lost string
}

package inputs

import (
	"context"
	"io"
	"strings"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/data/remote"
	"github.com/rlmhq/rlm/tiers"
)

// Files is a file, a folder, or several of either, as [Open] reads them. A text may be compressed
// and in any encoding; an archive is a folder. UTF-8 text is mapped, not read. A file on a server
// is copied: see [Options.Servers] before you open untrusted addresses. The files must not change
// during the session; a change causes an error, not a wrong answer.
func Files(o Options, paths ...string) rlm.Context {
	shown := make([]string, len(paths))
	for i, path := range paths {
		shown[i] = remote.Shorten(path)
	}
	return rlm.ContextOf(strings.Join(shown, ", "), func(ctx context.Context) (tiers.Input, error) {
		return Open(ctx, o, paths...)
	})
}

// Stream is the content of a stream, which is copied to an unnamed temporary file of at most limit
// bytes, and read like a file with the given name in [Files].
func Stream(o Options, name string, r io.Reader, limit int64) rlm.Context {
	return rlm.ContextOf(name, func(ctx context.Context) (tiers.Input, error) {
		return Read(ctx, o, name, r, limit)
	})
}

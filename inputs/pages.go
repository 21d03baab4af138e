package inputs

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/data/pageimages"
	"github.com/rlmhq/rlm/internal/machine/rustmodule"
)

// markPages makes the pages of a PDF drawable. The text is the converted text of the PDF, or the
// PDF itself.
func (r *reader) markPages(text *bigtext.Text) {
	file := text.Original()
	text.MarkPages(func(ctx context.Context, page, dpi int) ([]byte, error) {
		picture, err := pageimages.Draw(ctx, r.drawerStart(), io.NewSectionReader(file, 0, file.Size()), page, dpi)
		if err != nil {
			return nil, fmt.Errorf("page %d of %s: %w", page+1, filepath.Base(file.Name()), err)
		}
		return append([]byte(picture.Lacks+"\n"), picture.PNG...), nil
	})
}

func (r *reader) drawerStart() rustmodule.Start {
	o := r.documentOptions()
	return rustmodule.Start{CacheDir: o.CacheDir, Progress: o.Progress}
}

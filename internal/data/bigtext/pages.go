package bigtext

import (
	"context"
	"fmt"
)

// PageDrawer draws a page of the document behind a text, counted from 0, at a resolution in dots
// per inch. The result is a line that describes what the picture lacks (empty if nothing), followed
// by a PNG.
type PageDrawer func(ctx context.Context, page, dpi int) ([]byte, error)

// MarkPages sets how the pages of the text's document are drawn. Call it before the text is used.
func (t *Text) MarkPages(draw PageDrawer) { t.draw = draw }

// HasPages reports whether the document has pages that can be drawn.
func (t *Text) HasPages() bool { return t.draw != nil }

// DrawPage draws a page with the function that MarkPages set.
func (t *Text) DrawPage(ctx context.Context, page, dpi int) ([]byte, error) {
	if t.draw == nil {
		return nil, fmt.Errorf("%s has no pages that can be drawn", t.name)
	}
	if err := t.acquire(); err != nil {
		return nil, err
	}
	defer func() { _ = t.release() }() // Close has another reference

	return t.draw(ctx, page, dpi)
}

package session

import (
	"context"
	"strconv"

	"github.com/rlmhq/rlm/internal/data/bigtext"
)

// LongText is the size in bytes above which a guest requests parts of a text, or access to its
// characters, instead of the whole text. guest/contexts.py has the same value.
const LongText = 8 << 20

// TextMapper makes the characters of a text readable in the guest, followed by a NUL character. It
// takes the number of the text and returns the characters' place: an address in the guest's memory,
// or the path of a file in the guest. It returns the same answer for the same number, even after
// the file has changed.
type TextMapper func(
	ctx context.Context, number int, t *bigtext.Text,
) (place any, characters *bigtext.Characters, err error)

// OfferMapping enables the mapping of texts into the guest's memory. Without it, the guest requests
// each part of a long text from the host.
func (a *Accounts) OfferMapping(mapper TextMapper) { a.mapper = mapper }

func (a *Accounts) mapText(body []byte) Reply {
	number, err := strconv.Atoi(string(body))
	if err != nil {
		return fail(errRequest)
	}
	if a.mapper == nil {
		return fail(errNoMapping)
	}
	t, _, err := a.openText(number)
	// Our guests never request short texts, each of which would need an open file.
	if err == nil && t.Size() <= LongText {
		err = errShort
	}
	if err != nil {
		return fail(err)
	}

	place, c, err := a.mapper(a.calls.ctx, number, t)
	if err != nil {
		return fail(err)
	}
	return okJSON(map[string]any{
		"place": place, "width": c.Width, "chars": c.Length, "ascii": c.ASCII,
	})
}

// SumLongTexts returns the total size of the session's long texts in bytes, including those in
// directories.
func (a *Accounts) SumLongTexts() (sum int64) {
	add := func(size int64) {
		if size > LongText {
			sum += size
		}
	}
	for i, in := range a.cfg.Inputs {
		if text := a.textOf(i); text != nil {
			add(text.Size())
		}
		if in.Dir == nil {
			continue
		}
		for _, name := range in.Dir.Names() {
			if size, err := in.Dir.Size(name); err == nil {
				add(size)
			}
		}
	}
	return sum
}

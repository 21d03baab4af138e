package session

import (
	"context"
	"strconv"

	"github.com/rlmhq/rlm/internal/data/bigtext"
)

// LongText is the size in bytes above which a guest asks for parts of a text, or for its
// characters, instead of the text. It is that of guest/contexts.py.
const LongText = 8 << 20

// TextMapper lets the guest read the characters of the text with a number, and a NUL character
// after the last one. It returns them with their place: an address in the guest's memory, or the
// path of a file in the guest. It returns the same answer for the same number, also after the
// file has changed.
type TextMapper func(
	ctx context.Context, number int, t *bigtext.Text,
) (place any, characters *bigtext.Characters, err error)

// OfferMapping lets the guest have texts in its memory. Without it, the guest asks the host
// for each part of a long text.
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
	if err == nil && t.Size() <= LongText { // no guest of ours asks, and each would take an open file
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

// SumLongTexts returns how many bytes the long texts of the session have together, those of
// directories included.
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

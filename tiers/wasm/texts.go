package wasm

import (
	"context"
	"errors"
	"fmt"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/snippet/session"
)

// mappedText is a long text in the memory of a guest, where it is a real str without a copy.
type mappedText struct {
	number     int // number of the session's text
	at         span
	characters *bigtext.Characters
}

// addressSpace is the size of the largest WebAssembly memory.
const addressSpace = 4 << 30

// roomForTexts returns the address space that a session's texts may use in addition to limit
// bytes of memory. Only sessions with long texts or folders reserve it.
func roomForTexts(accounts *session.Accounts, limit uint64) uint64 {
	for _, in := range accounts.Config().Inputs {
		if in.Dir != nil || in.Text != nil && in.Text.Size() > session.LongText {
			return addressSpace - limit
		}
	}
	return 0
}

// mapText makes a text available to the guest as a str. Otherwise the guest requests each part from
// the host.
func (g *guest) mapText(
	ctx context.Context, number int, t *bigtext.Text,
) (place any, c *bigtext.Characters, err error) {
	place, c, err = g.in.mapText(ctx, number, t)
	if err != nil {
		g.engine.options.Log.Warn("a long context cannot be a str in this sandbox", "error", err)
	}
	return place, c, err
}

// mapText maps the characters of a text after the memory in use, and returns them with their
// address.
func (in *instance) mapText(
	ctx context.Context, number int, t *bigtext.Text,
) (address uint32, c *bigtext.Characters, err error) {
	for _, known := range in.texts {
		if known.number == number {
			return uint32(known.at.Start), known.characters, nil
		}
	}

	start := uint64(len(in.machine.memory()))
	if start+session.LongText > addressSpace || in.room == 0 {
		return 0, nil, errNoRoomForText
	}
	c, err = t.Characters(ctx, int64(addressSpace-start-wasmPage)) //nolint:gosec // below 4 GiB
	if err != nil {
		return 0, nil, err
	}

	pages := pagesOf(c)
	text := mappedText{number, span{start, start + pages*wasmPage}, c}
	if err := in.mem.addText(text.at); err != nil {
		return 0, nil, err
	}
	if !in.machine.grow(uint32(pages)) {
		return 0, nil, errNoRoomForText
	}
	if err := in.mem.mapText(text.at, c.File, c.Size()); err != nil {
		return 0, nil, err
	}
	in.texts = append(in.texts, text)
	return uint32(start), c, nil
}

// pagesOf returns the size of a text in pages of WebAssembly. A NUL follows the last character.
func pagesOf(c *bigtext.Characters) uint64 {
	return (uint64(c.Size()+c.Width) + wasmPage - 1) / wasmPage //nolint:gosec // not negative
}

// restoreTexts maps the texts of a checkpoint into new memory of the same size.
func (in *instance) restoreTexts(texts []mappedText) error {
	for _, text := range texts {
		err := in.mem.addText(text.at)
		if err == nil {
			err = in.mem.mapText(text.at, text.characters.File, text.characters.Size())
		}
		if err != nil {
			return fmt.Errorf("cannot restore the session's texts: %w", err)
		}
	}
	in.texts = texts
	return nil
}

var errNoRoomForText = errors.New("the sandbox has no room for this text")

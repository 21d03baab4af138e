package wasm

import (
	"bytes"
	"fmt"
	"slices"
)

// checkpoint holds the pages in which a sandbox's memory differs from the image. A sandbox can be
// restored or copied from it.
type checkpoint struct {
	size    uint64 // bytes of memory in use
	texts   []mappedText
	runs    []span
	pages   buffer // the runs' bytes, one after another
	snippet int    // the last snippet it includes
	knows   int    // the configuration it includes
}

// take copies the changed pages of a stopped guest into a checkpoint. It first resizes the
// checkpoint's buffer for them; only this step can fail, and the checkpoint is then unchanged.
func (c *checkpoint) take(in *instance, knows int) error {
	runs := changedRuns(in.mem, in.engine.image)
	if err := c.pages.resize(length(runs)); err != nil {
		return fmt.Errorf("cannot save the session's state: %w", err)
	}
	pack(c.pages.data, in.mem.bytes(), runs)

	c.size, c.runs = uint64(len(in.machine.memory())), runs
	c.texts = slices.Clone(in.texts)
	c.snippet, c.knows = in.accounts.Ordinal(), knows
	return nil
}

// apply writes the checkpoint into fresh memory.
func (c *checkpoint) apply(mem linearMemory) { unpack(mem.bytes(), c.pages.data, c.runs) }

// free returns the checkpoint's memory to the system.
func (c *checkpoint) free() {
	if c != nil {
		c.pages.free()
	}
}

// changedRuns lists the pages that differ from the image.
func changedRuns(mem linearMemory, img *image) []span {
	memory := mem.bytes()
	var runs []span
	for _, run := range mem.dirty() {
		for at := run.Start; at < run.End; at += pageSize {
			page := memory[at : at+pageSize]
			if original := img.original(at, at+pageSize); original != nil {
				if !bytes.Equal(page, original) {
					runs = appendPage(runs, at)
				}
			} else if !isZero(page) {
				runs = appendPage(runs, at)
			}
		}
	}

	return runs
}

package wasm

import "bytes"

// checkpoint holds the pages in which a sandbox's memory differs from the image. It is a
// state to return to, or to copy.
type checkpoint struct {
	size    uint64 // of the memory in use
	runs    []span
	data    []byte // the runs' bytes, one after another
	snippet int    // the last snippet in it
	knows   int    // the configuration that it has
}

// take copies the changed pages of a stopped guest.
func take(in *instance, knows int) *checkpoint {
	c := &checkpoint{
		size: uint64(in.module.Memory().Size()), snippet: in.accounts.Ordinal(), knows: knows,
	}
	memory := in.mem.bytes()
	c.runs = changedRuns(in.mem, in.engine.image)
	for _, run := range c.runs {
		c.data = append(c.data, memory[run.Start:run.End]...)
	}

	return c
}

// apply writes the checkpoint into fresh memory.
func (c *checkpoint) apply(mem linearMemory) {
	memory, data := mem.bytes(), c.data
	for _, run := range c.runs {
		n := copy(memory[run.Start:run.End], data)
		data = data[n:]
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

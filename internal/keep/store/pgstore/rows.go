package pgstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rlmhq/rlm/internal/keep/objects"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/text/texts"
)

// smallContent is the size, in bytes, up to which a content stands in the database. Most states are
// smaller, and one commit for an entry and its content takes less time than a request to an object
// store. They stand in a table of their own, because entries share contents.
const smallContent = 64 << 10

// mostInline bounds what one call adds to the database, in bytes: a message has less than 1 GiB.
const mostInline = 256 << 20

// row is an entry as the database has it.
type row struct {
	entry      *store.Entry
	digest     []byte // nil without a content
	data       []byte // nil if the data is a content
	dataDigest []byte
	small      [][2][]byte // digests and contents to add
	sum        int64
}

// size is about what the row adds to a message, in bytes.
func (r *row) size() int64 {
	n := 200 + len(r.entry.Kind) + len(r.entry.Key) + len(r.data)
	for _, content := range r.small {
		n += len(content[1])
	}
	return int64(n)
}

// prepare checks entries and stores their large contents.
func (s *Store) prepare(ctx context.Context, entries []store.Entry, c *change) error {
	if s.readOnly {
		return store.ErrReadOnly
	}
	for i := range entries {
		if err := checkEntry(&entries[i]); err != nil {
			return err
		}
	}

	c.rows, c.size = make([]row, len(entries)), 0
	for i := range entries {
		r := &c.rows[i]
		r.entry = &entries[i]
		if err := s.prepareRow(ctx, r); err != nil {
			return err
		}
		r.sum = int64(sumEntry(r.entry, r.digest))
		c.size += r.size()
	}
	if c.size > mostInline {
		return fmt.Errorf("%d entries have %d bytes at once, more than %d: add them in parts",
			len(entries), c.size, mostInline)
	}
	return nil
}

// checkEntry refuses an entry that the database could not keep.
func checkEntry(e *store.Entry) error {
	if err := e.Check(); err != nil {
		return err
	}
	if e.Digest != "" && !objects.IsDigest(e.Digest) {
		return fmt.Errorf("%.80q is not the SHA-256 of a content", e.Digest)
	}
	c := e.Cost
	most := max(c.Calls, c.InputTokens, c.OutputTokens, c.Unpriced, c.ToolCalls)
	least := min(c.Calls, c.InputTokens, c.OutputTokens, c.Unpriced, c.ToolCalls)
	if most > mostCost || least < -mostCost || !(math.Abs(c.USD) <= mostCost) { // also if it is no number
		return fmt.Errorf("an entry cannot cost %+v", c)
	}
	return nil
}

// mostCost bounds each part of the cost of an entry, so that no sum overflows.
const mostCost = 1 << 40

// prepareRow decides where the contents of an entry stand.
func (s *Store) prepareRow(ctx context.Context, r *row) (err error) {
	e := r.entry
	switch {
	case len(e.Blob) > 0:
		r.digest, err = s.addContent(ctx, r, e.Blob)
	case e.Digest != "":
		r.digest, err = s.findContent(ctx, e.Digest)
	}
	if err != nil {
		return err
	}

	if len(e.Data) <= smallContent {
		r.data = notNil(e.Data)
		return nil
	}
	r.dataDigest, err = s.addContent(ctx, r, e.Data)
	return err
}

// addContent adds a small content to the row, and stores a large one.
func (s *Store) addContent(ctx context.Context, r *row, content []byte) (digest []byte, err error) {
	sum := sha256.Sum256(content)
	if len(content) <= smallContent {
		r.small = append(r.small, [2][]byte{sum[:], content})
		return sum[:], nil
	}
	return sum[:], s.storeObject(ctx, sum[:], content)
}

// notNil returns bytes that the database does not treat as NULL.
func notNil(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

// sumEntry computes a checksum that detects accidental damage to an entry.
func sumEntry(e *store.Entry, digest []byte) uint32 {
	text := fmt.Appendf(nil, "%d %q %q %x ", e.Turn, e.Kind, e.Key, digest)
	return crc32.Update(crc32.Checksum(text, castagnoli), castagnoli, e.Data)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// columns collects values for the arrays of a statement.
type columns struct {
	logs, numbers, turns               []int64
	kinds, keys, digests, datas, large [][]byte
	sums                               []int64
	costs                              costs
	smallDigests, smallContents        [][]byte
	known                              map[string]bool // the small digests
}

// costs collects costs, a column for each part.
type costs struct {
	calls, input, output []int64
	usd                  []float64
	unpriced, tools      []int64
}

func (c *costs) add(cost store.Cost) {
	c.calls, c.input = append(c.calls, cost.Calls), append(c.input, cost.InputTokens)
	c.output, c.usd = append(c.output, cost.OutputTokens), append(c.usd, cost.USD)
	c.unpriced, c.tools = append(c.unpriced, cost.Unpriced), append(c.tools, cost.ToolCalls)
}

// arguments returns the arguments of writeSQL.
func arguments(group []*bundle) []any {
	var logs, epochs, before, batches, counts, does, turns []int64
	var statuses, reasons [][]byte
	var sums costs
	var all columns
	for _, b := range group {
		h, entries, effect := b.held, int64(0), b.changes[0]
		var sum store.Cost
		for _, c := range b.changes {
			for i := range c.rows {
				entries++
				all.addRow(h.log, entries, &c.rows[i])
				sum.Add(c.rows[i].entry.Cost)
			}
			if c.does != doesNothing {
				effect = c
			}
		}

		logs, epochs = append(logs, h.log), append(epochs, h.epoch)
		before, batches = append(before, b.before), append(batches, b.batch)
		counts, does = append(counts, entries), append(does, effect.does)
		turns, statuses = append(turns, int64(effect.state.Turn)), append(statuses, bound(effect.state.Status))
		reasons = append(reasons, bound(effect.state.Reason))
		sums.add(sum)
	}

	return []any{
		group[0].held.worker.id, logs, epochs, before, batches, counts,
		sums.calls, sums.input, sums.output, sums.usd, sums.unpriced, sums.tools, does, statuses, turns, reasons,
		all.smallDigests, all.smallContents,
		all.logs, all.numbers, all.turns, all.kinds, all.keys, all.digests, all.datas, all.large, all.sums,
		all.costs.calls, all.costs.input, all.costs.output, all.costs.usd, all.costs.unpriced, all.costs.tools,
	}
}

// bound cuts off what a status or a reason has too much.
func bound(text string) []byte { return notNil([]byte(texts.Truncate(text, store.MaxTitle))) }

// addRow adds an entry of a log.
func (c *columns) addRow(log, number int64, r *row) {
	e := r.entry
	c.logs, c.numbers, c.turns = append(c.logs, log), append(c.numbers, number), append(c.turns, int64(e.Turn))
	c.kinds, c.keys = append(c.kinds, []byte(e.Kind)), append(c.keys, []byte(e.Key))
	c.digests, c.datas = append(c.digests, r.digest), append(c.datas, r.data)
	c.large, c.sums = append(c.large, r.dataDigest), append(c.sums, r.sum)
	c.costs.add(e.Cost)
	for _, content := range r.small {
		c.addSmall(content[0], content[1])
	}
}

// addSmall adds a content once: a statement cannot add it twice.
func (c *columns) addSmall(digest, content []byte) {
	if c.known[string(digest)] {
		return
	}
	if c.known == nil {
		c.known = map[string]bool{}
	}
	c.known[string(digest)] = true
	c.smallDigests, c.smallContents = append(c.smallDigests, digest), append(c.smallContents, content)
}

// isCollected reports whether a write failed because Collect has deleted a content meanwhile.
func isCollected(err error) bool {
	var refused *pgconn.PgError
	return errors.As(err, &refused) && refused.Code == codeForeignKey
}

// parseDigest decodes a digest that was checked.
func parseDigest(digest string) []byte {
	sum, _ := hex.DecodeString(digest)
	return sum
}

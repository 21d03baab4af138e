package sessions

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// The kinds of entries. The key of a context's copy is the context's number.
const (
	kindConversation = "conversation"
	kindContext      = "context"
	kindVariables    = "variables"
)

// mostInline is the maximum size, in bytes, of a context that the conversation itself contains.
const mostInline = 16 << 10

// Kept is a conversation that this process continues. No other process can continue it until Close.
type Kept struct {
	Conversation

	keeper   *Keeper
	lease    store.Lease
	entries  []store.Entry // as in the store, without their contents
	isEmpty  bool          // the store is known to have no entries
	isNew    bool
	snapshot []byte // nil after it has been read
}

// load reads the conversation from the store, or from the file of an earlier version.
func (k *Kept) load(ctx context.Context) (err error) {
	if k.entries, err = k.keeper.entries(ctx, k.lease.ID.Name); err != nil {
		return err
	}
	if len(k.entries) > 0 {
		k.Conversation, k.snapshot, err = k.keeper.read(ctx, k.entries)
		return err
	}
	k.isEmpty = true

	file, err := k.keeper.openFile(k.lease.ID.Name)
	if file == nil || err != nil {
		k.isNew = true
		return err
	}
	defer file.Close()
	k.Conversation, k.snapshot, err = readFile(file)
	return err
}

// IsNew reports whether no conversation with this name existed.
func (k *Kept) IsNew() bool { return k.isNew }

// Snapshot returns the snapshot of the variables. It can be read only once.
func (k *Kept) Snapshot() io.Reader {
	snapshot := bytes.NewReader(k.snapshot)
	k.snapshot = nil
	return snapshot
}

// Save replaces the stored conversation and its snapshot, which snapshot writes. If nothing
// changed, it writes nothing.
func (k *Kept) Save(ctx context.Context, c Conversation, snapshot func(io.Writer) error) error {
	name := k.lease.ID.Name
	var state bytes.Buffer

	err := snapshot(&boundedWriter{&state, MaxState})
	if err == nil {
		err = k.replace(ctx, c, state.Bytes())
	}
	if err == nil {
		err = k.keeper.removeFile(name) // the store now has its content
	}
	if err != nil {
		return fmt.Errorf("cannot keep session %s: %w", name, err)
	}
	return nil
}

// replace writes a conversation to the store, unless the store already has it.
func (k *Kept) replace(ctx context.Context, c Conversation, state []byte) error {
	entries, err := encode(c, state)
	if err != nil {
		return err
	}

	for i := range entries {
		if e := &entries[i]; k.has(e.Digest) {
			e.Blob = nil // the store has the content
		}
	}
	if isSame(entries, k.entries) {
		return nil
	}

	if err := k.keeper.store.Replace(ctx, k.lease, entries...); err != nil {
		return err
	}
	for i := range entries {
		entries[i].Blob = nil
	}
	k.entries, k.isEmpty = entries, false
	return nil
}

// has reports whether an entry in the store refers to the content with this digest.
func (k *Kept) has(digest string) bool {
	return slices.ContainsFunc(k.entries, func(e store.Entry) bool { return e.Digest == digest })
}

// Close lets other processes continue the conversation. A new conversation that was not saved is
// lost.
func (k *Kept) Close() error {
	var err error
	if k.isEmpty {
		err = k.keeper.store.Remove(context.Background(), k.lease)
	}
	return errors.Join(err, k.keeper.store.Release(k.lease), k.keeper.Close())
}

// isSame reports whether two lists of entries are equal.
func isSame(a, b []store.Entry) bool {
	return slices.EqualFunc(a, b, func(x, y store.Entry) bool {
		return x.Kind == y.Kind && x.Key == y.Key && x.Digest == y.Digest && bytes.Equal(x.Data, y.Data)
	})
}

// encode returns the entries of a conversation.
func encode(c Conversation, state []byte) (entries []store.Entry, err error) {
	c.Version, c.Histories, c.Contexts = storedVersion, shorten(c.Histories), slices.Clone(c.Contexts)
	if err := c.check(); err != nil {
		return nil, err
	}

	c.Bytes = int64(len(state))
	for i := range c.Contexts {
		if content := c.Contexts[i].setApart(); content != nil {
			entries = append(entries, newContent(kindContext, strconv.Itoa(i), content))
			c.Bytes += int64(len(content))
		}
	}
	if len(state) > 0 {
		entries = append(entries, newContent(kindVariables, "", state))
	}

	text, err := json.Marshal(c)

	if err == nil && len(text) > store.MaxData {
		err = fmt.Errorf("its questions and answers have %d bytes, more than %d: begin another session",
			len(text), store.MaxData)
	}
	return append(entries, store.Entry{Kind: kindConversation, Data: text}), err
}

// setApart removes a large string or JSON value from the context and returns it, or nil if there is
// none.
func (c *Context) setApart() (content []byte) {
	switch {
	case len(c.Text) > mostInline:
		c.Apart, content, c.Text = "text", c.Text, nil
	case len(c.JSON) > mostInline:
		c.Apart, content, c.JSON = "json", c.JSON, nil
	}
	return content
}

// newContent makes an entry that has content.
func newContent(kind, key string, content []byte) store.Entry {
	sum := sha256.Sum256(content)
	return store.Entry{Kind: kind, Key: key, Blob: content, Digest: hex.EncodeToString(sum[:])}
}

// decode reads a conversation from its entries; blob returns their contents.
func decode(
	entries []store.Entry, blob func(digest string) ([]byte, error),
) (c Conversation, state []byte, err error) {
	if c, err = decodeHead(entries); err != nil {
		return c, nil, err
	}

	for _, e := range entries {
		if e.Kind == kindConversation {
			continue
		}
		content, err := blob(e.Digest)
		if err != nil {
			return c, nil, err
		}
		if e.Kind == kindVariables {
			state = content
			continue
		}

		at, err := strconv.Atoi(e.Key)
		if err != nil || at < 0 || at >= len(c.Contexts) {
			return c, nil, fmt.Errorf("it has no context %.20q", e.Key)
		}
		c.Contexts[at].takeBack(content)
	}

	if len(state) > MaxState {
		return c, nil, fmt.Errorf("its variables have %d bytes, more than %d", len(state), MaxState)
	}
	err = c.check()
	return c, state, err
}

// decodeHead reads a conversation from its entries, without separately stored contexts.
func decodeHead(entries []store.Entry) (c Conversation, err error) {
	at := slices.IndexFunc(entries, func(e store.Entry) bool { return e.Kind == kindConversation })
	if at < 0 {
		return c, errors.New("it has no conversation")
	}
	return decodeConversation(entries[at].Data, storedVersion, storedVersion)
}

// takeBack reverses setApart.
func (c *Context) takeBack(content []byte) {
	switch {
	case c.Apart == "text":
		c.Apart, c.Text = "", content
	case c.Apart == "json" && json.Valid(content):
		c.Apart, c.JSON = "", content
	}
}

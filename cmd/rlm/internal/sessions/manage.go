package sessions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// Info describes a stored session.
type Info struct {
	Name    string    `json:"name"`
	Changed time.Time `json:"changed"`
	// Bytes is the size of all stored data; for a file of an earlier version, it is the file's
	// size.
	Bytes     int64    `json:"bytes"`
	Contexts  []string `json:"contexts"`
	Questions int      `json:"questions"`
	// Damage explains why the session cannot be continued, if that is known.
	Damage string `json:"damage,omitempty"`
}

// describe adds a conversation's details, or the reason why it cannot be read.
func (i *Info) describe(c *Conversation, err error) {
	if err != nil {
		i.Damage = err.Error()
		return
	}
	for at := range c.Contexts {
		i.Contexts = append(i.Contexts, c.Contexts[at].String())
	}
	i.Questions, i.Bytes = len(c.Histories), i.Bytes+c.Bytes
}

// List describes the stored sessions, sorted by name.
func (k *Keeper) List(ctx context.Context) ([]Info, error) {
	list, err := k.listStored(ctx)
	if err != nil {
		return nil, err
	}

	files, _ := os.ReadDir(k.files) // without a folder, there are no files
	for _, file := range files {
		isStored := slices.ContainsFunc(list, func(i Info) bool { return i.Name == file.Name() })
		isSession := file.Type().IsRegular() && k.id(file.Name()).Check() == nil
		if isSession && !isStored {
			list = append(list, k.describeFile(file))
		}
	}
	slices.SortFunc(list, func(a, b Info) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// listStored describes the sessions in the store.
func (k *Keeper) listStored(ctx context.Context) (list []Info, err error) {
	if k.store == nil {
		return nil, nil
	}
	logs, err := k.store.Logs(ctx, store.Filter{Kind: store.Session})
	if err != nil {
		return nil, err
	}

	for i := range logs {
		info := Info{Name: logs[i].Name, Changed: logs[i].Updated, Contexts: []string{}}
		entries, err := k.entries(ctx, info.Name, kindConversation)
		if err == nil && len(entries) == 0 {
			continue // a process has just begun the session, or ended before the first Save
		}

		var c Conversation
		if err == nil {
			info.Bytes = int64(len(entries[0].Data))
			c, err = decodeHead(entries)
		}
		info.describe(&c, err)
		list = append(list, info)
	}
	return list, nil
}

// describeFile describes the file of a session.
func (k *Keeper) describeFile(entry os.DirEntry) Info {
	info := Info{Name: entry.Name(), Contexts: []string{}}
	if state, err := entry.Info(); err == nil {
		info.Changed, info.Bytes = state.ModTime(), state.Size()
	}

	file, err := k.openFile(entry.Name())
	if err == nil && file == nil {
		err = errors.New("it was just deleted")
	}

	var c Conversation
	if err == nil {
		c, err = readHeader(file)
		err = errors.Join(err, file.Close())
	}
	info.describe(&c, err)
	return info
}

// Exists reports whether a session is stored.
func (k *Keeper) Exists(ctx context.Context, name string) (bool, error) {
	entries, err := k.entries(ctx, name, kindConversation)
	switch {
	case len(entries) > 0, errors.Is(err, store.ErrDamaged):
		return true, nil
	case err != nil:
		return false, err
	}
	file, err := k.openFile(name)
	if file == nil || err != nil {
		return false, err
	}
	return true, file.Close()
}

// load returns the stored state of a session, even while another process continues it.
func (k *Keeper) load(ctx context.Context, name string) (c Conversation, state []byte, err error) {
	entries, err := k.entries(ctx, name)
	for err == nil && len(entries) > 0 {
		if c, state, err = k.read(ctx, entries); err == nil {
			return c, state, nil
		}
		// Another process may have replaced the entries and their contents.
		now, failed := k.entries(ctx, name)
		if failed != nil || isSame(now, entries) {
			return c, nil, err
		}
		entries, err = now, nil
	}
	if err != nil {
		return c, nil, err
	}

	file, err := k.openFile(name)
	if err == nil && file == nil {
		err = fmt.Errorf("there is no session %s: rlm sessions list shows them", name)
	}
	if err != nil {
		return c, nil, err
	}
	defer file.Close()
	return readFile(file)
}

// Fork copies a session to a new name. The contents are shared.
func (k *Keeper) Fork(ctx context.Context, name, as string) error {
	err := k.fork(ctx, name, as)
	if err != nil {
		return fmt.Errorf("cannot fork session %s: %w", name, err)
	}
	return nil
}

func (k *Keeper) fork(ctx context.Context, name, as string) error {
	c, state, err := k.load(ctx, name) // refuses a damaged session
	if err != nil {
		return err
	}
	return k.add(ctx, as, c, state)
}

// Export writes a session as a file.
func (k *Keeper) Export(ctx context.Context, name string, w io.Writer) error {
	c, state, err := k.load(ctx, name)
	if err == nil && len(state) > 0 {
		state, err = portable(state)
	}
	if err == nil {
		err = writeFile(w, c, state)
	}
	if err != nil {
		return fmt.Errorf("cannot export session %s: %w", name, err)
	}
	return nil
}

// Import stores a session that Export wrote, under a new name. The file may come from someone else,
// who must not choose which files of this machine snippets read. Without allowPaths, Import
// therefore refuses a session with files as contexts.
func (k *Keeper) Import(ctx context.Context, r io.Reader, name string, allowPaths bool) error {
	if err := k.id(name).Check(); err != nil {
		return err
	}
	c, state, err := readFile(r)
	if err == nil {
		state, err = portable(state)
	}
	if err == nil && !allowPaths {
		err = c.checkPaths()
	}
	if err == nil {
		err = k.add(ctx, name, c, state)
	}
	if err != nil {
		return fmt.Errorf("cannot keep session %s: %w", name, err)
	}
	return nil
}

// checkPaths refuses a conversation with files as contexts.
func (c *Conversation) checkPaths() error {
	for i := range c.Contexts {
		if c.Contexts[i].Path != "" || len(c.Contexts[i].Paths) > 0 {
			return fmt.Errorf("its code would read %s of this machine: pass --allow-paths if it may",
				c.Contexts[i].String())
		}
	}
	return nil
}

// add stores a conversation under a new name.
func (k *Keeper) add(ctx context.Context, name string, c Conversation, state []byte) error {
	entries, err := encode(c, state)
	if err != nil {
		return err
	}

	lease, err := k.claim(ctx, name)
	if err != nil {
		return err
	}

	exists, err := k.Exists(ctx, name)
	switch {
	case err != nil:
	case exists:
		err = fmt.Errorf("there is a session %s already: choose another name", name)
	default:
		if err = k.store.Append(ctx, lease, entries...); err != nil {
			err = errors.Join(err, k.store.Remove(ctx, lease)) // the new log is empty
		}
	}
	return errors.Join(err, k.store.Release(lease))
}

// Remove deletes a session, and the contents that no other session uses.
func (k *Keeper) Remove(ctx context.Context, name string) error {
	exists, err := k.Exists(ctx, name)
	if err != nil {
		return err
	}
	if !exists {
		return fmt.Errorf("there is no session %s: rlm sessions list shows them", name)
	}

	lease, err := k.claim(ctx, name)
	if err != nil {
		return err
	}

	if err := k.store.Remove(ctx, lease); err != nil {
		return errors.Join(err, k.store.Release(lease))
	}
	_, err = k.store.Collect(ctx)
	return errors.Join(err, k.removeFile(name))
}

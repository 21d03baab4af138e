// Package sessions stores conversations, one for each name.
//
// A [Keeper] holds the conversations of a store. Each is a log with these entries: the conversation
// as JSON, a copy of each large context, and a snapshot of the variables. Copies and snapshots are
// contents of the store, so unchanged ones are not written again. Outside the store, a conversation
// is a file; see file.go.
package sessions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/internal/data/remote"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/llm"
)

// Limits on stored data.
const (
	MaxText      = 64 << 20  // bytes of a context that has no file
	MaxState     = 256 << 20 // bytes of a snapshot before compression
	maxContexts  = 1_000
	maxQuestions = 10_000
	maxHistory   = 16 << 20 // bytes of complete histories; older ones keep only question and answer
	maxMessage   = 50_000   // characters
)

// Context is a context of a conversation: the path of a file or a directory, several paths, or a
// copy.
type Context struct {
	Path     string          `json:"path,omitempty"`  // absolute
	Paths    []string        `json:"paths,omitempty"` // absolute, if there are several
	Name     string          `json:"name,omitempty"`  // of a copy
	Variable string          `json:"variable,omitempty"`
	Text     []byte          `json:"text,omitzero"`
	JSON     json.RawMessage `json:"json,omitzero"`
	Reading  Reading         `json:"reading,omitzero"`

	// Apart says which field is stored separately, as a content of the store: "text" or "json".
	Apart string `json:"apart,omitempty"`
}

// String names the context.
func (c *Context) String() string {
	switch {
	case c.Path != "":
		return c.Path
	case len(c.Paths) > 0:
		return strings.Join(c.Paths, ", ")
	}
	return "a copy of " + c.Name
}

// Equals reports whether two contexts are the same.
func (c *Context) Equals(other *Context) bool {
	return c.Path == other.Path && slices.Equal(c.Paths, other.Paths) && c.Variable == other.Variable &&
		bytes.Equal(c.Text, other.Text) && bytes.Equal(c.JSON, other.JSON)
}

// Reading configures how the files of a context are read; see [inputs.Options].
type Reading struct {
	Include     []string `json:"include,omitempty"`
	Exclude     []string `json:"exclude,omitempty"`
	ReadIgnored bool     `json:"read_ignored,omitempty"`
	Encoding    string   `json:"encoding,omitempty"`
	CSV         []string `json:"csv,omitempty"`
	NoConvert   bool     `json:"no_convert,omitempty"`
	MaxUnpacked int64    `json:"max_unpacked,omitempty"`
	MaxRatio    int64    `json:"max_ratio,omitempty"`
}

// Options returns the options, with a folder for compiled code and notes on the progress.
func (r *Reading) Options(cacheDir string, note func(string, ...any)) inputs.Options {
	return inputs.Options{
		Include: r.Include, Exclude: r.Exclude, ReadIgnored: r.ReadIgnored, Encoding: r.Encoding,
		CSV: r.CSV, KeepDocuments: r.NoConvert, CacheDir: cacheDir, MaxUnpacked: r.MaxUnpacked, MaxRatio: r.MaxRatio,
		Progress: func(what string) { note("%s", what) },
	}
}

// Conversation is the stored data of a session, except the variables.
type Conversation struct {
	Version   int             `json:"version"`
	Contexts  []Context       `json:"contexts"`
	Histories [][]llm.Message `json:"histories"`
	// Bytes is the total size of the variables and the separately stored contexts.
	Bytes int64 `json:"bytes,omitzero"`
}

// The versions of a conversation: in a file, and in a store.
const (
	oldVersion    = 1
	fileVersion   = 2
	storedVersion = 3
)

// decodeConversation decodes a conversation whose version is between first and last.
func decodeConversation(text []byte, first, last int) (c Conversation, err error) {
	// Check the version first, because other versions have other fields.
	var other struct {
		Version int `json:"version"`
	}
	err = json.Unmarshal(text, &other)
	if err == nil && (other.Version < first || other.Version > last) {
		return c, fmt.Errorf("it has version %d, but this program reads up to version %d", other.Version, last)
	}

	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()

	if err := decoder.Decode(&c); err != nil || decoder.More() {
		return c, errors.Join(errors.New("its header is damaged"), err)
	}
	return c, nil
}

// UserFolder returns the folder for this program's persistent user data.
func UserFolder() (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "rlm"), nil
}

// check refuses an invalid or incomplete context.
func (c *Context) check() error {
	kinds := 0
	for _, given := range []bool{c.Path != "", len(c.Paths) > 0, c.Text != nil, c.JSON != nil} {
		if given {
			kinds++
		}
	}
	if kinds != 1 || c.Apart != "" {
		return fmt.Errorf("its context %q is neither a path nor a text nor JSON", c.Name)
	}

	for _, path := range append(c.Paths[:len(c.Paths):len(c.Paths)], c.Path) {
		if path != "" && !filepath.IsAbs(path) && !remote.IsAddress(path) {
			return fmt.Errorf("its context %q is not an absolute path", texts.Truncate(path, 80))
		}
	}
	return nil
}

// check refuses an invalid conversation.
func (c *Conversation) check() error {
	if len(c.Contexts) > maxContexts || len(c.Histories) > maxQuestions {
		return fmt.Errorf("it has %d contexts and %d questions, more than %d and %d",
			len(c.Contexts), len(c.Histories), maxContexts, maxQuestions)
	}

	for i := range c.Contexts {
		if err := c.Contexts[i].check(); err != nil {
			return err
		}
	}

	for _, messages := range c.Histories {
		for _, m := range messages {
			if m.Role != llm.RoleUser && m.Role != llm.RoleAssistant {
				return fmt.Errorf("it has a message with the role %q", texts.Truncate(string(m.Role), 80))
			}
		}
	}
	return nil
}

// shorten bounds the histories. The latest stay complete; older ones keep only the question and the
// answer.
func shorten(histories [][]llm.Message) [][]llm.Message {
	out := make([][]llm.Message, len(histories))
	size := 0
	for i := len(histories) - 1; i >= 0; i-- {
		messages := histories[i]
		if size > maxHistory && len(messages) > 2 {
			messages = []llm.Message{messages[0], messages[len(messages)-1]}
		}
		for _, m := range messages {
			m.Content = texts.Truncate(m.Content, maxMessage)
			size += len(m.Content)
			out[i] = append(out[i], m)
		}
	}
	return out
}

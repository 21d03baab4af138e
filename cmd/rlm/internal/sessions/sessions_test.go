package sessions

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/keep/snapshot"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/repl/llm"
)

// write returns a function that writes a snapshot.
func write(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

// useKeeper opens the keeper of a new folder.
func useKeeper(t *testing.T) *Keeper {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	return useFolder(t, filepath.Join(dir, "store"))
}

func useFolder(t *testing.T, dir string) *Keeper {
	t.Helper()
	k, err := Use(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// with continues a session in a store's folder, and closes it after use.
func with(t *testing.T, dir, name string, use func(*Kept)) {
	t.Helper()
	kept, err := Open(t.Context(), dir, name)
	if err != nil {
		t.Fatal(err)
	}
	use(kept)
	if err := kept.Close(); err != nil {
		t.Error(err)
	}
}

// save stores a conversation.
func save(t *testing.T, dir, name string, c Conversation, snapshot string) {
	t.Helper()
	with(t, dir, name, func(k *Kept) {
		if err := k.Save(t.Context(), c, write(snapshot)); err != nil {
			t.Fatal(err)
		}
	})
}

// expectSnapshot compares the snapshot of a session.
func expectSnapshot(t *testing.T, dir, name, want string) {
	t.Helper()
	with(t, dir, name, func(k *Kept) {
		if data, err := io.ReadAll(k.Snapshot()); err != nil || string(data) != want {
			t.Errorf("the snapshot of %s is %q, %v; want %q", name, data, err, want)
		}
	})
}

func said(texts ...string) []llm.Message {
	all := []llm.Message{}
	for i, text := range texts {
		all = append(all, llm.Message{Role: []llm.Role{llm.RoleUser, llm.RoleAssistant}[i%2], Content: text})
	}
	return all
}

func TestAConversationIsKept(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	dir := filepath.Join(state, "store")
	want := Conversation{
		Contexts: []Context{
			{Path: filepath.Join(dir, "a")},
			{Paths: []string{"/a", "https://example.org/b"}},
			{Name: "stdin", Text: []byte("\xff\x00")},
			{Name: "empty", Text: []byte{}},
			{Name: "long", Text: bytes.Repeat([]byte("\xff"), mostInline+1)},
			{Name: "b", JSON: json.RawMessage(`[1e400,"é"]`)},
			{Name: "c", JSON: json.RawMessage("[" + strings.Repeat("1, ", mostInline) + "1]")},
			{Name: "null", JSON: json.RawMessage(`null`)},
		},
		Histories: [][]llm.Message{said("q", "a"), said("q2", "x", "y", "a2")},
	}
	with(t, dir, "my.talk-1", func(k *Kept) {
		if !k.IsNew() || len(k.Contexts) > 0 {
			t.Errorf("a new session has %+v", k.Conversation)
		}
		for _, snapshot := range []string{"the snapshot", "another"} { // a session may be saved twice
			if err := k.Save(t.Context(), want, write(snapshot)); err != nil {
				t.Fatal(err)
			}
		}
		if err := k.Save(t.Context(), want, func(io.Writer) error { return errors.New("no snapshot") }); err == nil {
			t.Error("a failed snapshot was kept")
		}
	})

	with(t, dir, "my.talk-1", func(k *Kept) {
		if k.IsNew() || !reflect.DeepEqual(k.Contexts, want.Contexts) ||
			!reflect.DeepEqual(k.Histories, want.Histories) {
			t.Errorf("kept %+v, want %+v", k.Conversation, want)
		}
	})
	expectSnapshot(t, dir, "my.talk-1", "another")
}

// TestASessionHasOneUser checks that a second user immediately gets an error that names the first
// one.
func TestASessionHasOneUser(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	dir := filepath.Join(state, "store")
	with(t, dir, "a", func(*Kept) {
		var owned *store.OwnedError
		if k, err := Open(t.Context(), dir, "a"); !errors.As(err, &owned) || owned.Owner == "" {
			t.Errorf("a second user: %v, %v", k, err)
		}
	})
	keeper := useFolder(t, dir)
	if list, err := keeper.List(t.Context()); err != nil || len(list) > 0 {
		t.Errorf("a session that was not saved is there: %+v, %v", list, err)
	}
	if logs, err := keeper.store.Logs(t.Context(), store.Filter{}); err != nil || len(logs) > 0 {
		t.Errorf("it left %+v, %v", logs, err)
	}

	save(t, dir, "a", Conversation{}, emptySnapshot(t))
	with(t, dir, "a", func(*Kept) {
		var exported bytes.Buffer
		if err := keeper.Export(t.Context(), "a", &exported); err != nil || exported.Len() == 0 {
			t.Errorf("it cannot be read meanwhile: %v", err)
		}
		if err := keeper.Remove(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "in use by") {
			t.Errorf("it was removed meanwhile: %v", err)
		}
	})
}

// TestAnUnsavedNameCanBeTaken takes a name whose process was killed before it saved anything.
func TestAnUnsavedNameCanBeTaken(t *testing.T) {
	k := useKeeper(t)
	lease, err := k.claim(t.Context(), "a")
	if err := errors.Join(err, k.store.Release(lease)); err != nil {
		t.Fatal(err)
	}
	if err := k.add(t.Context(), "a", Conversation{}, []byte(emptySnapshot(t))); err != nil {
		t.Error(err)
	}
}

func TestOldHistoriesKeepTheirAnswer(t *testing.T) {
	long := said("q", strings.Repeat("x", 60_000), "told", "a")
	c := Conversation{}
	for range 400 {
		c.Histories = append(c.Histories, long)
	}
	entries, err := encode(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	c, _, err = decode(entries, nil)
	got := c.Histories
	if err != nil || !reflect.DeepEqual(got[0], said("q", "a")) || len(got) != 400 || len(got[399]) != 4 ||
		len(got[399][1].Content) > 51_000 {
		t.Errorf("%d kept, the first %v, the last with %d messages, %v", len(got), got[0], len(got[399]), err)
	}
}

func TestNamesCannotLeaveTheFolder(t *testing.T) {
	k := useKeeper(t)
	names := []string{"", ".", "..", "../x", "a/b", `a\b`, ".hidden", "-x", "a b", "é", strings.Repeat("a", 65)}
	for _, name := range names {
		t.Run(fmt.Sprintf("%.60s", name), func(t *testing.T) {
			for what, err := range map[string]error{
				"exported": k.Export(t.Context(), name, io.Discard),
				"removed":  k.Remove(t.Context(), name),
				"imported": k.Import(t.Context(), strings.NewReader(""), name, true),
			} {
				if err == nil || !strings.Contains(err.Error(), "cannot name a session") {
					t.Errorf("%q was %s: %v", name, what, err)
				}
			}
		})
	}
}

// keepOld writes the file of a session, as an earlier version did.
func keepOld(t *testing.T, k *Keeper, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(k.files, name)
	if err := errors.Join(os.MkdirAll(k.files, 0o700), os.WriteFile(path, data, 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestFilesOfEarlierVersionsAreRead reads files of earlier versions, the first of which did not
// compress the snapshot. The first Save moves a session into the store.
func TestFilesOfEarlierVersionsAreRead(t *testing.T) {
	var second bytes.Buffer
	if err := writeFile(&second, Conversation{}, []byte("the snapshot")); err != nil {
		t.Fatal(err)
	}
	first := append(encodeFile(t, `{"version":1,"contexts":[],"histories":[]}`), "the snapshot"...)
	for version, data := range map[string][]byte{"first": first, "second": second.Bytes()} {
		t.Run(version, func(t *testing.T) {
			dir := t.TempDir()
			t.Setenv("XDG_STATE_HOME", dir)
			k := useFolder(t, dir)
			path := keepOld(t, k, "old", data)
			if list, err := k.List(t.Context()); err != nil || len(list) != 1 || list[0].Damage != "" {
				t.Errorf("%+v, %v", list, err)
			}
			expectSnapshot(t, dir, "old", "the snapshot")
			if _, err := os.Stat(path); err != nil {
				t.Errorf("it was moved before it was saved: %v", err)
			}

			save(t, dir, "old", Conversation{}, "another")
			expectSnapshot(t, dir, "old", "another")
			if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the file: %v", err)
			}
			if list, err := k.List(t.Context()); err != nil || len(list) != 1 {
				t.Errorf("%+v, %v", list, err)
			}
		})
	}
}

func TestStatesAreBoundedAndWrittenOnce(t *testing.T) {
	k := useKeeper(t)
	lease, err := k.claim(t.Context(), "large")
	if err != nil {
		t.Fatal(err)
	}
	kept := &Kept{keeper: k, lease: lease}
	c := Conversation{Contexts: []Context{{Name: "t", Text: bytes.Repeat([]byte("y"), 1<<20)}}}
	seqs := map[int64]bool{}
	for _, snapshot := range []string{"x", "x", "z"} {
		if err := kept.Save(t.Context(), c, write(strings.Repeat(snapshot, 1<<20))); err != nil {
			t.Fatal(err)
		}
		entries, err := k.entries(t.Context(), "large")
		if err != nil || len(entries) != 3 {
			t.Fatal(entries, err)
		}
		seqs[entries[0].Seq] = true
	}
	if len(seqs) != 2 {
		t.Errorf("what had not changed was written again: %v", seqs)
	}
	if collected, err := k.store.Collect(t.Context()); err != nil || collected.Blobs != 0 {
		t.Errorf("left behind: %+v, %v", collected, err)
	}

	err = kept.Save(t.Context(), c, func(w io.Writer) error {
		part := make([]byte, 1<<20)
		for range MaxState>>20 + 1 {
			if _, err := w.Write(part); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "more than 256 MiB") {
		t.Errorf("got %v", err)
	}
}

// emptySnapshot returns the snapshot of a session without variables.
func emptySnapshot(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	if err := snapshot.Write(&b, &snapshot.Header{}, nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestMemoryStaysInTheStore checks that an exported file contains only the variables, as does an
// imported session.
func TestMemoryStaysInTheStore(t *testing.T) {
	ctx, k := t.Context(), useKeeper(t)
	header := &snapshot.Header{Namespaces: []snapshot.Namespace{{Language: "python", Format: "pickle"}}}
	var whole bytes.Buffer
	data := []snapshot.Data{{Portable: []byte("variables"), Exact: []byte("a deleted secret")}}
	if err := snapshot.Write(&whole, header, data); err != nil {
		t.Fatal(err)
	}
	hasMemory := func(state []byte) bool {
		_, data, err := snapshot.Read(bytes.NewReader(state))
		if err != nil || string(data[0].Portable) != "variables" {
			t.Errorf("%q, %v", data, err)
		}
		return len(data[0].Exact) > 0
	}

	var exported, foreign bytes.Buffer
	err := errors.Join(k.add(ctx, "a", Conversation{}, whole.Bytes()), k.Fork(ctx, "a", "copy"),
		k.Export(ctx, "a", &exported), writeFile(&foreign, Conversation{}, whole.Bytes()),
		k.Import(ctx, &foreign, "foreign", false))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"a": true, "copy": true, "foreign": false} {
		t.Run(name, func(t *testing.T) {
			if _, state, err := k.load(ctx, name); err != nil || hasMemory(state) != want {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	if _, state, err := readFile(&exported); err != nil || hasMemory(state) {
		t.Errorf("the exported file: %v", err)
	}
}

func TestADamagedSnapshotIsNotImported(t *testing.T) {
	k := useKeeper(t)
	whole := emptySnapshot(t)
	for want, text := range map[string]string{
		"ends early":   whole[:len(whole)-1],
		"is damaged":   whole[:len(whole)-1] + "\x00",
		"trailing":     whole + "x",
		"not a snapsh": "",
	} {
		t.Run(want, func(t *testing.T) {
			var exported bytes.Buffer
			if err := writeFile(&exported, Conversation{}, []byte(text)); err != nil {
				t.Fatal(err)
			}
			err := k.Import(t.Context(), &exported, "to", true)
			exists, failed := k.Exists(t.Context(), "to")
			if err == nil || !strings.Contains(err.Error(), want) || exists || failed != nil {
				t.Errorf("%v, want %s; it exists: %t, %v", err, want, exists, failed)
			}
		})
	}
}

func TestSessionsAreListedCopiedAndDeleted(t *testing.T) {
	ctx, k := t.Context(), useKeeper(t)
	c := Conversation{
		Contexts: []Context{{Path: "/etc/hosts"}}, Histories: [][]llm.Message{said("q", "a")},
	}
	kept := emptySnapshot(t)
	if err := errors.Join(k.add(ctx, "a", c, []byte(kept)), k.Fork(ctx, "a", "b")); err != nil {
		t.Fatal(err)
	}
	if _, data, err := k.load(ctx, "b"); err != nil || string(data) != kept {
		t.Errorf("the copy has %q, %v", data, err)
	}

	var exported bytes.Buffer
	if err := k.Export(ctx, "a", &exported); err != nil {
		t.Fatal(err)
	}
	for want, err := range map[string]error{
		"already":              k.Fork(ctx, "a", "b"),
		"cannot fork":          k.Fork(ctx, "none", "c"),
		"there is no session":  k.Export(ctx, "none", io.Discard),
		"no session none":      k.Remove(ctx, "none"),
		"would read /etc/host": k.Import(ctx, bytes.NewReader(exported.Bytes()), "c", false),
		"contains no session":  k.Import(ctx, strings.NewReader("x"), "c", true),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}

	if err := errors.Join(k.Import(ctx, &exported, "c", true), k.Remove(ctx, "a")); err != nil {
		t.Fatal(err)
	}
	list, err := k.List(ctx)
	if err != nil || len(list) != 2 || list[1].Name != "c" || list[1].Questions != 1 ||
		list[1].Contexts[0] != "/etc/hosts" || list[1].Bytes < int64(len(kept)) {
		t.Errorf("%+v, %v", list, err)
	}

	keepOld(t, k, "old", encodeFile(t, `{"version":1,"contexts":[],"histories":[]}`))
	err = errors.Join(k.Fork(ctx, "old", "new"), k.Remove(ctx, "old"))
	if exists, failed := k.Exists(ctx, "old"); err != nil || failed != nil || exists {
		t.Errorf("%v; the old file exists: %t, %v", err, exists, failed)
	}
}

// TestWithoutAStoreOnlyFilesAreThere checks that reading old files creates no store.
func TestWithoutAStoreOnlyFilesAreThere(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	k, err := Look(filepath.Join(dir, "store"))
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	keepOld(t, k, "old", encodeFile(t, `{"version":1,"contexts":[],"histories":[]}`))
	if list, err := k.List(t.Context()); err != nil || len(list) != 1 || list[0].Name != "old" {
		t.Errorf("%+v, %v", list, err)
	}
	if err := k.Export(t.Context(), "old", io.Discard); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "store")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the store: %v", err)
	}
}

func TestADamagedSessionIsRefused(t *testing.T) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	dir := filepath.Join(state, "store")
	k := useFolder(t, dir)
	good := encodeFile(t, `{"version":1,"contexts":[],"histories":[]}`)
	for want, data := range map[string][]byte{
		"contains no session":       []byte("hello"),
		"is damaged":                bytes.Replace(good, []byte("contexts"), []byte("Contexts"), 1),
		"has version 3":             encodeFile(t, `{"version":3,"more":1}`),
		"unknown field":             encodeFile(t, `{"version":1,"more":1}`),
		"is not an absolute path":   encodeFile(t, `{"version":1,"contexts":[{"path":"a"}],"histories":[]}`),
		"neither a path nor a text": encodeFile(t, `{"version":1,"contexts":[{}],"histories":[]}`),
		`a message with the role "system"`: encodeFile(t,
			`{"version":1,"histories":[[{"role":"system","content":""}]]}`),
		"more than 268435456":              append([]byte(magic), 0xff, 0xff, 0xff, 0xff),
		"if you do not need it, delete it": good[:len(good)-1],
	} {
		t.Run(want, func(t *testing.T) {
			keepOld(t, k, "x", data)
			expectRefused(t, dir, "x", want)
		})
	}
	path := filepath.Join(k.files, "x")
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	expectRefused(t, dir, "x", "is not a file")

	// Damage the content in the store.
	save(t, dir, "y", Conversation{}, "the snapshot")
	blobs, err := filepath.Glob(filepath.Join(dir, "blobs", "*", "*"))
	if err != nil || len(blobs) != 1 {
		t.Fatal(blobs, err)
	}
	if err := os.WriteFile(blobs[0], []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	expectRefused(t, dir, "y", store.ErrDamaged.Error())
	if err := k.Remove(t.Context(), "y"); err != nil {
		t.Errorf("it cannot be deleted: %v", err)
	}
}

// expectRefused opens a damaged session.
func expectRefused(t *testing.T, dir, name, want string) {
	t.Helper()
	if k, err := Open(t.Context(), dir, name); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%+v, %v; want %s", k, err, want)
	}
}

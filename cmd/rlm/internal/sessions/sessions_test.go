package sessions_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/cmd/rlm/internal/sessions"
	"github.com/rlmhq/rlm/internal/snapshot"
	"github.com/rlmhq/rlm/repl/llm"
)

// write returns a function that writes a snapshot.
func write(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

func open(t *testing.T, name string) *sessions.File {
	t.Helper()
	f, err := sessions.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func said(texts ...string) []llm.Message {
	all := []llm.Message{}
	for i, text := range texts {
		all = append(all, llm.Message{Role: []llm.Role{llm.RoleUser, llm.RoleAssistant}[i%2], Content: text})
	}
	return all
}

func TestAConversationIsKept(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	first := open(t, "my.talk-1")
	if first.Snapshot() != nil || len(first.Contexts) > 0 {
		t.Fatalf("a new session has %+v", first.Conversation)
	}
	want := sessions.Conversation{
		Version: 2,
		Contexts: []sessions.Context{
			{Path: filepath.Join(dir, "a")},
			{Name: "stdin", Text: []byte("\xff\x00")},
			{Name: "empty", Text: []byte{}},
			{Name: "b", JSON: json.RawMessage(`[1e400,"é"]`)},
			{Name: "null", JSON: json.RawMessage(`null`)},
		},
		Histories: [][]llm.Message{said("q", "a"), said("q2", "x", "y", "a2")},
	}
	for _, snapshot := range []string{"the snapshot", "another"} { // a session may be saved twice
		if err := first.Save(want, write(snapshot)); err != nil {
			t.Fatal(err)
		}
	}

	second := open(t, "my.talk-1")
	if !reflect.DeepEqual(second.Conversation, want) {
		t.Errorf("kept %+v, want %+v", second.Conversation, want)
	}
	if data, err := io.ReadAll(second.Snapshot()); err != nil || string(data) != "another" {
		t.Errorf("the snapshot is %q, %v", data, err)
	}
	folder := filepath.Join(dir, "rlm", "sessions")
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 {
		t.Fatalf("the folder has %v, %v", entries, err)
	}
	for path, mode := range map[string]os.FileMode{folder: 0o700, filepath.Join(folder, "my.talk-1"): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s has mode %v, %v", path, info.Mode(), err)
		}
	}

	// A file that changed meanwhile, or could not be written, stays as it is.
	if err := second.Save(want, func(io.Writer) error { return errors.New("no snapshot") }); err == nil {
		t.Error("a failed snapshot was kept")
	}
	if err := second.Save(want, write("theirs")); err != nil {
		t.Fatal(err)
	}
	if err := first.Save(want, write("mine")); err == nil || !strings.Contains(err.Error(), "another run") {
		t.Errorf("a session of others was overwritten: %v", err)
	}
	if data, err := io.ReadAll(open(t, "my.talk-1").Snapshot()); err != nil || string(data) != "theirs" {
		t.Errorf("the snapshot is %q, %v", data, err)
	}
}

func TestOldHistoriesKeepTheirAnswer(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	long := said("q", strings.Repeat("x", 60_000), "told", "a")
	c := sessions.Conversation{}
	for range 400 {
		c.Histories = append(c.Histories, long)
	}
	f := open(t, "long")
	if err := f.Save(c, write("")); err != nil {
		t.Fatal(err)
	}
	got := open(t, "long").Histories
	if !reflect.DeepEqual(got[0], said("q", "a")) || len(got) != 400 || len(got[399]) != 4 ||
		len(got[399][1].Content) > 51_000 {
		t.Errorf("%d kept, the first %v, the last with %d messages", len(got), got[0], len(got[399]))
	}
}

func TestNamesCannotLeaveTheFolder(t *testing.T) {
	names := []string{"", ".", "..", "../x", "a/b", `a\b`, ".hidden", "-x", "a b", "é", strings.Repeat("a", 65)}
	for _, name := range names {
		if path, err := sessions.Path(name); err == nil {
			t.Errorf("%q has the file %s", name, path)
		}
	}
}

// TestOldFilesAreRead: their snapshots are not compressed.
func TestOldFilesAreRead(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	path, err := sessions.Path("old")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(path), 0o700)
	}
	data := append(encode(t, `{"version":1,"contexts":[],"histories":[]}`), "the snapshot"...)
	if err := errors.Join(err, os.WriteFile(path, data, 0o600)); err != nil {
		t.Fatal(err)
	}
	old := open(t, "old")
	if data, err := io.ReadAll(old.Snapshot()); err != nil || string(data) != "the snapshot" {
		t.Errorf("%q, %v", data, err)
	}
	if err := old.Save(old.Conversation, write("another")); err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(open(t, "old").Snapshot()); err != nil || string(data) != "another" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestStatesAreCompressedAndBounded(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	f := open(t, "large")
	if err := f.Save(sessions.Conversation{}, write(strings.Repeat("x", 1<<20))); err != nil {
		t.Fatal(err)
	}
	path, err := sessions.Path("large")
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(path)
	if err != nil || before.Size() > 10_000 {
		t.Errorf("%d bytes, %v", before.Size(), err)
	}

	// The same again is not written again.
	if err := f.Save(sessions.Conversation{}, write(strings.Repeat("x", 1<<20))); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("it was written again, %v", err)
	}

	err = f.Save(sessions.Conversation{}, func(w io.Writer) error {
		part := make([]byte, 1<<20)
		for range sessions.MaxState>>20 + 1 {
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
	if err := snapshot.Write(&b, &snapshot.Header{Version: snapshot.Version}, nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestADamagedSnapshotIsNotImported(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	whole := emptySnapshot(t)
	for want, text := range map[string]string{
		"ends early":   whole[:len(whole)-1],
		"is damaged":   whole[:len(whole)-1] + "\x00",
		"trailing":     whole + "x",
		"not a snapsh": "",
	} {
		from := open(t, "from")
		if err := from.Save(sessions.Conversation{}, write(text)); err != nil {
			t.Fatal(err)
		}
		var exported bytes.Buffer
		if err := sessions.Export("from", &exported); err != nil {
			t.Fatal(err)
		}
		err := sessions.Import(&exported, "to", true)
		if err == nil || !strings.Contains(err.Error(), want) || slices.Contains(sessions.Names(), "to") {
			t.Errorf("%v, want %s; there are %v", err, want, sessions.Names())
		}
	}
}

func TestSessionsAreListedCopiedAndDeleted(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	c := sessions.Conversation{
		Contexts: []sessions.Context{{Path: "/etc/hosts"}}, Histories: [][]llm.Message{said("q", "a")},
	}
	kept := emptySnapshot(t)
	if err := open(t, "a").Save(c, write(kept)); err != nil {
		t.Fatal(err)
	}
	if err := sessions.Fork("a", "b"); err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(open(t, "b").Snapshot()); err != nil || string(data) != kept {
		t.Errorf("the copy has %q, %v", data, err)
	}

	var exported bytes.Buffer
	if err := sessions.Export("a", &exported); err != nil {
		t.Fatal(err)
	}
	for want, err := range map[string]error{
		"already":              sessions.Fork("a", "b"),
		"cannot fork":          sessions.Fork("none", "c"),
		"there is no session":  sessions.Export("none", io.Discard),
		"would read /etc/host": sessions.Import(bytes.NewReader(exported.Bytes()), "c", false),
		"contains no session":  sessions.Import(strings.NewReader("x"), "c", true),
		"cannot name":          sessions.Import(strings.NewReader("x"), "../c", true),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}

	if err := errors.Join(sessions.Import(&exported, "c", true), sessions.Remove("a")); err != nil {
		t.Fatal(err)
	}
	list, err := sessions.List()
	if err != nil || len(list) != 2 || list[1].Name != "c" || list[1].Questions != 1 ||
		list[1].Contexts[0] != "/etc/hosts" {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestAFileThatIsNoSessionIsRefused(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_STATE_HOME", dir)
	path, err := sessions.Path("x")
	if err != nil {
		t.Fatal(err)
	}
	good := encode(t, `{"version":1,"contexts":[],"histories":[]}`)
	for want, data := range map[string][]byte{
		"contains no session":              []byte("hello"),
		"is damaged":                       bytes.Replace(good, []byte("contexts"), []byte("Contexts"), 1),
		"has version 3":                    encode(t, `{"version":3,"more":1}`),
		"unknown field":                    encode(t, `{"version":1,"more":1}`),
		"neither a path nor a text":        encode(t, `{"version":1,"contexts":[{"path":"a"}],"histories":[]}`),
		`a message with the role "system"`: encode(t, `{"version":1,"histories":[[{"role":"system","content":""}]]}`),
		"more than 268435456":              append([]byte("rlm-session\n"), 0xff, 0xff, 0xff, 0xff),
		"if you do not need it, delete":    good[:len(good)-1],
	} {
		if err := os.WriteFile(path, data, 0o600); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		} else if err != nil {
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if f, err := sessions.Open("x"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v", want, f, err)
		}
	}
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := sessions.Open("x"); err == nil || !strings.Contains(err.Error(), "it is not a file") {
		t.Errorf("a folder: %v", err)
	}
}

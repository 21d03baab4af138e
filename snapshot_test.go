package rlm_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cespare/xxhash/v2"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/keep/snapshot"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// snapshotOf takes a snapshot.
func snapshotOf(t *testing.T, session *rlm.Session) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := session.Snapshot(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestASnapshotIsRestored(t *testing.T) {
	long := rlm.File(file(t, "long.txt", strings.Repeat("x", longText)))
	cfg := rlm.SessionConfig{
		Contexts:  []rlm.Context{long},
		Functions: []rlm.Function{rlm.Func("ping", "", ping)},
	}
	session := open(t, cfg)
	prints(t, session, `class Box:
    def __init__(self, n): self.n = n
    def get(self): return self.n + ping()
shared = [1]
both = {"a": shared, "b": shared}
box, part, gen = Box(41), context[5:9], (n for n in [1])`, "")
	data := snapshotOf(t, session)
	if err := session.Close(); err != nil {
		t.Fatal(err)
	}

	for range 2 {
		again := open(t, cfg)
		report, err := again.Restore(t.Context(), iotest.OneByteReader(bytes.NewReader(data)))
		if err != nil || !report.Exact || len(report.Left) > 0 || report.Moved < 5 {
			t.Fatalf("%+v, %v", report, err)
		}
		prints(t, again, "shared.append(2)\nprint(box.get(), both, part, len(context), next(gen))",
			"42 {'a': [1, 2], 'b': [1, 2]} xxxx 8388609 1\n")
	}
}

// TestASnapshotWithoutItsPagesIsRestored checks snapshots without usable pages: for another version
// of the program, or for a session that the pages do not fit.
func TestASnapshotWithoutItsPagesIsRestored(t *testing.T) {
	session := open(t, rlm.SessionConfig{})
	prints(t, session, "gen = (n for n in [1])\nx = 20", "")
	data := snapshotOf(t, session)

	for _, again := range []struct {
		cfg  rlm.SessionConfig
		data []byte
		why  string
	}{
		{rlm.SessionConfig{Limits: tiers.Limits{Memory: 256 << 20}}, data, "limit of memory"},
		{rlm.SessionConfig{Deterministic: true}, data, "only one of the sessions is deterministic"},
		{rlm.SessionConfig{}, withoutPages(t, data), ""},
	} {
		other := open(t, again.cfg)
		report, err := other.Restore(t.Context(), bytes.NewReader(again.data))
		if err != nil || report.Exact || len(report.Left) != 1 || report.Left[0].Name != "gen" {
			t.Errorf("%+v, %v", report, err)
		}
		if (report.Inexact == "") != (again.why == "") || !strings.Contains(report.Inexact, again.why) {
			t.Errorf("the exact state was not restored because %q, want %q", report.Inexact, again.why)
		}
		prints(t, other, "print(x)", "20\n")
	}
}

// withoutPages returns a snapshot without its exact states.
func withoutPages(t *testing.T, data []byte) []byte {
	t.Helper()
	header, parts, err := snapshot.Read(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	w := &boundedWriter{left: int64(len(data) - 1)}
	if err := snapshot.Write(w, header, parts); err != nil {
		t.Fatal(err)
	}
	if w.Len() >= len(data) {
		t.Errorf("%d of %d bytes", w.Len(), len(data))
	}
	return w.Bytes()
}

// boundedWriter is a writer without room for a whole snapshot.
type boundedWriter struct {
	bytes.Buffer
	left int64
}

// Room implements [snapshot.Bounded].
func (w *boundedWriter) Room() int64 { return w.left }

func TestASnapshotKeepsShortContextsInVariables(t *testing.T) {
	cfg := rlm.SessionConfig{Contexts: []rlm.Context{
		rlm.File(file(t, "short.txt", "hello")), rlm.Text("short.bin", "a\x00\xff"),
	}}
	session := open(t, cfg)
	prints(t, session, "text, both = context, [context, context_1]", "")

	again := open(t, cfg)
	report, err := again.Restore(t.Context(), bytes.NewReader(snapshotOf(t, session)))
	if err != nil || len(report.Left) > 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	prints(t, again, "print(text, text == context, both == [context, context_1])", "hello True True\n")
}

// TestASnapshotHasTheFilesBelowOut checks that the files are restored, or reported as left behind
// in a session without the folder.
func TestASnapshotHasTheFilesBelowOut(t *testing.T) {
	cfg := rlm.SessionConfig{Out: true, Policy: rlm.Policy{Pin: rlm.TierWasm}}
	session := open(t, cfg)
	prints(t, session, "import os\nos.mkdir('/out/d')\nopen('/out/d/a.bin', 'wb').write(bytes([0, 255])); x = 1", "")
	data := snapshotOf(t, session)

	again := open(t, cfg)
	report, err := again.Restore(t.Context(), bytes.NewReader(data))
	if err != nil || len(report.Left) > 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	dir := t.TempDir()
	if got, err := again.Files(t.Context(), dir); err != nil || got.Files != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "d", "a.bin")); err != nil || string(got) != "\x00\xff" {
		t.Errorf("%q, %v", got, err)
	}

	cfg.Out = false
	without := open(t, cfg)
	report, err = without.Restore(t.Context(), bytes.NewReader(data))
	if err != nil || len(report.Left) != 1 || report.Left[0].Name != "files below /out" {
		t.Errorf("%+v, %v", report, err)
	}
	prints(t, without, "print(x)", "1\n")
}

// TestALargeSnapshotIsRestored restores a snapshot for which memory is allocated in advance, and
// checks that a failed restore does not affect later sessions.
func TestALargeSnapshotIsRestored(t *testing.T) {
	cfg := rlm.SessionConfig{Policy: rlm.Policy{Pin: rlm.TierWasm}}
	session := open(t, cfg)
	prints(t, session, "data = [bytes([i]) * (1 << 20) for i in range(9)]", "")
	data := snapshotOf(t, session)
	const check = "print([len(set(d)) for d in data], [d[0] for d in data], len(data[8]))"
	const want = "[1, 1, 1, 1, 1, 1, 1, 1, 1] [0, 1, 2, 3, 4, 5, 6, 7, 8] 1048576\n"

	damaged := withoutPages(t, data)
	damaged = damaged[:len(damaged)-sha256.Size/4]
	at := bytes.Index(damaged, []byte("data"))
	clear(damaged[at : at+1000]) // the beginning of the pickle
	damaged = binary.BigEndian.AppendUint64(damaged, xxhash.Sum64(damaged))
	for range 3 {
		again := open(t, cfg)
		if report, err := again.Restore(t.Context(), bytes.NewReader(data)); err != nil || len(report.Left) > 0 {
			t.Fatalf("%+v, %v", report, err)
		}
		prints(t, again, check, want)
		if _, err := again.Run(t.Context(), "import os; os._exit(1)"); err != nil {
			t.Fatal(err)
		}
		prints(t, again, check, want) // the session has returned to the restored state
		if err := again.Close(); err != nil {
			t.Error(err)
		}

		broken := open(t, cfg)
		report, err := broken.Restore(t.Context(), bytes.NewReader(damaged))
		if err == nil && len(report.Left) == 0 || err != nil && strings.Contains(err.Error(), "checksum") {
			t.Errorf("a damaged stream: %+v, %v", report, err)
		}
		if err := broken.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestASnapshotOfNothingRestoresNothing(t *testing.T) {
	data := snapshotOf(t, open(t, rlm.SessionConfig{}))
	session := open(t, rlm.SessionConfig{})
	if report, err := session.Restore(t.Context(), bytes.NewReader(data)); err != nil ||
		report.Moved != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	prints(t, session, "print(1)", "1\n")
	if _, err := session.Restore(t.Context(), bytes.NewReader(data)); err == nil ||
		!strings.Contains(err.Error(), "open another one") {
		t.Errorf("a session that has run: %v", err)
	}
}

// sealed makes a snapshot from a head and data, with a correct checksum.
func sealed(head, data string) []byte {
	b := append([]byte("rlm-snapshot\n"), binary.BigEndian.AppendUint32(nil, uint32(len(head)))...)
	b = append(append(b, head...), data...)
	sum := sha256.Sum256(b)
	return append(b, sum[:]...)
}

func TestADamagedSnapshotIsRefused(t *testing.T) {
	session := open(t, rlm.SessionConfig{})
	prints(t, session, "x = 1", "")
	whole := snapshotOf(t, session)
	cut := func(n int) []byte { return whole[:len(whole)-n] }
	changed := slices.Clone(whole)
	changed[len(changed)-40] ^= 1
	namespace := `{"language":"python","format":"pickle","from":"wasm","snippet":1,"bytes":`
	for want, data := range map[string][]byte{
		"not a snapshot":    []byte("PK\x03\x04"),
		"ends early":        cut(1),
		"checksum":          changed,
		"trailing data":     append(slices.Clone(whole), 0),
		"header has":        append([]byte("rlm-snapshot\n"), 0xff, 0xff, 0xff, 0xff),
		"version 9":         sealed(`{"version":9,"later":1}`, ""),
		"unknown field":     sealed(`{"version":1,"later":1}`, ""),
		"header is damaged": sealed(`{"version":`, ""),
		"taken with 1":      sealed(`{"version":1,"contexts":[{"kind":"text","bytes":3}],"namespaces":[]}`, ""),
		"language \"ruby\"": sealed(`{"version":1,"contexts":[],"namespaces":[{"language":"ruby"}]}`, ""),
		"format \"zip\"": sealed(`{"version":1,"contexts":[],`+
			`"namespaces":[{"language":"go","format":"zip"}]}`, ""),
		"-1 bytes":       sealed(`{"version":1,"contexts":[],"namespaces":[`+namespace+`-1}]}`, ""),
		"unexpected EOF": sealed(`{"version":1,"contexts":[],"namespaces":[`+namespace+`900000000}]}`, "short"),
		"have 1073741825 bytes": sealed(`{"version":1,"contexts":[],`+
			`"namespaces":[`+namespace+`1073741825}]}`, "short"),
		"after 8388609 snippets": sealed(`{"version":1,"contexts":[],"namespaces":[`+
			`{"language":"go","format":"replay","snippet":8388609}]}`, ""),
		"exact state of 1 bytes":  sealed(`{"version":1,"contexts":[],"namespaces":[`+namespace+`0,"exact":1}]}`, "x"),
		"exact state of -1 bytes": sealed(`{"version":3,"contexts":[],"namespaces":[`+namespace+`0,"exact":-1}]}`, ""),
		"exact state of 900000000 bytes": sealed(`{"version":3,"contexts":[],`+
			`"namespaces":[`+namespace+`0,"exact":900000000}]}`, ""),
		"twice": sealed(`{"version":1,"contexts":[],`+
			`"namespaces":[`+namespace+`0},`+namespace+`0}]}`, ""),
		"restore the snapshot": sealed(`{"version":1,"contexts":[],"namespaces":[`+namespace+`9}]}`, "not state"),
	} {
		t.Run(want, func(t *testing.T) {
			fresh := open(t, rlm.SessionConfig{Policy: router.Policy{Pin: "wasm"}})
			_, err := fresh.Restore(t.Context(), bytes.NewReader(data))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", want, err)
			}
			prints(t, fresh, "print(1)", "1\n")
		})
	}
	broken := errors.New("the disk is gone")
	session = open(t, rlm.SessionConfig{})
	if _, err := session.Restore(t.Context(), iotest.ErrReader(broken)); err == nil {
		t.Error("a broken reader is not an error")
	}
}

// TestASnapshotOfAnEarlierVersionIsRestored uses the checksum of version 1, which is a SHA-256.
func TestASnapshotOfAnEarlierVersionIsRestored(t *testing.T) {
	session := open(t, rlm.SessionConfig{})
	prints(t, session, "x = 20", "")
	data := withoutPages(t, snapshotOf(t, session))
	head := len("rlm-snapshot\n") + 4
	end := head + int(binary.BigEndian.Uint32(data[head-4:]))
	header := strings.Replace(string(data[head:end]), `"version":2`, `"version":1`, 1)
	old := sealed(header, string(data[end:len(data)-8]))

	again := open(t, rlm.SessionConfig{})
	if _, err := again.Restore(t.Context(), bytes.NewReader(old)); err != nil {
		t.Fatal(err)
	}
	prints(t, again, "print(x + 1)", "21\n")

	old[len(old)-40] ^= 1
	_, err := open(t, rlm.SessionConfig{}).Restore(t.Context(), bytes.NewReader(old))
	if err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("a flipped bit: %v", err)
	}
}

// TestARestoredSessionReturnsToItsState kills the first snippet after a restore, twice.
func TestARestoredSessionReturnsToItsState(t *testing.T) {
	const endless = "x = 'changed'\nwhile True:\n try:\n  while True: pass\n except BaseException: pass"
	cfg := rlm.SessionConfig{
		Policy: rlm.Policy{Pin: rlm.TierWasm}, Limits: tiers.Limits{Fuel: 20_000_000},
		Contexts: []rlm.Context{rlm.Text("t", strings.Repeat("five.", 1<<20))},
	}
	session := open(t, cfg)
	prints(t, session, "def f(): return x + 1\nx = 20\npart = context[5:9_000]", "")
	data := snapshotOf(t, session)

	again := open(t, cfg)
	if _, err := again.Restore(t.Context(), bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	for _, number := range []int{2, 4} {
		result, err := again.Run(t.Context(), endless)
		if err != nil || result.Limit != tiers.LimitFuel || result.Lost == nil ||
			!slices.Contains(result.Lost.Snippets, number) {
			t.Fatalf("%+v, %v", result, err)
		}
		prints(t, again, "print(f(), len(part), part[:5])", "21 8995 five.\n")
	}
}

func TestASnapshotKnowsItsContexts(t *testing.T) {
	session := open(t, rlm.SessionConfig{Contexts: []rlm.Context{rlm.Text("t", "five.")}})
	data := snapshotOf(t, session)
	other := open(t, rlm.SessionConfig{Contexts: []rlm.Context{rlm.Text("t", "another")}})
	if _, err := other.Restore(t.Context(), bytes.NewReader(data)); err == nil ||
		!strings.Contains(err.Error(), "context_0 was a text of size 5") {
		t.Errorf("%v", err)
	}
}

// FuzzRestore gives a session hostile snapshots. The session must refuse each one, or continue to
// work.
func FuzzRestore(f *testing.F) {
	fake := newFakeTier("mine")
	engine, err := rlm.New(rlm.Options{CacheDir: "none", Tiers: only(fake)})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = engine.Close() })
	f.Add([]byte(nil))
	f.Add(sealed(`{"version":1,"contexts":[],"namespaces":[]}`, ""))
	f.Add(
		sealed(
			`{"version":1,"contexts":[],"namespaces":[{"language":"python","format":"pickle","bytes":4}]}`,
			"data",
		),
	)
	f.Fuzz(func(t *testing.T, data []byte) {
		session, err := engine.Open(t.Context(), pinned())
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		for _, r := range []io.Reader{bytes.NewReader(data), bytes.NewReader(sealHead(data))} {
			_, _ = session.Restore(t.Context(), r)
		}
		if _, err := session.Run(t.Context(), "1"); err != nil {
			t.Error(err)
		}
		for len(fake.configs) > 0 {
			<-fake.configs
		}
	})
}

// sealHead makes data the head of a snapshot with a correct checksum.
func sealHead(data []byte) []byte {
	head, rest, _ := strings.Cut(string(data), "\x00")
	return sealed(head, rest)
}

// runGo runs a Go snippet, which must print want.
func runGo(t *testing.T, session *rlm.Session, source, want string) {
	t.Helper()
	result, err := session.RunJob(t.Context(), tiers.Job{Language: tiers.Go, Source: source})
	if err != nil || result.Status != tiers.StatusOK || result.Stdout != want {
		t.Errorf("%s\nprints %q, want %q: %v\n%s", source, result.Stdout, want, err, trouble(result))
	}
}

func TestASnapshotOfBothLanguagesIsRestored(t *testing.T) {
	lightest := rlm.SessionConfig{Policy: rlm.Policy{Tiers: []string{"interp", "wasm"}}}
	session := open(t, lightest)
	runGo(t, session, "n := 41", "")
	prints(t, session, "import json\nn = json.loads('20')", "")
	data := snapshotOf(t, session)

	again := open(t, lightest)
	if _, err := again.Restore(t.Context(), bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	runGo(t, again, `import "fmt"; fmt.Println(n + 1)`, "42\n")
	prints(t, again, "print(n + 1)", "21\n")
}

func TestAFailedRestoreLeavesTheSessionUnchanged(t *testing.T) {
	session := open(t, rlm.SessionConfig{})
	runGo(t, session, "n := 41", "")
	prints(t, session, "import json\nn = 20", "")
	data := snapshotOf(t, session)

	pythonOnly := open(t, rlm.SessionConfig{Policy: rlm.Policy{Pin: "wasm"}})
	report, err := pythonOnly.Restore(t.Context(), bytes.NewReader(data))
	if !errors.Is(err, rlm.ErrNoTier) || report.Moved != 0 {
		t.Errorf("%+v, %v", report, err)
	}
	prints(t, pythonOnly, "print('n' in globals())", "False\n")
}

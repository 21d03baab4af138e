package calllog_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/calllog"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ask returns a request with one message.
func ask(text string) llm.Request {
	return llm.Request{Model: "m", Messages: []llm.Message{{Role: llm.RoleUser, Content: text}}}
}

// open opens a call log in a new directory.
func open(t *testing.T) (path string, log *calllog.Log) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "run.jsonl")
	log, err := calllog.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() }) // a test may have closed it already

	return path, log
}

// play loads a call log for replay.
func play(t *testing.T, path string) llm.Provider {
	t.Helper()
	replay, err := calllog.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return replay.Provider("p")
}

// counting answers with the number of the call.
func counting() llm.Func {
	calls := 0
	return func(r llm.Request) (llm.Response, error) {
		calls++
		if strings.HasPrefix(r.Messages[0].Content, "fail") {
			return llm.Response{}, &llm.Error{
				Kind: kind.ErrContextLength, Status: 400, Message: "too long",
			}
		}

		return llm.Response{
			Text: fmt.Sprint(calls), Structured: true, Finish: llm.FinishLength,
		}, nil
	}
}

func TestRecordedCallsAreReplayed(t *testing.T) {
	path, log := open(t)
	p := log.Wrap("p", counting())
	half := 0.5
	requests := []llm.Request{
		ask("a"), ask("b"), ask("a"), ask("fail"),
		ask("\xff\xfe \ufffd \\ufffd <&> \u2028"),
	}
	requests[1].Schema, requests[1].Temperature,
		requests[1].Stop = json.RawMessage(`{ "type": "boolean" }`), &half, []string{"x"}
	for i := range requests {
		requests[i].Metadata.Turn = i
	}
	type ending struct {
		response llm.Response
		err      string
	}
	run := func(p llm.Provider) (all []ending) {
		for _, r := range requests {
			response, err := p.Complete(t.Context(), r, nil)
			kind := ""
			if failure := (*llm.Error)(nil); errors.As(err, &failure) {
				kind = fmt.Sprint(failure.Kind, failure.Status, failure.Message)
			}
			all = append(all, ending{response, kind})
		}

		return all
	}
	recorded := fmt.Sprint(run(p))
	replay := play(t, path)
	for i := range requests {
		requests[i].Metadata.Turn = 100 // metadata is not part of the hash
	}
	if played := fmt.Sprint(run(replay)); played != recorded {
		t.Errorf("played\n%s\nrecorded\n%s", played, recorded)
	}
	var streamed string
	stream := func(s string) { streamed += s }
	_, err := play(t, path).Complete(t.Context(), requests[0], stream)
	if err != nil || streamed != "1" {
		t.Errorf("streamed %q, %v", streamed, err)
	}

	for name, r := range map[string]llm.Request{"once more": requests[0], "another": ask("c")} {
		t.Run(name, func(t *testing.T) {
			if _, err := replay.Complete(t.Context(), r, nil); !errors.Is(err, kind.ErrNoReply) {
				t.Errorf("%s: got %v", name, err)
			}
		})
	}

	text, err := os.ReadFile(path)
	if info, _ := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 ||
		strings.Count(string(text), "\n") != 6 {
		t.Errorf("the file is %v, %v:\n%s", info.Mode(), err, text)
	}
}

func TestARecordIsWrittenByManyAtOnce(t *testing.T) {
	path, log := open(t)
	p := log.Wrap("p", llm.Func(func(r llm.Request) (llm.Response, error) {
		return llm.Response{Text: strings.Repeat(r.Messages[0].Content, 1000)}, nil
	}))
	each := func(p llm.Provider) {
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				got, err := p.Complete(t.Context(), ask(fmt.Sprint("n", i, " ")), nil)
				if err != nil || !strings.HasPrefix(got.Text, fmt.Sprint("n", i, " ")) {
					t.Errorf("%d: got %.20q, %v", i, got.Text, err)
				}
			})
		}

		wg.Wait()
	}
	each(p)
	each(play(t, path))
}

func TestAKilledRecorderLosesOnlyTheLineItWrote(t *testing.T) {
	path, log := open(t)
	if _, err := log.Wrap("p", counting()).Complete(t.Context(), ask("a"), nil); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	unfinished := whole[len(whole)-60 : len(whole)-1]
	if err := os.WriteFile(path, append(whole, unfinished...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := play(t, path).Complete(t.Context(), ask("a"), nil); err != nil {
		t.Error(err)
	}
	again, err := calllog.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()

	if _, err := again.Wrap("p", counting()).Complete(t.Context(), ask("b"), nil); err != nil {
		t.Fatal(err)
	}
	p := play(t, path)
	for _, text := range []string{"a", "b"} {
		if _, err := p.Complete(t.Context(), ask(text), nil); err != nil {
			t.Error(err)
		}
	}
}

func TestCancelledCallsAreNotRecorded(t *testing.T) {
	path, log := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := log.Wrap("p", counting()).Complete(ctx, ask("a"), nil)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if text, _ := os.ReadFile(path); bytes.Count(text, []byte("\n")) != 1 {
		t.Errorf("the record is %s", text)
	}
}

func TestACallThatCannotBeRecordedFails(t *testing.T) {
	_, log := open(t)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Wrap("p", counting()).Complete(t.Context(), ask("a"), nil); err == nil {
		t.Error("nobody noticed")
	}
}

func TestOtherFilesAreNoRecords(t *testing.T) {
	const head = `{"format":"rlm-llm-record","version":1}` + "\n"
	for name, c := range map[string]struct{ text, says string }{
		"text":     {"hello\n", "line 1"},
		"version":  {`{"format":"rlm-llm-record","version":2}` + "\n", "version 2"},
		"not JSON": {head + "x\n", "line 2"},
		"hash": {head +
			`{"hash":"00","provider":"p","metadata":{},"request":{"messages":null},` +
			`"response":{"text":"","model":"","finish":"","usage":{}}}` + "\n", "hash"},
		"unknown":   {head + `{"key":"00"}` + "\n", "key"},
		"two":       {head + "{}{}\n", "line 2"},
		"empty row": {head + "\n", "line 2"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "r")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}

			if _, err := calllog.Load(path); !errors.Is(err, kind.ErrBadFile) ||
				!strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: got %v", name, err)
			}

			if strings.HasPrefix(c.text, head) {
				return
			}
			if _, err := calllog.Open(path); !errors.Is(err, kind.ErrBadFile) {
				t.Errorf("%s: opened for writing: %v", name, err)
			}
			if text, _ := os.ReadFile(path); string(text) != c.text {
				t.Errorf("%s: the file was changed to %q", name, text)
			}
		})
	}

	if _, err := calllog.Load("nowhere"); !errors.Is(err, kind.ErrBadFile) {
		t.Errorf("got %v", err)
	}
}

func FuzzParse(f *testing.F) {
	path := filepath.Join(f.TempDir(), "run.jsonl")
	log, err := calllog.Open(path)
	if err != nil {
		f.Fatal(err)
	}
	p := log.Wrap("p", counting())
	for _, text := range []string{"a", "fail", "\xff"} {
		_, _ = p.Complete(f.Context(), ask(text), nil)
	}
	if err := log.Close(); err != nil {
		f.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add(text[:len(text)-5])
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		replay, err := calllog.Parse(bytes.NewReader(text))
		if err != nil {
			return
		}

		_, err = replay.Provider("p").Complete(t.Context(), ask("a"), nil)
		if failure := (*llm.Error)(nil); err != nil && !errors.As(err, &failure) {
			t.Errorf("got %v", err)
		}
	})
}

// FuzzRoundTrip checks that any recorded text can be replayed.
func FuzzRoundTrip(f *testing.F) {
	f.Add("a", `{"type":"boolean"}`)
	f.Add("\xff\ufffd\\ufffd", ` {"a" : "\xff"}`)
	f.Fuzz(func(t *testing.T, text, schema string) {
		r := ask(text)
		if r.Schema = json.RawMessage(schema); !json.Valid(r.Schema) {
			r.Schema = nil
		}
		path, log := open(t)
		got, err := log.Wrap("p", counting()).Complete(t.Context(), r, nil)
		if err != nil && !errors.Is(err, kind.ErrContextLength) {
			t.Fatal(err)
		}
		played, again := play(t, path).Complete(t.Context(), r, nil)
		if played.Text != got.Text || (err == nil) != (again == nil) {
			t.Errorf("recorded %q, %v; played %q, %v", got.Text, err, played.Text, again)
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	log, err := calllog.Open(filepath.Join(b.TempDir(), "run.jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()

	p := log.Wrap("p", llm.Func(func(llm.Request) (llm.Response, error) {
		return llm.Response{Text: "true"}, nil
	}))
	r := ask(strings.Repeat("x", 4000))
	b.SetBytes(4000)

	for b.Loop() {
		if _, err := p.Complete(b.Context(), r, nil); err != nil {
			b.Fatal(err)
		}
	}
}

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/internal/testing/llmtest"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/scripted"
	"github.com/rlmhq/rlm/viewer/traces"
)

// serverVariables name a model server and its key.
var serverVariables = []string{
	"OPENAI_BASE_URL",
	"OPENAI_API_KEY",
	"ANTHROPIC_BASE_URL",
	"ANTHROPIC_API_KEY",
}

// serve is the script command `serve SCRIPT [FAULT]`. It starts a server on loopback that uses the
// formats of OpenAI and Anthropic, and replies by the script. The first request gets the fault
// "busy", "down" or "cut". A "quirky" server has the quirks of many servers.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: serve SCRIPT [busy|down|cut|quirky]")
	}
	script, err := scripted.Load(ts.MkAbs(args[0]))
	ts.Check(err)
	begin := llmtest.Start
	if len(args) == 2 && args[1] == "quirky" {
		begin = llmtest.StartQuirky
	}
	server := begin(modelOf(script))
	ts.Defer(server.Close)
	for _, name := range serverVariables {
		ts.Setenv(name, server.Env(name))
	}
	if len(args) == 1 {
		return
	}
	switch args[1] {
	case "busy":
		server.Fail(llmtest.Status(429, "", "slow down", "0"))
	case "down":
		server.Fail(
			llmtest.Fault{Times: -1, Alter: llmtest.Status(500, "", "out of order", "").Alter},
		)
	case "cut":
		server.Fail(llmtest.Cut(20))
	case "quirky":
	default:
		ts.Fatalf("unknown fault %q", args[1])
	}
}

// modelList is the script command `modellist VARIABLE [! TEXT | NAME...]`. It starts a server that
// lists models with these names, or answers with TEXT, and sets the variable to the server's
// address.
func modelList(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: modellist VARIABLE [! TEXT | NAME...]")
	}
	answer := ""
	if len(args) == 3 && args[1] == "!" {
		answer = args[2]
	} else {
		var items []string
		for _, name := range args[1:] {
			items = append(items, `{"object": "model", "id": "`+name+`"}`)
		}
		answer = `{"object": "list", "data": [` + strings.Join(items, ",") + `]}`
	}

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/v1/models" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(answer))
	}))
	ts.Defer(server.Close)
	ts.Setenv(args[0], server.URL+"/v1")
}

// mode is the script command `mode MODE FILE`. It checks that the file has the mode, which is
// octal.
func mode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: mode MODE FILE")
	}
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := strconv.FormatInt(int64(info.Mode().Perm()), 8); got != args[0] {
		ts.Fatalf("%s has the mode %s, want %s", args[1], got, args[0])
	}
}

// start starts a server whose model is a script.
func start(script llm.Provider) *llmtest.Server { return llmtest.Start(modelOf(script)) }

// modelOf returns the model of a server that replies by a script.
func modelOf(script llm.Provider) llm.Func {
	return func(r llm.Request) (llm.Response, error) {
		return script.Complete(context.Background(), r, nil)
	}
}

// TestEveryProviderGivesTheSameTrajectory compares the records of one program with a script, and
// with servers in the formats of OpenAI and Anthropic.
func TestEveryProviderGivesTheSameTrajectory(t *testing.T) {
	needCache(t)
	folder, err := filepath.Abs(filepath.Join("testdata", "servers"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "letters.yaml")
	script, err := scripted.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	server := start(script)
	defer server.Close()
	var want string
	for _, model := range []string{"scripted/" + path, "openai/any", "anthropic/any"} {
		dir := t.TempDir()
		cmd := command(t, dir, "run", "Where does Saltram live?", "--bypass", "0", "--context",
			filepath.Join(folder, "letters.txt"), "--model", model, "--trace", "trace", "--quiet")
		for _, name := range serverVariables {
			cmd.Env = append(cmd.Environ(), name+"="+server.Env(name))
		}
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != "In the old mill by the ford.\n" {
			t.Fatalf("%s: %v\n%s", model, err, out)
		}
		got := stable(t, filepath.Join(dir, "trace"))
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("%s gives another trajectory:\n%s\nwant:\n%s", model, got, want)
		}
	}
	if len(server.Seen()) < 20 {
		t.Errorf("the server has seen %d requests", len(server.Seen()))
	}
}

// stable returns the parts of a record that are the same in each run. It omits times, names of
// models and the order of concurrent events.
func stable(t *testing.T, dir string) string {
	t.Helper()
	var loops []string
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.Name() != trajectory.File {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		var b strings.Builder
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 1<<24)
		for lines.Scan() {
			var turn traces.Turn
			if err := json.Unmarshal(lines.Bytes(), &turn); err != nil {
				return err
			}
			b.WriteString(turn.Response + string(turn.Final) + "\n")
			for _, block := range turn.CodeBlocks {
				var calls []string
				for _, c := range block.Result.RLMCalls {
					calls = append(calls, c.Prompt+" → "+c.Response)
				}
				slices.Sort(calls)
				b.WriteString(
					block.Code + block.Result.Stdout + block.Result.Stderr +
						strings.Join(calls, "\n") + "\n",
				)
			}
		}
		loops = append(loops, b.String())
		return lines.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(loops)
	return strings.Join(loops, "---\n")
}

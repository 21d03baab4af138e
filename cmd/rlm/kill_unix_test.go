//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/internal/keep/runlog"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/keep/store/sqlitestore"
	"github.com/rlmhq/rlm/internal/testing/llmtest"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/viewer/traces"
)

// killVariable is the environment variable with the number of the moment, around a write to the
// store, at which rlmkilled kills itself.
const killVariable = "RLM_KILL_AT"

// rlmKilled is a version of rlm that kills itself before or after a write to the store.
func rlmKilled() {
	at, err := strconv.ParseInt(os.Getenv(killVariable), 10, 64)
	if err != nil {
		panic(err)
	}
	var n atomic.Int64
	kill := func() {
		if n.Add(1) == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}
	sqlitestore.Watch.Store(&kill)
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// killedTurns are the turns of the run: batches, sub-loops, a move to another tier, a value that
// no state can contain, calls from threads, and a call that waits for a person.
var killedTurns = []string{
	"```repl\nparts = context.split()\nseen = llm_query_batched(['item ' + p for p in parts])\n```",
	"```repl\nimport statistics\nsubs = rlm_query_batched(['read it', 'read it'], contexts=['one', 'two'])\n```",
	"```repl\nalive = (s for s in seen)\nprint(next(alive))\n```",
	"```repl\nfrom concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(4) as pool:\n" +
		"    more = list(pool.map(llm_query, ['again ' + p for p in parts[:4]]))\nprint(next(alive), more)\n```",
	"```repl\nmailed = mail('all') + llm_query('and so on')\n```",
	"```repl\nFINAL([seen, subs, more, next(alive), statistics.mean([1, 2, 3]), mailed])\n```",
}

const killedAnswer = `[["ITEM A","ITEM B","ITEM C","ITEM D","ITEM E","ITEM F"],["sub LEAF OF ONE","sub LEAF OF TWO"],` +
	`["AGAIN A","AGAIN B","AGAIN C","AGAIN D"],"ITEM C",2,"sentAND SO ON"]`

// killedProgram is the tool of the run. It counts its calls in a file.
const killedProgram = `echo '{"tools": [{"name": "mail", "description": "", "parameters": {"type": "object",' \
'"properties": {"to": {"type": "string"}}}}]}'
n=0; while read line; do n=$((n+1)); echo mail >>sent.txt; echo "{\"id\": $n, \"result\": \"sent\"}"; done`

// countedModel answers by rules, and counts the requests.
type countedModel struct {
	mu    sync.Mutex
	asked map[string]int
}

func (c *countedModel) reply(r llm.Request) (llm.Response, error) {
	last := r.Messages[len(r.Messages)-1].Content
	key, text := last, strings.ToUpper(last)
	if r.Messages[0].Role == llm.RoleSystem {
		turn := (len(r.Messages) - 2) / 2
		key = fmt.Sprintf("turn %d of %s", turn, r.Messages[1].Content)
		text = "```repl\nFINAL('sub ' + llm_query('leaf of ' + context))\n```"
		if strings.Contains(r.Messages[1].Content, "what is in it?") {
			text = killedTurns[min(turn, len(killedTurns)-1)]
		}
	}

	c.mu.Lock()
	c.asked[key]++
	c.mu.Unlock()
	return llm.Response{Text: text, Usage: llm.Usage{InputTokens: 10, OutputTokens: 5}}, nil
}

// sum returns the number of requests.
func (c *countedModel) sum() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, times := range c.asked {
		n += times
	}
	return n
}

// killedRun is a run that the test kills and continues.
type killedRun struct {
	t   *testing.T
	dir string
}

func newKilledRun(t *testing.T) *killedRun {
	t.Helper()
	d := &killedRun{t, t.TempDir()}
	for name, text := range map[string]string{"t.txt": "a b c d e f", "mail.sh": killedProgram} {
		if err := os.WriteFile(filepath.Join(d.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// command returns a command of the program in the folder of the run. The command kills itself at
// the given moment around a write, or never if at is 0.
func (d *killedRun) command(server *llmtest.Server, at int, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(d.t.Context(), "rlmkilled", append(args, "--store", "store")...)
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), killVariable+"="+strconv.Itoa(at))
	for _, name := range serverVariables {
		cmd.Env = append(cmd.Env, name+"="+server.Env(name))
	}
	return cmd
}

// begin returns a command that begins or continues the run.
func (d *killedRun) begin(server *llmtest.Server, at int) *exec.Cmd {
	return d.command(server, at, "run", "what is in it?", "--name", "killed", "--context", "t.txt",
		"--model", "openai/any", "--bypass", "0", "--max-turns", "6", "--synthesis=false", "--outage", "0", "-v",
		"--tool-command", "sh mail.sh", "--approve", "ask mail", "--trace", "record")
}

// withStore calls use with the store of the run.
func (d *killedRun) withStore(use func(s *sqlitestore.Store)) {
	d.t.Helper()
	s, err := sqlitestore.Open(filepath.Join(d.dir, "store"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer s.Close()
	use(s)
}

// waiting returns the IDs of the calls that wait for a person.
func (d *killedRun) waiting() (ids []string) {
	d.t.Helper()
	d.withStore(func(s *sqlitestore.Store) {
		questions, err := runlog.Questions(d.t.Context(), s, "")
		if err != nil {
			d.t.Fatal(err)
		}
		for _, q := range questions {
			ids = append(ids, q.ID)
		}
	})
	return ids
}

// sent returns the number of calls that the tool received.
func (d *killedRun) sent() int {
	d.t.Helper()
	data, err := os.ReadFile(filepath.Join(d.dir, "sent.txt"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.t.Fatal(err)
	}
	return strings.Count(string(data), "mail")
}

// park continues the run until its call waits.
func (d *killedRun) park(server *llmtest.Server) {
	d.t.Helper()
	var exit *exec.ExitError
	out, err := d.begin(server, 0).CombinedOutput()
	if !errors.As(err, &exit) || exit.ExitCode() != cli.ExitParked || d.sent() > 0 {
		d.t.Fatalf("the run is not parked: %v, %d sent\n%s", err, d.sent(), out)
	}
}

// approve returns a command that allows the waiting calls, and kills itself at a moment around a
// write.
func (d *killedRun) approve(server *llmtest.Server, at int) *exec.Cmd {
	d.t.Helper()
	return d.command(server, at, append([]string{"runs", "approve"}, d.waiting()...)...)
}

// finish continues the run until its end, with a person's decisions, and checks its answer.
func (d *killedRun) finish(server *llmtest.Server) {
	d.t.Helper()
	if d.sent() == 0 {
		if len(d.waiting()) == 0 {
			d.goOn(server) // to the call that waits, unless it has been decided
		}
		if len(d.waiting()) > 0 {
			if out, err := d.approve(server, 0).CombinedOutput(); err != nil {
				d.t.Fatalf("%v\n%s", err, out)
			}
		}
	}
	if out := d.goOn(server); out != killedAnswer {
		d.t.Fatalf("the answer is %s", out)
	}
	d.checkRecord()
}

// checkRecord compares the folder of the record with the record in the run log.
func (d *killedRun) checkRecord() {
	d.t.Helper()
	record, notes, err := traces.ReadRunLog(d.export())
	if err != nil || len(notes) > 0 {
		d.t.Fatalf("%q, %v", notes, err)
	}
	again := filepath.Join(d.dir, "again")
	if notes, err = record.Write(again); err != nil || len(notes) > 0 {
		d.t.Fatalf("%q, %v", notes, err)
	}

	want, got := readTree(d.t, again), readTree(d.t, filepath.Join(d.dir, "record"))
	if !maps.Equal(got, want) || strings.Count(got["trajectory.jsonl"], `"type":"iteration"`) != len(killedTurns) ||
		len(want) != 4 {
		d.t.Errorf("the record is not that of the run log: %q, want %q", got, want)
	}
}

// readTree returns the contents of the files below a folder.
func readTree(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, path)
		files[path] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// goOn runs the command of the run again, and returns the answer, which is empty if the run waits.
func (d *killedRun) goOn(server *llmtest.Server) string {
	d.t.Helper()
	var stderr bytes.Buffer
	cmd := d.begin(server, 0)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != cli.ExitParked) {
		d.t.Fatalf("%v\n%s", err, &stderr)
	}
	return strings.ReplaceAll(strings.TrimSpace(string(out)), ", ", ",")
}

// export returns the log of the run, or an empty buffer if the run has not begun.
func (d *killedRun) export() *bytes.Buffer {
	d.t.Helper()
	lines := &bytes.Buffer{}
	d.withStore(func(s *sqlitestore.Store) {
		_ = runlog.Export(d.t.Context(), s, store.ID{Kind: store.Run, Name: "killed"}, lines)
	})
	return lines
}

// kept returns how many calls of the model and of the tool ended according to the run log.
func (d *killedRun) kept() (asked, sent int) {
	d.t.Helper()
	lines := d.export()
	for line := range strings.Lines(lines.String()) {
		var e struct{ Kind, Key string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			d.t.Fatal(err)
		}
		switch {
		case e.Kind != "step":
		case strings.Contains(e.Key, "/mail "):
			sent++
		default:
			asked++
		}
	}
	return asked, sent
}

// stages is the number of the run's commands that can be killed: the first, the decision, and the
// last.
const stages = 3

// measure runs all stages to their end, and returns the duration of each stage.
func (d *killedRun) measure(server *llmtest.Server) (lasted [stages]time.Duration) {
	d.t.Helper()
	begun := time.Now()
	d.park(server)
	lasted[0] = time.Since(begun)

	begun = time.Now()
	if out, err := d.approve(server, 0).CombinedOutput(); err != nil {
		d.t.Fatalf("%v\n%s", err, out)
	}
	lasted[1] = time.Since(begun)

	begun = time.Now()
	d.finish(server)
	lasted[2] = time.Since(begun)
	return lasted
}

// kill starts the command of a stage, kills it, and reports whether it ended early.
func (d *killedRun) kill(server *llmtest.Server, stage int, kill func(*exec.Cmd), at int) bool {
	d.t.Helper()
	if stage > 0 {
		d.park(server)
	}
	cmd := d.begin(server, at)
	if stage > 0 {
		cmd = d.approve(server, at*(2-stage)) // in the last stage, this command is not killed
	}
	if stage == stages-1 {
		if out, err := cmd.CombinedOutput(); err != nil {
			d.t.Fatalf("%v\n%s", err, out)
		}
		cmd = d.begin(server, at)
	}

	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	kill(cmd)
	_ = cmd.Wait()
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return status.Signaled() //nolint:misspell // the word of package syscall
}

//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
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

	"github.com/rlmhq/rlm/internal/journal"
	"github.com/rlmhq/rlm/internal/store"
	"github.com/rlmhq/rlm/internal/testing/llmtest"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/repl/llm"
)

// killVariable is the number of the moment around a write of the store at which rlmkilled ends.
const killVariable = "RLM_KILL_AT"

// killsVariable is how many random moments the test tries; all moments around writes come with
// it. Without it, the test tries a few of each.
const killsVariable = "RLM_KILLS"

// rlmKilled is rlm, which kills itself before or after a write to the store.
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
	store.Watch.Store(&kill)
	os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// killedTurns are the turns of the run: batches, sub-loops, a value that no state can hold, and
// calls of threads.
var killedTurns = []string{
	"```repl\nparts = context.split()\nseen = llm_query_batched(['item ' + p for p in parts])\n```",
	"```repl\nimport statistics\nsubs = rlm_query_batched(['read it', 'read it'], contexts=['one', 'two'])\n```",
	"```repl\nalive = (s for s in seen)\nprint(next(alive))\n```",
	"```repl\nfrom concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(4) as pool:\n" +
		"    more = list(pool.map(llm_query, ['again ' + p for p in parts[:4]]))\nprint(next(alive), more)\n```",
	"```repl\nFINAL([seen, subs, more, next(alive), statistics.mean([1, 2, 3])])\n```",
}

const killedAnswer = `[["ITEM A","ITEM B","ITEM C","ITEM D","ITEM E","ITEM F"],["sub LEAF OF ONE","sub LEAF OF TWO"],` +
	`["AGAIN A","AGAIN B","AGAIN C","AGAIN D"],"ITEM C",2]`

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

// sum returns how many requests there were.
func (c *countedModel) sum() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, times := range c.asked {
		n += times
	}
	return n
}

// killedRun is one run that is killed, and goes on.
type killedRun struct {
	t   *testing.T
	dir string
}

func newKilledRun(t *testing.T) *killedRun {
	t.Helper()
	d := &killedRun{t, t.TempDir()}
	if err := os.WriteFile(filepath.Join(d.dir, "t.txt"), []byte("a b c d e f"), 0o600); err != nil {
		t.Fatal(err)
	}
	return d
}

// begin returns a program that begins the run, or goes on with it.
func (d *killedRun) begin(server *llmtest.Server, program string, at int) *exec.Cmd {
	cmd := exec.CommandContext(d.t.Context(), program, "run", "what is in it?", "--name", "killed",
		"--context", "t.txt", "--model", "openai/any", "--bypass", "0", "--store", "store", "--max-turns", "5",
		"--synthesis=false", "--outage", "0", "-v")
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), killVariable+"="+strconv.Itoa(at))
	for _, name := range serverVariables {
		cmd.Env = append(cmd.Env, name+"="+server.Env(name))
	}
	return cmd
}

// kept returns how many calls have an ending in the journal.
func (d *killedRun) kept() (steps int) {
	d.t.Helper()
	s, err := store.Open(filepath.Join(d.dir, "store"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer s.Close()
	var lines bytes.Buffer
	if err := journal.Export(d.t.Context(), s, store.ID{Kind: store.Run, Name: "killed"}, &lines); err != nil {
		return 0 // the run has not begun
	}
	for line := range strings.Lines(lines.String()) {
		var e struct{ Kind string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			d.t.Fatal(err)
		}
		if e.Kind == "step" {
			steps++
		}
	}
	return steps
}

// killTable sums up the moments of one kind.
type killTable struct {
	moments, killed, lost, twice, inFlight int
}

// TestAKilledRunLosesNothing kills a run around writes to its store and at random moments, and
// lets it go on. RLM_KILLS=500 tries 500 random moments, and all of the writes.
func TestAKilledRunLosesNothing(t *testing.T) {
	skip.Short(t, "it starts many processes")
	needCache(t)
	random, every := 3, 12
	if text := os.Getenv(killsVariable); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		random, every = n, 1
	}

	// A run that nobody kills.
	model := &countedModel{asked: map[string]int{}}
	server := llmtest.Start(model.reply)
	defer server.Close()
	begun := time.Now()
	whole := newKilledRun(t)
	checkAnswer(t, whole.begin(server, "rlmkilled", 0))
	lasted, calls := time.Since(begun), model.sum()
	if kept := whole.kept(); kept != calls {
		t.Fatalf("%d calls are kept, but %d were made", kept, calls)
	}

	writes, moments := killTable{}, killTable{}
	for at := 1; ; at += every {
		d := newKilledRun(t)
		if !d.tryOnce(&writes, calls, func(*exec.Cmd) {}, at) {
			break // there are not so many writes
		}
	}
	for range random {
		after := time.Duration(rand.Int64N(int64(lasted)))
		newKilledRun(t).tryOnce(&moments, calls, func(cmd *exec.Cmd) {
			time.Sleep(after)
			_ = cmd.Process.Kill()
		}, 0)
	}

	t.Logf("a run of %d calls\n\n"+
		"| killed | moments | lost | paid twice | in flight |\n| --- | --- | --- | --- | --- |\n"+
		"| around a write | %d | %d | %d | %d |\n| at random | %d, of which %d before the end | %d | %d | %d |", calls,
		writes.killed, writes.lost, writes.twice, writes.inFlight,
		moments.moments, moments.killed, moments.lost, moments.twice, moments.inFlight)
	if writes.killed == 0 || writes.lost+moments.lost > 0 {
		t.Error("answers that were kept were asked for again, or nothing was killed")
	}
}

// tryOnce kills a run, lets it go on, and counts. It reports whether the run was killed before
// its end.
func (d *killedRun) tryOnce(table *killTable, calls int, kill func(*exec.Cmd), at int) bool {
	d.t.Helper()
	model := &countedModel{asked: map[string]int{}}
	server := llmtest.Start(model.reply)
	defer server.Close()

	cmd := d.begin(server, "rlmkilled", at)
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	kill(cmd)
	wasKilled := cmd.Wait() != nil
	table.moments++
	if !wasKilled {
		return false
	}

	first, kept := model.sum(), d.kept()
	checkAnswer(d.t, d.begin(server, "rlmkilled", 0))
	again := model.sum() - first
	table.killed++
	table.lost += max(0, again-(calls-kept))
	table.twice += first + again - calls
	table.inFlight += first - kept
	if again != calls-kept {
		d.t.Errorf("%d calls were kept of %d, then %d were made, want %d", kept, first, again, calls-kept)
	}
	return true
}

func checkAnswer(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	got := strings.ReplaceAll(strings.TrimSpace(string(out)), ", ", ",")
	if err != nil || got != killedAnswer {
		t.Fatalf("the answer is %s, %v\n%s", got, err, &stderr)
	}
}

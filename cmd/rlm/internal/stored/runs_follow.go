package stored

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/live"
	"github.com/rlmhq/rlm/cmd/rlm/internal/loops"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/internal/keep/runlog"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/viewer"
)

const showLong = `Show the turns of a named run and their cost.

--follow prints each step of the run when it begins and ends, even while another process works
on the run. It stops when the run ends, waits for a decision, or loses its process, with the exit
code that "rlm ask" has then: 0 for an answer, 8 for a decision, 130 for a run that is
interrupted. With --json, each entry of the run log is a line, as "rlm runs export" writes it.`

// followPause is the interval between reads of a followed run.
const followPause = 250 * time.Millisecond

// followRun prints the steps of a run until it stops. The returned error has the run's exit code.
func followRun(ctx context.Context, e *cli.Env, s store.Store, name string, asJSON bool) error {
	reader := runlog.NewReader(s, name)
	for isFirst := true; ; isFirst = false {
		news, err := reader.Read(ctx)
		if err != nil {
			return err
		}
		var lines bytes.Buffer
		if err := news.Write(&lines); err != nil {
			return err
		}

		switch run := &news.Run; {
		case asJSON:
			_, err = lines.WriteTo(e.Stdout)
		case isFirst:
			_, err = fmt.Fprintf(e.Stdout, "%s: %s\nquestion: %s\n", name, run.Status, cli.Escape(run.Title))
		case news.IsAnew:
			_, err = fmt.Fprintf(e.Stdout, "%s: turns were taken back\n", name)
		}
		if err == nil {
			err = printSteps(e, &lines)
		}
		if err != nil {
			return cli.Broken(err)
		}

		if news.Run.Status != runlog.StatusRunning {
			return endFollowing(e, &news.Run, asJSON)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(followPause):
		}
	}
}

// followedEntry is a line of a run log.
type followedEntry struct {
	Turn int             `json:"turn"`
	Kind string          `json:"kind"`
	Key  string          `json:"key"`
	Data json.RawMessage `json:"data"`
	Cost store.Cost      `json:"cost"`
}

// printSteps prints a line for each entry of interest to users.
func printSteps(e *cli.Env, lines *bytes.Buffer) error {
	var entries []followedEntry
	ended := map[string]bool{}
	for decoder := json.NewDecoder(lines); decoder.More(); {
		var entry followedEntry
		if err := decoder.Decode(&entry); err != nil {
			return err
		}
		if entry.Kind == "trace" {
			continue // repeats other entries, for the viewer
		}
		ended[entry.Key] = ended[entry.Key] || entry.Kind == "step" || entry.Kind == "lost"
		entries = append(entries, entry)
	}

	out := bufio.NewWriter(e.Stdout)
	for i := range entries {
		if entry := &entries[i]; entry.Kind != "begun" || !ended[entry.Key] {
			if text := describeEntry(entry); text != "" {
				_, _ = fmt.Fprintln(out, text)
			}
		}
	}
	return out.Flush()
}

// describeEntry describes an entry in one line, or returns "" if users do not need the entry.
func describeEntry(entry *followedEntry) string {
	place := cli.Escape(strings.TrimPrefix(entry.Key, "/"))
	step, err := viewer.ReadStep(entry.Data)
	if err != nil {
		step = viewer.Step{Problem: err.Error()} // a later version wrote the entry
	}

	switch {
	case entry.Kind == "begun":
		return fmt.Sprintf("%s begins: %s", place, cli.Shorten(step.About, 200))
	case entry.Kind == "lost":
		return fmt.Sprintf("%s has no answer%s", place, costText(&entry.Cost))
	case entry.Kind == "step" && step.Problem != "":
		return fmt.Sprintf("%s fails%s: %s", place, costText(&entry.Cost), cli.Shorten(step.Problem, 500))
	case entry.Kind == "step":
		return fmt.Sprintf("%s ends%s: %s", place, costText(&entry.Cost),
			cli.Shorten(cmp.Or(step.Reply, step.Value), 200))
	case entry.Kind == "commit":
		return fmt.Sprintf("turn %d is kept", entry.Turn)
	case entry.Kind == "question":
		return fmt.Sprintf("waits for a decision: %s: %s", place, cli.Shorten(readQuestion(entry.Data), 200))
	case entry.Kind == "decision":
		return "decided: " + place
	}
	return ""
}

func costText(c *store.Cost) string {
	if *c == (store.Cost{}) {
		return ""
	}
	spent := ledger.Spending(*c)
	return live.UsedText(ledger.Event{Spent: &spent})
}

// endFollowing reports how a run stopped.
func endFollowing(e *cli.Env, run *store.Log, asJSON bool) error {
	if asJSON {
		err := wiring.WithRuns(e, func(engine *rlm.Engine) error {
			return showRun(context.Background(), e, engine, run.Name, true)
		})
		if err != nil {
			return err
		}
	} else if _, err := fmt.Fprintf(e.Stdout, "%s: %s\nspent: %s\n", run.Name, run.Status,
		ledger.Spending(run.Spent)); err != nil {
		return cli.Broken(err)
	}

	if run.Status == runlog.StatusInterrupted {
		err := fmt.Errorf("the run has no process any more; continue with: rlm runs resume %s%s",
			run.Name, loops.StoreFlag(e))
		return cli.Exit(cli.ExitInterrupted, err)
	}
	return loops.ExitForStatus(e, ledger.Status(run.Status), run.Reason, false)
}

// readQuestion returns the reason why a call waits for a decision.
func readQuestion(data json.RawMessage) string {
	var asked struct{ Why string }
	_ = json.Unmarshal(data, &asked) // stays empty for a later version
	return asked.Why
}

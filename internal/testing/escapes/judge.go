package escapes

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// joinOutput returns all strings in a result.
func joinOutput(r tiers.Result) string {
	text := r.Stdout + r.Stderr
	if r.Exception != nil {
		text += r.Exception.Message + r.Exception.Traceback
	}
	if r.Final != nil {
		text += string(r.Final.Value)
	}

	return text
}

// answersTried is the number of attempts to get an answer from a session. The brief time for an
// answer may be too short while leftovers of an attack run, or on a busy machine.
const answersTried = 20

// lateness is the time that leftovers of an attack have to do harm.
const lateness = 300 * time.Millisecond

// checkAfter describes what is wrong with the session after a case, or returns an empty string. The
// session must continue, and its reports about its state must be true.
func (s *subject) checkAfter(t *testing.T, r tiers.Result, rejected, spoils bool) string {
	t.Helper()
	lost := r.Lost != nil && slices.Contains(r.Lost.Snippets, 1)
	mayCrash := spoils && !rejected // leftovers of the case may end the session's process once more
	ask := func(source string) (string, error) {
		var again tiers.Result
		var err error
		for range answersTried {
			again, err = s.box.Run(t.Context(), tiers.Job{Source: source})
			lost = lost || again.Lost != nil && slices.Contains(again.Lost.Snippets, 1)
			switch {
			case err == nil && again.Status == tiers.StatusLimit:
				continue
			case err == nil && again.Status == tiers.StatusCrashed && mayCrash:
				mayCrash = false
				continue
			}
			break
		}

		if again.Status != tiers.StatusOK {
			return fmt.Sprintf("%s %s %.300q", again.Status, again.Limit, joinOutput(again)), err
		}
		return again.Stdout, err
	}

	if mayCrash {
		time.Sleep(lateness)
		if _, err := ask("1"); err != nil { // leftovers of the case have their effect here
			return "the session broke: " + err.Error()
		}
	}

	// The output of an answer that took too long may arrive with the next one.
	if said, err := ask(`print("alive")`); err != nil || !strings.HasSuffix(said, "alive\n") {
		return fmt.Sprintf("the session does not go on: %q %v", said, err)
	}
	if !s.kept {
		return ""
	}

	said, err := ask("print(globals().get('kept') == {'since': 'snippet 1'})")
	if err != nil || !strings.HasSuffix(said, map[bool]string{false: "True\n", true: "False\n"}[lost]) {
		return fmt.Sprintf("the variable of snippet 1: %q, reported as lost: %v %v", said, lost, err)
	}
	return ""
}

// Bounds of collected files, higher than those of any tier.
const (
	mostCollected = 1 << 27
	mostEntries   = 1 << 13
)

// checkCollected collects the files of the sandbox and inspects them.
func (s *subject) checkCollected(t *testing.T, into *trial) string {
	t.Helper()
	collector, ok := s.box.(tiers.Collector)
	if !ok {
		return Escaped + ": the session was opened without a place for files"
	}
	dir := filepath.Join(t.TempDir(), "collected")
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // for this test
		t.Fatal(err)
	}

	got, err := collector.Collect(t.Context(), dir)
	if err != nil {
		return Blocked // no files were collected; the error gives the reason
	}
	said, problem := inspectFolder(t, dir)
	into.said += said

	switch {
	case problem != "":
		return Escaped + ": " + problem
	case len(got.Refused) > 0:
		return Blocked
	}

	return into.verdict
}

// inspectFolder reads the collected files, as their user would.
func inspectFolder(t *testing.T, dir string) (said, problem string) {
	t.Helper()
	var bytes int64
	entries := 0
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entries++; d.IsDir() {
			return nil
		}

		info, err := d.Info()
		if err != nil {
			return err
		}
		bytes += info.Size()
		if !info.Mode().IsRegular() || info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
			problem = fmt.Sprintf("%s came back as %v", d.Name(), info.Mode())
		}
		if info.Mode().Type()&(fs.ModeNamedPipe|fs.ModeDevice|fs.ModeSocket) != 0 || bytes > mostCollected {
			return nil
		}

		text, err := os.ReadFile(path)
		if err == nil && len(text) < 1<<16 {
			all.Write(text)
		}
		return nil // a broken link
	})
	if err != nil {
		t.Fatal(err)
	}
	if bytes > mostCollected || entries > mostEntries {
		problem = "more came back than was allowed"
	}

	return all.String(), problem
}
